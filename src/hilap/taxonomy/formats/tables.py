"""Rows of cells: TSV as people write it, CSV as spreadsheets do, with the line of every row."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TypeAlias

from hilap.errors import TaxonomyError, require
from hilap.files import MOST_LINE_BYTES
from hilap.taxonomy.formats.content import Content, is_comment, shown
from hilap.taxonomy.formats.holding import refuse

TableRow: TypeAlias = tuple[int, list[str]]
DEFINITION_HEADINGS = ("definition", "description", "scope note")


def delimiter_of(line: str) -> str:
    """The delimiter of a table, judged from a line: a tab, else what occurs more often of comma and semicolon."""
    if "\t" in line:
        return "\t"
    return ";" if line.count(";") > line.count(",") else ","


def read_rows(content: Content, delimiter: str | None) -> tuple[list[TableRow], str]:
    """All rows that are not empty, cells stripped, and the delimiter."""
    check_delimiter(delimiter)
    lines = content.significant_lines()
    first = next(lines, None)
    if first is None:
        return [], delimiter or "\t"
    chosen = delimiter or delimiter_of(first[1])
    everything = _chained(first, lines)
    rows = tab_rows(everything) if chosen == "\t" else quoted_rows(everything, chosen, content.error)
    stripped = ((line, [cell.strip() for cell in cells]) for line, cells in rows)
    return [(line, cells) for line, cells in stripped if any(cells)], chosen


def check_delimiter(delimiter: str | None) -> None:
    """A delimiter is one character that cannot be mistaken."""
    fine = delimiter is None or (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '"\r\n ')
    require(fine, "delimiter", "one character, such as a tab or a comma", delimiter)


def tab_rows(lines: Iterable[tuple[int, str]]) -> Iterator[TableRow]:
    """Rows of a TSV: a quote is an ordinary character unless it stands around a whole cell."""
    for number, line in lines:
        yield number, [_unquoted(cell) for cell in line.split("\t")]


def quoted_rows(
    lines: Iterable[tuple[int, str]], delimiter: str, error: Callable[[int, str], TaxonomyError]
) -> Iterator[TableRow]:
    """Rows of a CSV, whose cells may be quoted and hold line ends."""
    at = [0, 0]  # first and last line of the row under way

    def fed() -> Iterator[str]:
        for number, line in lines:
            at[0] = at[0] or number
            at[1] = number
            yield line + "\n"

    reader = csv.reader(fed(), delimiter=delimiter, strict=True)
    while True:
        at[0] = 0
        before = csv.field_size_limit(MOST_LINE_BYTES)  # the module's own limit is less than a long definition
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            raise error(at[0], f"the row cannot be read as CSV ({fault}); check its quotes") from None
        finally:
            csv.field_size_limit(before)
        yield at[0], cells


def folded(cell: str) -> str:
    """A heading as it is compared: case, blanks, hyphens and underscores do not matter.

    Examples
    --------
    >>> folded("Parent_ID"), folded("broader-term")
    ('parent id', 'broader term')
    """
    return re.sub(r"[\s_\-]+", " ", cell).strip().casefold()


def write_rows(out: IO[str], kind: str, rows: Iterable[list[str]], delimiter: str) -> None:
    """Write a table that `read_rows` reads back as it is."""
    check_delimiter(delimiter)
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    for cells in rows:
        if is_comment(cells[0]):
            raise refuse(kind, f"{shown(cells[0])} would be read as a comment", "write it as jsonl")
        if delimiter == "\t":
            out.write("\t".join(_requoted(cell) for cell in cells) + "\n")
        else:
            writer.writerow(cells)


def _unquoted(cell: str) -> str:
    text = cell.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return cell


def _requoted(cell: str) -> str:
    quoted = len(cell) >= 2 and cell[0] == cell[-1] == '"'
    return '"' + cell.replace('"', '""') + '"' if quoted else cell


def _chained(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest
