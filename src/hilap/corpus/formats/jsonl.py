"""JSON: one object a line (JSONL), or a file that is one array of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilap.corpus.formats.sources import name_of
from hilap.corpus.rows import VECTOR, Columns, Extractor, Faults, Row
from hilap.corpus.values import BadLineError
from hilap.errors import CorpusError
from hilap.files import STDIN, display, read_lines, read_text


class _NotJsonError(ValueError):
    """A token that JSON does not have."""


def _refuse(token: str) -> Any:
    raise _NotJsonError(f"{token} is not JSON; write null for a missing value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class JsonLines:
    """Reads files with one JSON object a line."""

    sources: Sequence[str | Path]
    columns: Columns
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
        """The documents in order."""
        for source in self.sources:
            place = f"{display(source)}:"
            documents = Documents(self.columns, place, many=len(self.sources) > 1)
            for number, line in read_lines(source, CorpusError, on_bad=faults.of_lines(place)):
                if not line or line.isspace():
                    continue
                try:
                    row = documents.row(_record(line), number)
                except BadLineError as fault:
                    faults(place, number, fault)
                    continue
                yield row


@dataclass(frozen=True)
class JsonArray:
    """Reads files that are one JSON array of objects. A file is held in memory as text, its objects are not."""

    sources: Sequence[str | Path]
    columns: Columns
    width: int | None = None
    once: bool = False

    @property
    def name(self) -> str:
        """How the corpus is called in messages."""
        return name_of(self.sources)

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order; the line is the one where the object starts."""
        for source in self.sources:
            place = f"{display(source)}:"
            documents = Documents(self.columns, place, many=len(self.sources) > 1)
            for number, value, suspicious in _elements(read_text(source, CorpusError), place):
                try:
                    if suspicious:
                        _check_characters(value)
                    row = documents.row(_checked(value), number)
                except BadLineError as fault:
                    faults(place, number, fault)
                    continue
                yield row


class Documents:
    """Takes documents out of objects, the first good one of which shows what there is."""

    def __init__(self, columns: Columns, place: str, *, many: bool = False) -> None:
        self._columns = columns
        self._place = place
        self._many = many
        self._extractor: Extractor | None = None

    def row(self, record: dict[str, Any], number: int) -> Row:
        """The document in an object."""
        if self._extractor is not None:
            return self._extractor.row(record, number)
        vector = isinstance(record.get(VECTOR), list)
        extractor = Extractor(self._columns, list(record), self._place, table=False, vector=vector, many=self._many)
        row = extractor.row(record, number)
        self._extractor = extractor
        return row


def _record(line: str) -> dict[str, Any]:
    try:
        value, end = _DECODER.raw_decode(line) if line[0] == "{" else (None, 0)
        if end != len(line):  # something before or behind the object: white space, or an error to be told
            value = _DECODER.decode(line)
    except json.JSONDecodeError as fault:
        raise BadLineError(f"not valid JSON ({fault.msg} at column {fault.colno})") from None
    except _NotJsonError as fault:
        raise BadLineError(fault) from None
    except RecursionError:
        raise BadLineError("not valid JSON (nested too deeply)") from None
    except ValueError:  # an integer with thousands of digits
        raise BadLineError("not valid JSON (a number has too many digits)") from None
    record = _checked(value)
    if "\\ud" in line or "\\uD" in line:
        _check_characters(record)
    return record


def _checked(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        kinds = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
        raise BadLineError(f"a JSON object is needed on every line, got {kinds.get(type(value), 'a number')}")
    return value


def _check_characters(record: Any) -> None:
    """Escapes may name half of a character, which no file could hold when it is written again."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as fault:
        half = ascii(fault.object[fault.start])
        raise BadLineError(f"{half} is half of a character; the text was cut in the middle of one") from None


def _elements(text: str, place: str) -> Iterator[tuple[int, Any, bool]]:
    """The elements of an array with the lines they start on, and whether they may hold halves of characters."""
    at, line = _skip(text, 0, 1)
    if text[at : at + 1] != "[":
        raise CorpusError(f"{place}{line}: a JSON array is needed, which starts with '['")
    at, line = _skip(text, at + 1, line)
    first = True
    while text[at : at + 1] != "]":
        if not first:
            if text[at : at + 1] != ",":
                raise CorpusError(f"{place}{line}: not valid JSON (',' or ']' is needed after an object)")
            at, line = _skip(text, at + 1, line)
        first = False
        value, end = _decoded(text, at, line, place)
        yield line, value, "\\ud" in text[at:end].lower()
        at, line = _skip(text, end, line + text.count("\n", at, end))
    if _skip(text, at + 1, line)[0] != len(text):
        raise CorpusError(f"{place}{line}: not valid JSON (something follows the array)")


def _decoded(text: str, at: int, line: int, place: str) -> tuple[Any, int]:
    """One element and where it ends. Behind broken JSON nothing can be told, so it is an error always."""
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as fault:
        raise CorpusError(f"{place}{fault.lineno}: not valid JSON ({fault.msg} at column {fault.colno})") from None
    except _NotJsonError as fault:
        raise CorpusError(f"{place}{line}: {fault}") from None
    except RecursionError:
        raise CorpusError(f"{place}{line}: not valid JSON (nested too deeply)") from None
    except ValueError:
        raise CorpusError(f"{place}{line}: not valid JSON (a number has too many digits)") from None


def _skip(text: str, at: int, line: int) -> tuple[int, int]:
    """Past white space: where, and on which line."""
    found = _SPACE.match(text, at)
    end = found.end() if found else at
    return end, line + text.count("\n", at, end)


__all__ = ["Documents", "JsonArray", "JsonLines"]
