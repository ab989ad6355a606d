"""svmlight with several labels: `label,label index:value index:value # comment`, one document a line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from hilap.corpus.formats.sources import name_of
from hilap.corpus.report import ReadReport
from hilap.corpus.rows import Columns, Faults, Row
from hilap.corpus.values import MOST_FLOAT32, BadLineError, shorten
from hilap.errors import CorpusError
from hilap.files import display, read_lines

ID_MARK = "id: "  # `# id: 42` is how the writer keeps an id
MOST_FEATURES = 2_000_000_000
_PAIRS = re.compile(r"(?:\s+[0-9]{1,10}:[0-9eE.+-]+)*\s*", re.ASCII)
_PAIR = re.compile(r"[0-9]{1,10}:[^\s:]+", re.ASCII)


class _Line(NamedTuple):
    labels: list[str]
    indices: list[int]
    values: list[float]
    comment: str


@dataclass
class SvmLight:
    """Reads svmlight files into sparse rows.

    The number of columns, and whether the first index is 0 or 1, belong to the whole: unless both are given, the files
    are read once more than asked for. Without a 0 anywhere the first index is 1.
    """

    sources: Sequence[str | Path]
    columns: Columns
    n_features: int | None = None
    index_base: Literal["auto", 0, 1] = "auto"
    bad_lines: Literal["error", "skip"] = "error"
    once: bool = False

    @property
    def name(self) -> str:
        """How the corpus is called in messages."""
        return name_of(self.sources)

    @property
    def width(self) -> int:
        """The number of columns."""
        return self._space[0]

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order."""
        width, base = self._space
        for place, number, line in self._lines(faults):
            indices = [i - base for i in line.indices] if base else line.indices
            if indices and (min(indices) < 0 or max(indices) >= width):
                faults(
                    place, number, f"an index must be from {base} to {width + base - 1}, got {_odd(line, width, base)}"
                )
                continue
            marked = line.comment.startswith(ID_MARK) and self.columns.id is not None
            usual = f"{place}{number}" if len(self.sources) > 1 else str(number)
            labels = line.labels if self.columns.labels is not None else []
            doc = line.comment.removeprefix(ID_MARK) if marked else usual
            yield Row(place, number, doc, None, list(labels), (indices, line.values), None)

    @cached_property
    def _space(self) -> tuple[int, int]:
        """The number of columns and the first index."""
        if self.n_features is not None and self.index_base != "auto":
            return self.n_features, self.index_base
        least, most = 1, -1
        for _, _, line in self._lines(Faults(self.bad_lines, ReadReport())):
            if line.indices:
                least, most = min(least, min(line.indices)), max(most, max(line.indices))
        base = min(least, 1) if self.index_base == "auto" else self.index_base
        return (max(most - base + 1, 0) if self.n_features is None else self.n_features), base

    def _lines(self, faults: Faults) -> Iterator[tuple[str, int, _Line]]:
        for source in self.sources:
            place = f"{display(source)}:"
            for number, text in read_lines(source, CorpusError, on_bad=faults.of_lines(place)):
                if not text or text.isspace() or _is_remark(text):
                    continue
                try:
                    line = parse(text)
                except BadLineError as fault:
                    faults(place, number, fault)
                    continue
                yield place, number, line


def parse(text: str) -> _Line:
    """One line: labels, indices as they are written, values, comment."""
    body, _, comment = text.partition("#")
    labels, pairs = _divided(body)
    if not _PAIRS.fullmatch(pairs):
        raise BadLineError(_complaint(pairs))
    flat = pairs.replace(":", " ").split()
    indices = list(map(int, flat[::2]))
    try:
        values = list(map(float, flat[1::2]))
    except ValueError:
        raise BadLineError(_complaint(pairs)) from None
    if len(set(indices)) < len(indices):
        raise BadLineError(f"index {next(i for i in indices if indices.count(i) > 1)} is there twice")
    if indices and max(indices) > MOST_FEATURES:
        raise BadLineError(f"index {max(indices)} is larger than {MOST_FEATURES:,}")
    if values and max(map(abs, values)) > MOST_FLOAT32:
        raise BadLineError("a value is infinite or too large; give finite numbers")
    return _Line([label for label in map(str.strip, labels.split(",")) if label], indices, values, comment.strip())


def _is_remark(text: str) -> bool:
    """Whether a line is a comment only; one that gives an id is a document with neither labels nor features."""
    bare = text.lstrip()
    return bare.startswith("#") and not bare[1:].lstrip().startswith(ID_MARK)


def _divided(body: str) -> tuple[str, str]:
    """The labels and the pairs of a line. A line that starts with white space or with a pair has no labels."""
    if body[:1].isspace():
        return "", body
    first, space, rest = body.partition(" ") if " " in body else body.partition("\t")
    if _PAIR.fullmatch(first):
        return "", f" {body}"
    return first, space + rest


def _complaint(pairs: str) -> str:
    for token in pairs.split():
        index, colon, value = token.partition(":")
        if index == "qid":
            return "'qid:' is for rankings and has no meaning here; remove it"
        if not colon or not (index.isascii() and index.isdigit()) or len(index) > 10:
            return f"index:value is needed, got {shorten(token)}"
        try:
            number = float(value)
        except ValueError:
            return f"the value of index {index} must be a number, got {shorten(value)}"
        if not math.isfinite(number):
            return f"the value of index {index} must be a finite number, got {value!r}; leave missing values out"
    return "index:value is needed after the labels"


def _odd(line: _Line, width: int, base: int) -> int:
    return next(i for i in line.indices if not base <= i < width + base)


__all__ = ["SvmLight", "parse"]
