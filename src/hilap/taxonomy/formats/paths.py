"""Paths: `A > B > C` a line, with an id before it or not; or a column for each level."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from hilap.errors import require
from hilap.taxonomy.draft import Draft
from hilap.taxonomy.formats.building import SEPARATOR, Root, Row, check_ids, draft_of_paths
from hilap.taxonomy.formats.content import Content, is_comment, shown
from hilap.taxonomy.formats.holding import named_paths, refuse
from hilap.taxonomy.formats.tables import DEFINITION_HEADINGS, TableRow, folded, read_rows, write_rows
from hilap.taxonomy.graph import Taxonomy

SEPARATORS = (" > ", ">", " :: ", "::", " / ", "/", " | ", "|")
ID_HEADINGS = ("id", "unique id", "label id", "code")
LEVEL_HEADING = re.compile(r"(?:level|lvl|l|tier|category|cat|subcategory|layer|depth) ?\.?\d{1,3}")
SUB_HEADING = re.compile(r"(?:sub ?)+category")

_NUMBERED = re.compile(r"\s*(\S+)\s+-\s+(.*)")
_DIGITS = re.compile(r"\s*\d+\s+-\s+\S")


def read_paths(
    content: Content,
    *,
    separator: str | None = None,
    numbered: bool | None = None,
    ids: str = "path",
    root: Root = None,
) -> Draft:
    """A path from the top down a line; with numbers (`166 - Apparel > Shoes`), the number is the id."""
    check_ids(ids)
    require(
        separator is None or (isinstance(separator, str) and bool(separator.strip())), "separator", "a text", separator
    )
    lines = list(content.significant_lines())
    if numbered is None:
        numbered = bool(lines) and all(_DIGITS.match(text) for _, text in lines)
    chosen = separator or separator_of(text for _, text in lines) or SEPARATOR
    rows = [_row(content, line, text, chosen, numbered) for line, text in lines]
    return draft_of_paths(content, "paths", rows, ids, chosen, root)


def read_columns(
    content: Content,
    *,
    header: bool | None = None,
    delimiter: str | None = None,
    numbered: bool | None = None,
    ids: str = "path",
    separator: str = SEPARATOR,
    root: Root = None,
) -> Draft:
    """A column for each level, empty where a path ends; an id and a definition are in columns of their own."""
    check_ids(ids)
    rows, _ = read_rows(content, delimiter)
    columns = level_columns(rows[0][1]) if rows and header is not False else None
    left_out: list[str] = []
    definition: int | None = None
    if columns is not None:
        levels, id_column = columns
        definition = definition_column(rows[0][1])
        left_out = [cell for i, cell in enumerate(rows[0][1]) if cell and i not in (*levels, id_column, definition)]
        id_column = None if numbered is False else id_column
        if numbered and id_column is None:
            raise content.error(
                rows[0][0], f"no column is called {' or '.join(ID_HEADINGS)}, but numbered=True asks for it"
            )
    else:
        width = max((len(cells) for _, cells in rows), default=0)
        levels, id_column = list(range(1 if numbered else 0, width)), 0 if numbered else None
    if columns is not None or header:
        rows = rows[1:]
    paths = list(_table_paths(content, rows, levels, id_column, definition))
    draft = draft_of_paths(content, "columns", paths, ids, separator, root)
    if left_out:
        draft.remarks.append((1, f"columns that are not read: {', '.join(shown(word) for word in left_out)}"))
    return draft


def write_paths(
    taxonomy: Taxonomy, out: IO[str], *, separator: str = SEPARATOR, numbered: bool = False, ids: str = "path"
) -> None:
    """A path of names a line. Ids are the paths, or the names (`ids="name"`), or stand first (`numbered`)."""
    lines: list[str] = []
    for label, path in named_paths(taxonomy, "paths", ids, separator, numbered=numbered):
        line = separator.join(path)
        if tuple(part.strip() for part in line.split(separator)) != path or is_comment(line):
            raise refuse("paths", f"{shown(line)} would not be read back as this path", "choose another separator")
        if numbered:
            line = f"{label} - {line}"
            match = _NUMBERED.fullmatch(line)
            if match is None or match[1] != label or is_comment(line):
                raise refuse("paths", f"id {shown(label)} has blanks or cannot stand first", "write it as jsonl")
        lines.append(line)
    if separator in SEPARATORS and separator_of(lines) not in (separator, None):
        reason = f"{separator_of(lines)!r} in a name would be taken for the separator"
        raise refuse("paths", reason, "choose that separator, or write it as jsonl")
    if not numbered and all(_DIGITS.match(line) for line in lines):
        raise refuse("paths", f"{shown(lines[0])} would be read as a number and a path", "write it as jsonl")
    out.writelines(line + "\n" for line in lines)


def write_columns(
    taxonomy: Taxonomy,
    out: IO[str],
    *,
    delimiter: str = "\t",
    numbered: bool = False,
    ids: str = "path",
    separator: str = SEPARATOR,
) -> None:
    """A header `level 1`, `level 2`, ..., then a path of names a row; `numbered` puts the id first."""
    depth, defined = taxonomy.depth, any(taxonomy.definitions)

    def rows() -> Iterator[list[str]]:
        yield ["id"] * numbered + [f"level {level}" for level in range(1, depth + 1)] + ["definition"] * defined
        for label, path in named_paths(taxonomy, "columns", ids, separator, numbered=numbered, definitions=True):
            levels = [*path, *[""] * (depth - len(path))]
            yield [label] * numbered + levels + [taxonomy.definition(label)] * defined

    write_rows(out, "columns", rows(), delimiter)


def separator_of(lines: Iterable[str]) -> str | None:
    """The first of the usual separators that occurs anywhere: blanks around it count, `AC/DC / Live` has two parts.

    Examples
    --------
    >>> separator_of(["Food", "Food > Bars/Pubs"]), separator_of(["Food/Bars"])
    (' > ', '/')
    """
    text = "\n".join(lines)
    return next((separator for separator in SEPARATORS if separator in text), None)


def level_columns(cells: Sequence[str]) -> tuple[list[int], int | None] | None:
    """The columns of the levels and of the id in a header; None where the row is no such header.

    Examples
    --------
    >>> level_columns(["id", "Level 1", "Level 2"]), level_columns(["Category", "Sub-Category"])
    (([1, 2], 0), ([0, 1], None))
    """
    words = [folded(cell) for cell in cells]
    below = any(SUB_HEADING.fullmatch(word) for word in words)  # beside a subcategory, a category is a level too
    heading = (
        re.compile(f"{LEVEL_HEADING.pattern}|(?:main )?category|{SUB_HEADING.pattern}") if below else LEVEL_HEADING
    )
    levels = [i for i, word in enumerate(words) if heading.fullmatch(word)]
    id_column = next((words.index(word) for word in ID_HEADINGS if word in words), None)
    return (levels, id_column) if levels else None


def definition_column(cells: Sequence[str]) -> int | None:
    """The column of definitions in a header, if it has one.

    Examples
    --------
    >>> definition_column(["Level 1", "Level 2", "Scope note"])
    2
    """
    words = [folded(cell) for cell in cells]
    return next((words.index(word) for word in DEFINITION_HEADINGS if word in words), None)


def _row(content: Content, line: int, text: str, separator: str, numbered: bool) -> Row:
    label: str | None = None
    if numbered:
        match = _NUMBERED.fullmatch(text)
        if match is None:
            raise content.error(line, f"'id - path' is expected, as in '166 - Apparel', got {shown(text)}")
        label, text = match[1], match[2]
    path = tuple(part.strip() for part in text.split(separator))
    if not all(path):
        message = f"a part of the path {shown(text)} is empty; is {separator!r} the separator?"
        raise content.error(line, message)
    return Row(line, path, label)


def _table_paths(
    content: Content, rows: Iterable[TableRow], levels: Sequence[int], id_column: int | None, definition: int | None
) -> Iterator[Row]:
    """The path of each row. Empty cells at its start mean the same as in the row above, as in an outline."""
    before: tuple[str, ...] = ()
    for line, cells in rows:
        parts = [cells[i] if i < len(cells) else "" for i in levels]
        while parts and not parts[-1]:
            parts.pop()
        start = next((i for i, part in enumerate(parts) if part), 0)
        if not parts or start > len(before) or not all(parts[start:]):
            message = f"a level is empty between others, or nothing stands above it: {shown(str(parts))}"
            raise content.error(line, message)
        before = (*before[:start], *parts[start:])
        label = None if id_column is None else cells[id_column] if id_column < len(cells) else ""
        yield Row(line, before, label, cells[definition] if definition is not None and definition < len(cells) else "")
