"""Clus ARFF: a header with attributes and the taxonomy, then one document a line, its labels as `a@b`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from hilap.corpus.formats.sources import name_of
from hilap.corpus.rows import Columns, Faults, Row
from hilap.corpus.values import MOST_FLOAT32, BadLineError, cell_numbers, shorten
from hilap.errors import CorpusError
from hilap.files import display, read_lines
from hilap.taxonomy.formats.clus import ClusHeader, parse_header
from hilap.taxonomy.graph import Taxonomy

NUMERIC = ("numeric", "real", "integer")
_CELL = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,'"][^,]*|))\s*(?:,|$)""")
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True)
class _Attribute:
    """One column before the data: what it is and where its features start."""

    name: str
    kind: Literal["number", "choice", "id", "text", "labels"]
    start: int
    choices: tuple[str, ...] = ()

    @property
    def span(self) -> int:
        return {"number": 1, "choice": len(self.choices)}.get(self.kind, 0)

    def values(self, cell: str) -> list[float | None]:
        """The features in a cell: a number, or a one among zeros for a choice."""
        if self.kind == "number":
            return cell_numbers([cell], [self.name])
        if cell == "?":
            return [None] * self.span
        if cell not in self.choices:
            listed = ", ".join(self.choices[:10]) + (", ..." if len(self.choices) > 10 else "")
            raise BadLineError(f"attribute {self.name!r} must be one of {listed}, got {shorten(cell)}")
        return [float(cell == choice) for choice in self.choices]


@dataclass
class ClusArff:
    """Reads Clus ARFF files: numbers as they are, choices `{a,b}` as one column each, `?` as a missing value.

    Rows may be sparse, `{3 0.5, 7 1}`; where the first one is, all features are.
    """

    sources: Sequence[str | Path]
    columns: Columns
    once: bool = False

    @property
    def name(self) -> str:
        """How the corpus is called in messages."""
        return name_of(self.sources)

    @property
    def width(self) -> int | None:
        """The number of features where they are sparse."""
        return sum(a.span for a in self._attributes) if self._first[1] else None

    def taxonomy(self) -> Taxonomy:
        """The taxonomy in the header of the first file."""
        return self._first[0].draft.build()

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order."""
        attributes, sparse = self._attributes, self._first[1]
        for source in self.sources:
            place = f"{display(source)}:"
            lines = read_lines(source, CorpusError, on_bad=faults.of_lines(place))
            self._check_same(parse_header(lines, display(source)), source)
            rows = _Rows(attributes, self.columns, place, sparse=sparse, many=len(self.sources) > 1)
            for number, line in lines:
                text = line.strip()
                if not text or text.startswith("%"):
                    continue
                try:
                    row = rows.row(text, number)
                except BadLineError as fault:
                    faults(place, number, fault)
                    continue
                yield row

    @cached_property
    def _first(self) -> tuple[ClusHeader, bool]:
        """The header of the first file, and whether its first row is sparse."""
        lines = read_lines(self.sources[0], CorpusError, on_bad=lambda number, fault: None)
        header = parse_header(lines, display(self.sources[0]))
        data = (line.strip() for _, line in lines)
        return header, next((line for line in data if line and not line.startswith("%")), "").startswith("{")

    @cached_property
    def _attributes(self) -> list[_Attribute]:
        header, found, start = self._first[0], [], 0
        for name, kind in header.attributes:
            attribute = self._attribute(name, kind, start)
            found.append(attribute)
            start += attribute.span
        found.insert(header.class_position, _Attribute("class", "labels", 0))
        return found

    def _attribute(self, name: str, kind: str, start: int) -> _Attribute:
        if kind.casefold() in NUMERIC:
            return _Attribute(name, "number", start)
        if kind.startswith("{") and kind.endswith("}"):
            return _Attribute(name, "choice", start, self._choices(name, kind))
        if kind.casefold() == "key" or (kind.casefold() == "string" and name == self.columns.id):
            return _Attribute(name, "id", start)
        if kind.casefold() == "string" and name in self.columns.text:
            return _Attribute(name, "text", start)
        raise CorpusError(
            f"{display(self.sources[0])}: attribute {name!r} is of type {shorten(kind)}; "
            "numeric, real, integer or {a,b} can be features, key and string only the id or the text"
        )

    def _choices(self, name: str, kind: str) -> tuple[str, ...]:
        try:
            choices = tuple(dict.fromkeys(cell for cell in _cells(kind[1:-1].strip()) if cell))
            reason: object = "there are none"
        except BadLineError as fault:
            choices, reason = (), fault
        if not choices:
            where = display(self.sources[0])
            raise CorpusError(f"{where}: the choices {shorten(kind)} of attribute {name!r} cannot be read: {reason}")
        return choices

    def _check_same(self, header: ClusHeader, source: str | Path) -> None:
        first = self._first[0]
        if (header.attributes, header.class_position) != (first.attributes, first.class_position):
            raise CorpusError(
                f"{display(source)}: the attributes are not those of {display(self.sources[0])}; read the files apart"
            )


class _Rows:
    """Turns lines of data into rows."""

    def __init__(self, attributes: list[_Attribute], columns: Columns, place: str, *, sparse: bool, many: bool) -> None:
        self._attributes = attributes
        self._columns = columns
        self._place = place
        self._sparse = sparse
        self._many = many
        self._width = sum(a.span for a in attributes)
        self._at = next(k for k, a in enumerate(attributes) if a.kind == "labels")
        self._names = [a.name for a in attributes if a.kind == "number"]
        self._plain = len(self._names) == len(attributes) - 1  # numbers and labels, as in most files
        self._texts = [k for k, a in enumerate(attributes) if a.kind == "text"]

    def row(self, line: str, number: int) -> Row:
        if line.startswith("{"):
            given = _pairs(line, len(self._attributes))
            features = self._arranged(self._sparse_entries(given))
        else:
            cells = _cells(line)
            if len(cells) != len(self._attributes):
                raise BadLineError(
                    f"there are {len(cells)} values, but the header has {len(self._attributes)} attributes"
                )
            given = dict(enumerate(cells))
            features = self._dense(cells)
            if self._sparse:
                features = self._arranged([(k, v) for k, v in enumerate(features) if v != 0])
        return Row(
            self._place,
            number,
            self._id(given, number),
            "\n".join(given.get(k, "") for k in self._texts) if self._texts else None,
            _labels(given.get(self._at, "")) if self._columns.labels is not None else [],
            features if self._width else None,
            None,
        )

    def _dense(self, cells: list[str]) -> list[float | None]:
        if self._plain:
            return cell_numbers(cells[: self._at] + cells[self._at + 1 :], self._names)
        return [v for a, cell in zip(self._attributes, cells, strict=True) if a.span for v in a.values(cell)]

    def _sparse_entries(self, given: dict[int, str]) -> list[tuple[int, float | None]]:
        """What is not zero in a sparse row; a choice that is not mentioned is the first one."""
        entries: list[tuple[int, float | None]] = []
        for k, attribute in enumerate(self._attributes):
            if k in given and attribute.span:
                values = attribute.values(given[k])
                entries += [(attribute.start + j, v) for j, v in enumerate(values) if v != 0]
            elif attribute.kind == "choice":
                entries.append((attribute.start, 1.0))
        return entries

    def _arranged(self, entries: list[tuple[int, float | None]]) -> Any:
        """Entries as the corpus wants them: as a sparse row, or among zeros."""
        if self._sparse:
            values = [math.nan if v is None else v for _, v in entries]
            if any(abs(v) > MOST_FLOAT32 for v in values):
                raise BadLineError("a value is infinite or too large; give finite numbers, '?' where one is missing")
            return [k for k, _ in entries], values
        vector: list[float | None] = [0.0] * self._width
        for k, v in entries:
            vector[k] = v
        return vector

    def _id(self, given: dict[int, str], number: int) -> str:
        for k, attribute in enumerate(self._attributes):
            if attribute.kind == "id" and given.get(k):
                return given[k]
        return f"{self._place}{number}" if self._many else str(number)


def _labels(cell: str) -> list[str]:
    return [] if cell.strip() == "?" else [label for label in map(str.strip, cell.split("@")) if label]


def _cells(line: str) -> list[str]:
    """The values of a line, without their quotes."""
    if "'" not in line and '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    cells, at = [], 0
    while True:
        found = _CELL.match(line, at)
        if found is None:
            raise BadLineError(f"a quote is not closed, or something follows it, at column {at + 1}")
        single, double, bare = found.groups()
        quoted = single if single is not None else double
        cells.append(bare.strip() if quoted is None else _ESCAPE.sub(r"\1", quoted))
        at = found.end()
        if at == len(line) and not line[found.start() : at].endswith(","):
            return cells


def _pairs(line: str, n: int) -> dict[int, str]:
    """A sparse line as position -> value."""
    if not line.endswith("}"):
        raise BadLineError("a sparse row starts with '{' but does not end with '}'")
    inside = line[1:-1].strip()
    found: dict[int, str] = {}
    for pair in _cells_of_pairs(inside) if inside else ():
        index, _, value = pair.partition(" ")
        if not (index.isascii() and index.isdigit()) or len(index) > 9 or int(index) >= n:
            raise BadLineError(f"a sparse row needs positions from 0 to {n - 1}, got {shorten(index)}")
        if int(index) in found:
            raise BadLineError(f"position {index} is there twice")
        value = value.strip()
        if not value:
            raise BadLineError(f"position {index} has no value")
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        found[int(index)] = _ESCAPE.sub(r"\1", value[1:-1]) if quoted else value
    return found


_PAIR = re.compile(r"""((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,'"])+)(?:,|$)""")


def _cells_of_pairs(inside: str) -> list[str]:
    if "'" not in inside and '"' not in inside:
        return [pair.strip() for pair in inside.split(",")]
    pairs, at = [], 0
    while at < len(inside):
        found = _PAIR.match(inside, at)
        if found is None:
            raise BadLineError(f"a quote is not closed, or a pair is empty, at column {at + 2}")
        pairs.append(found.group(1).strip())
        at = found.end()
    return pairs


__all__ = ["ClusArff"]
