"""CSV and TSV: a header line with the names of the columns, then one document a record."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hilap.corpus.formats.sources import name_of
from hilap.corpus.rows import Columns, Extractor, Faults, Row
from hilap.corpus.values import BadLineError, cell_numbers
from hilap.errors import CorpusError
from hilap.files import MOST_LINE_BYTES, STDIN, display, read_lines

DELIMITERS = ("\t", ",", ";")


@dataclass(frozen=True)
class Delimited:
    """Reads files of cells. A cell in quotes may hold line ends, which are read as line feeds."""

    sources: Sequence[str | Path]
    columns: Columns
    delimiter: str | None = None  # None: found from the header
    width: int | None = None

    @property
    def name(self) -> str:
        """How the corpus is called in messages."""
        return name_of(self.sources)

    @property
    def once(self) -> bool:
        """Standard input cannot be read twice."""
        return str(self.sources[0]) == STDIN

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order; the line is the one where the record starts."""
        for source in self.sources:
            place = f"{display(source)}:"
            lines = _Lines(read_lines(source, CorpusError, on_bad=faults.of_lines(place)))
            records = _Records(lines, self._delimiter(lines.peek()))
            try:
                header = [name.strip() for name in next(records, [])]
            except BadLineError as fault:
                raise CorpusError(f"{place}{lines.first}: the header cannot be read: {fault}") from None
            if header:
                yield from self._documents(records, lines, header, place, faults)

    def _documents(
        self, records: _Records, lines: _Lines, header: list[str], place: str, faults: Faults
    ) -> Iterator[Row]:
        try:
            extractor = Extractor(self.columns, header, place, table=True, many=len(self.sources) > 1)
        except BadLineError as fault:
            raise CorpusError(f"{place}{lines.first}: {fault}") from None
        positions = {name: header.index(name) for name in extractor.needed if name not in extractor.features}
        numeric = [header.index(name) for name in extractor.features]
        while True:
            try:
                cells = next(records, None)
                if cells is None:
                    return
                if not cells:  # an empty line
                    continue
                if len(cells) != len(header):
                    raise BadLineError(f"there are {len(cells)} cells, but the header has {len(header)}")
                features = cell_numbers([cells[k] for k in numeric], extractor.features) if numeric else None
                row = extractor.row({name: cells[k] for name, k in positions.items()}, lines.first, features)
            except BadLineError as fault:
                faults(place, lines.first, fault)
                continue
            yield row

    def _delimiter(self, header: str) -> str:
        """The delimiter under which most of the wanted columns are in the header, then the one with most cells."""
        if self.delimiter is not None:
            return self.delimiter
        columns = self.columns
        wanted = {columns.id, *columns.text, columns.labels, columns.group, *(columns.features or ())}

        def fit(delimiter: str) -> tuple[int, int]:
            cells = [cell.strip().strip('"') for cell in header.split(delimiter)]
            return len(wanted.intersection(cells)), len(cells)

        return max(DELIMITERS, key=fit)


class _Lines:
    """The lines of a file for the csv module, which remembers where the current record started."""

    def __init__(self, numbered: Iterator[tuple[int, str]]) -> None:
        self._numbered = numbered
        self._ahead: tuple[int, str] | None = None
        self.first = 1
        self.begins = True

    def peek(self) -> str:
        """The first line, which stays."""
        self._ahead = next(self._numbered, None)
        return self._ahead[1] if self._ahead else ""

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        number, line = self._ahead or next(self._numbered)
        self._ahead = None
        if self.begins:
            self.first, self.begins = number, False
        return line + "\n"


class _Records:
    """The records of a file as lists of cells; after one that cannot be read the next one follows."""

    def __init__(self, lines: _Lines, delimiter: str) -> None:
        self._lines = lines
        self._reader = csv.reader(lines, delimiter=delimiter, strict=True)

    def __iter__(self) -> _Records:
        return self

    def __next__(self) -> list[str]:
        self._lines.begins = True
        before = csv.field_size_limit(MOST_LINE_BYTES)  # the module's own limit is less than a long document
        try:
            return next(self._reader)
        except csv.Error as fault:
            raise BadLineError(_reason(str(fault))) from None
        finally:
            csv.field_size_limit(before)


def _reason(fault: str) -> str:
    if "unexpected end of data" in fault:
        return "a quote is opened but never closed; write a quote inside a quoted cell twice"
    if "field larger" in fault:
        return f"a cell is longer than {MOST_LINE_BYTES:,} characters; is a quote never closed?"
    if "expected after" in fault:
        return "something follows a closing quote; write a quote inside a quoted cell twice"
    return f"not valid CSV ({fault})"


__all__ = ["Delimited"]
