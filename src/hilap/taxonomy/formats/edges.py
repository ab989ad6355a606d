"""Edges: a table with a parent and a child a row, in either direction; or a parent with all its children a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from hilap.errors import require
from hilap.taxonomy.draft import Draft
from hilap.taxonomy.formats.building import Edges, Root
from hilap.taxonomy.formats.content import Content, shown
from hilap.taxonomy.formats.holding import check_holds, check_no_root, refuse
from hilap.taxonomy.formats.tables import DEFINITION_HEADINGS, TableRow, folded, read_rows, write_rows
from hilap.taxonomy.graph import Taxonomy

DOWN, UP = "parent-child", "child-parent"

# Headings in the order in which they are preferred: beside an `id`, a `label` is a name.
PARENT_HEADINGS = (
    *("parent", "parent id", "parents", "parent label", "broader", "broader term"),
    *("parentid", "parent name", "parent category"),
)
CHILD_HEADINGS = (
    *("child", "child id", "narrower", "narrower term", "childid", "id", "label id", "code"),
    *("label", "term", "category", "name", "title"),
)
NAME_HEADINGS = ("name", "title", "pref label", "preflabel", "child name", "label name", "label")


@dataclass(frozen=True)
class Columns:
    """Where the parts of an edge stand in a row."""

    parent: int
    child: int
    name: int | None = None
    definition: int | None = None
    left_out: tuple[str, ...] = ()


def read_edges(
    content: Content,
    *,
    direction: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    root: Root = None,
) -> Draft:
    """A parent and a child a row; an empty parent makes a top label; names and definitions where the header has any."""
    require(direction in (None, DOWN, UP), "direction", f"{DOWN!r} or {UP!r}", direction)
    rows, _ = read_rows(content, delimiter)
    edges = Edges(content, "edges")
    columns = header_columns(rows[0][1]) if rows and header is not False else None
    if columns is None and rows and header is None:
        _check_no_half_header(content, rows[0])
    if columns is not None:
        _check_direction(content, rows[0], columns, direction)
    if columns is not None or header:
        rows = rows[1:]
    if columns is None:
        columns, remark = _positions(rows, direction)
        if remark:
            edges.draft.remarks.append((rows[0][0], remark))
        _check_two(content, rows)
    if columns.left_out:
        words = ", ".join(shown(word) for word in columns.left_out)
        edges.draft.remarks.append((1, f"columns that are not read: {words}"))
    # Where labels have rows of their own (names, or rows without parent), a parent without one is a mistake to report.
    own_rows = columns.name is not None or any(not _cell(cells, columns.parent) for _, cells in rows)
    for line, cells in rows:
        _add(content, edges, line, cells, columns, own_rows)
    return edges.finished(root)


def read_children(content: Content, *, delimiter: str | None = "\t", root: Root = None) -> Draft:
    """A parent and all its children a row; the root's row gives the top labels."""
    rows, _ = read_rows(content, delimiter)
    edges = Edges(content, "children")
    for line, cells in rows:
        if not cells[0]:
            raise content.error(line, "the parent in the first column is empty; write parent, child, child, ...")
        edges.label(cells[0], line)
        for child in filter(None, cells[1:]):
            edges.edge(cells[0], child, line)
    return edges.finished(root)


def write_edges(
    taxonomy: Taxonomy, out: IO[str], *, direction: str = DOWN, delimiter: str = "\t", root: str | None = None
) -> None:
    """A header, then an edge a row; top labels stand below the root if it has a name, else without a parent."""
    require(direction in (DOWN, UP), "direction", f"{DOWN!r} or {UP!r}", direction)
    check_holds(taxonomy, "edges", definitions=True)
    _check_root(taxonomy, "edges", root)
    with_names, with_definitions = taxonomy.names != taxonomy.labels, any(taxonomy.definitions)
    heading = ["parent", "child"] if direction == DOWN else ["child", "parent"]

    def rows() -> Iterator[list[str]]:
        yield heading + ["name"] * with_names + ["definition"] * with_definitions
        for record in taxonomy.records():
            said = [record["name"]] * with_names + [record.get("definition", "")] * with_definitions
            for parent in record["parents"] or [root or ""]:
                pair = [parent, record["label"]]
                yield (pair if direction == DOWN else pair[::-1]) + said
                said[with_names:] = [""] * with_definitions  # once is enough

    write_rows(out, "edges", rows(), delimiter)


def write_children(taxonomy: Taxonomy, out: IO[str], *, delimiter: str = "\t", root: str = "Root") -> None:
    """The root with the top labels, then every label that has children with them."""
    check_holds(taxonomy, "children", names=False)
    require(bool(root), "root", "a name for the root, which has a row here", root)
    _check_root(taxonomy, "children", root)
    heads = [label for label in taxonomy.labels if taxonomy.children(label)]
    everything = [[root, *taxonomy.top_labels], *([label, *taxonomy.children(label)] for label in heads)]
    write_rows(out, "children", everything, delimiter)


def header_columns(cells: Sequence[str]) -> Columns | None:
    """The columns of a header that names a parent and a child; None where the row is no such header.

    Examples
    --------
    >>> header_columns(["Label", "Name", "Parent_ID"])
    Columns(parent=2, child=0, name=1, definition=None, left_out=())
    >>> header_columns(["Food", "Bars"]) is None
    True
    """
    words = [folded(cell) for cell in cells]
    parent = _first(words, PARENT_HEADINGS, ())
    child = _first(words, CHILD_HEADINGS, ())
    if parent is None or child is None:
        return None
    name = _first(words, NAME_HEADINGS, (parent, child))
    definition = _first(words, DEFINITION_HEADINGS, ())
    left_out = tuple(cell for i, cell in enumerate(cells) if i not in (parent, child, name, definition) and cell)
    return Columns(parent, child, name, definition, left_out)


def is_half_header(cells: Sequence[str]) -> bool:
    """Whether a row has headings, two at least, but none of them for the parent: a table that lost a column.

    Examples
    --------
    >>> is_half_header(["id", "name", "size"]), is_half_header(["Name", "Bars"]), is_half_header(["parent", "child"])
    (True, False, False)
    """
    words = {folded(cell) for cell in cells}
    return words.isdisjoint(PARENT_HEADINGS) and len(words & {*CHILD_HEADINGS, *NAME_HEADINGS}) > 1


def _check_no_half_header(content: Content, row: TableRow) -> None:
    if is_half_header(row[1]):
        given = ", ".join(shown(cell) for cell in row[1] if cell)
        message = f"there is no column for the parent, such as 'parent'; the columns are {given}"
        raise content.error(row[0], f"{message}; add it, or say header=False if these are labels")


def _first(words: Sequence[str], wanted: Sequence[str], taken: Sequence[int]) -> int | None:
    return next((words.index(word) for word in wanted if word in words and words.index(word) not in taken), None)


def _check_direction(content: Content, row: TableRow, columns: Columns, direction: str | None) -> None:
    found = DOWN if columns.parent < columns.child else UP
    if direction not in (None, found):
        message = (
            f"the header says {found}, but direction={direction!r} is asked for; leave it out, or use header=False"
        )
        raise content.error(row[0], message)


def _positions(rows: Sequence[TableRow], direction: str | None) -> tuple[Columns, str | None]:
    """The columns of a table without a header, and a remark where the direction had to be assumed.

    An edge list turned round is as good a DAG as before, so only two signs tell the direction: where a label called
    root stands, and in which column no label is repeated (in a tree, every child has one row).
    """
    if direction is not None:
        return (Columns(0, 1) if direction == DOWN else Columns(1, 0)), None
    left, right = (Counter(cells[i] for _, cells in rows if len(cells) > i and cells[i]) for i in (0, 1))
    root_left, root_right = ("root" in {label.casefold() for label in side} for side in (left, right))
    repeats_left, repeats_right = (any(times > 1 for times in side.values()) for side in (left, right))
    if root_left != root_right:
        return (Columns(0, 1) if root_left else Columns(1, 0)), None
    if repeats_right and not repeats_left:
        return Columns(1, 0), "no header: read as child-parent, as no label of the first column is repeated"
    if repeats_right:
        return Columns(
            0, 1
        ), 'no header: read as parent-child; if it is the other way round, say direction="child-parent"'
    return Columns(0, 1), None


def _check_two(content: Content, rows: Sequence[TableRow]) -> None:
    for line, cells in rows:
        if len(cells) != 2:
            message = (
                f"a parent and a child are expected, got {len(cells)} cell{'s' * (len(cells) != 1)}; if a row is a "
                'parent with all its children, say format="children", if it is a path, format="columns"'
            )
            raise content.error(line, message)


def _cell(cells: Sequence[str], column: int | None) -> str:
    return cells[column] if column is not None and column < len(cells) else ""


def _add(content: Content, edges: Edges, line: int, cells: Sequence[str], columns: Columns, own_rows: bool) -> None:
    parent, child, name = (_cell(cells, column) for column in (columns.parent, columns.child, columns.name))
    if not child:
        raise content.error(line, f"the child is empty; a row is a parent and a child, got {shown(str(list(cells)))}")
    if parent and not own_rows:
        edges.label(parent, line)
    edges.child(child, line, parent or None, name or (child if columns.name is not None else None))
    if columns.definition is not None:
        edges.define(child, line, _cell(cells, columns.definition))


def _check_root(taxonomy: Taxonomy, kind: str, root: str | None) -> None:
    check_no_root(taxonomy, kind)
    if root is not None and (root in taxonomy or root.casefold() != "root"):
        reason = f"{shown(root)} is a label" if root in taxonomy else f"{shown(root)} would be read as a label"
        raise refuse(kind, f"the root needs a name that is no label, and {reason}", 'call it "Root"')
