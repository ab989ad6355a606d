"""IAB Tech Lab taxonomies: a TSV with two header rows, of which the second names `Unique ID`, `Parent` and `Name`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.formats.building import checked
from hilap.taxonomy.formats.content import Content
from hilap.taxonomy.formats.holding import check_holds, depth_first
from hilap.taxonomy.formats.tables import TableRow, folded, read_rows, write_rows
from hilap.taxonomy.graph import Taxonomy

_ID, _PARENT, _NAME = ("unique id",), ("parent", "parent id"), ("name",)
_MOST_HEADERS = 5


def read_iab(content: Content, *, delimiter: str | None = "\t") -> Draft:
    """One row a label: its id, its parent's id, its name. The columns of tiers repeat that, and are not read."""
    rows, _ = read_rows(content, delimiter)
    found = ((i, header_columns(cells)) for i, (_, cells) in enumerate(rows[:_MOST_HEADERS]))
    header, columns = next((pair for pair in found if pair[1]), (0, None))
    if columns is None:
        line = rows[0][0] if rows else 0
        raise content.error(line, "no header with the columns 'Unique ID', 'Parent' and 'Name'; is it the IAB's file?")
    return Draft(content.name, "iab", [_entry(content, row, columns) for row in rows[header + 1 :]])


def write_iab(taxonomy: Taxonomy, out: IO[str], *, delimiter: str = "\t") -> None:
    """Two header rows, then a row for each label, with its tiers."""
    check_holds(taxonomy, "iab", dag=False)
    depth = taxonomy.depth

    def rows() -> Iterator[list[str]]:
        tiers = [f"Tier {level}" for level in range(1, depth + 1)]
        yield ["Relational ID System", "", "", *[""] * depth]
        yield ["Unique ID", "Parent", "Name", *tiers]
        stack: list[str] = []
        for label, at in depth_first(taxonomy):
            stack[at:] = [taxonomy.name(label)]
            yield [label, *(taxonomy.parents(label) or ("",)), stack[-1], *stack, *[""] * (depth - len(stack))]

    write_rows(out, "iab", rows(), delimiter)


def header_columns(cells: Sequence[str]) -> tuple[int, int, int] | None:
    """Where id, parent and name stand, if the row is the header that names them."""
    words = [folded(cell) for cell in cells]
    found = [next((words.index(w) for w in wanted if w in words), None) for wanted in (_ID, _PARENT, _NAME)]
    label, parent, name = found
    return None if label is None or parent is None or name is None else (label, parent, name)


def _entry(content: Content, row: TableRow, columns: tuple[int, int, int]) -> Entry:
    line, cells = row
    label, parent, name = (cells[i] if i < len(cells) else "" for i in columns)
    if not label or not name:
        raise content.error(line, "a row needs a Unique ID and a Name; the Parent may be empty")
    parents = (checked(content, line, parent, "parent"),) if parent else ()
    return Entry(checked(content, line, label), checked(content, line, name, "name"), parents, line)
