"""The corpus: documents that are read when they are asked for, as often as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.corpus.assembly import blocks
from hilap.corpus.examples import Example, Examples
from hilap.corpus.labels import BadLabelsError, Resolver, UnresolvedError
from hilap.corpus.report import ReadReport
from hilap.corpus.rows import Faults, Reader
from hilap.corpus.values import shorten
from hilap.errors import CorpusError, require
from hilap.taxonomy.graph import Taxonomy


class Origin(NamedTuple):
    """Where the documents of a corpus come from, and what else decides how they are read."""

    reader: Reader
    rules: list[Any]  # plain values


class Corpus:
    """Documents with labels, read lazily. Get one from `hilap.corpus.read`, or from memory with `Corpus.of`.

    Attributes
    ----------
    taxonomy
        The taxonomy of the labels.
    name
        How the corpus is called in messages.
    report
        What happened in the latest reading: documents, skipped lines, dropped labels. It grows while reading.
    origin
        The reader behind it; None where there is none.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"]})
    >>> corpus = Corpus.of(["craft beer", "a lawyer"], [["Bars"], []], taxonomy)
    >>> [example.labels for example in corpus]
    [('Food', 'Bars'), ()]
    >>> corpus.report.without_labels
    1
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        name: str,
        make_blocks: Callable[[int, ReadReport], Iterator[Examples]],
        *,
        once: bool = False,
        origin: Origin | None = None,
    ) -> None:
        self.taxonomy = taxonomy
        self.name = name
        self.report = ReadReport()
        self.origin = origin
        self._make_blocks = make_blocks
        self._once = once
        self._begun = False

    @classmethod
    def of(
        cls,
        texts: Sequence[str] | None = None,
        labels: Iterable[Iterable[str]] | None = None,
        taxonomy: Taxonomy | None = None,
        *,
        features: Any = None,
        ids: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
    ) -> Corpus:
        """A corpus from memory: texts or rows of features (or both), and a collection of labels for each.

        Labels are ids, names or paths, as in files. Without labels nothing is labelled; ids default to the row
        numbers from 0. Features are a (n, F) array with NaN where a value is missing, or a sparse matrix.
        """
        examples = _examples(texts, labels, taxonomy, features, ids, groups)

        def slices(size: int, report: ReadReport) -> Iterator[Examples]:
            for start in range(0, len(examples), size):
                block = examples.take(range(start, min(start + size, len(examples))))
                report.count(block.ids, np.diff(block.labels.indptr))
                yield block

        return cls(examples.taxonomy, "the corpus in memory", slices)

    @classmethod
    def from_reader(
        cls,
        reader: Reader,
        resolver: Resolver,
        *,
        bad_lines: Literal["error", "skip"] = "error",
        close: bool = True,
    ) -> Corpus:
        """The corpus that a format's reader gives."""

        def read(size: int, report: ReadReport) -> Iterator[Examples]:
            return blocks(reader, resolver, Faults(bad_lines, report), size, close=close)

        origin = Origin(reader, [*resolver.rules, bad_lines, close])
        return cls(resolver.taxonomy, reader.name, read, once=reader.once, origin=origin)

    def batches(self, size: int = 4096) -> Iterator[Examples]:
        """The documents in order, at most `size` at a time, labels closed upward. Every call opens the source anew."""
        require(isinstance(size, (int, np.integer)) and size >= 1, "size", "at least 1", size)
        if self._once and self._begun:
            raise CorpusError(f"{self.name}: it can be read only once; load it, or save it to a file first")
        self._begun = True
        self.report = ReadReport()
        return self._make_blocks(int(size), self.report)

    @property
    def once(self) -> bool:
        """Whether it can be read only once, as standard input."""
        return self._once

    def rows(self, rows: Sequence[int] | NDArray[Any]) -> Corpus:
        """The documents at these positions, counted from 0 and ascending, as a corpus that is read lazily too."""
        chosen = np.asarray(rows, dtype=np.int64)
        if len(chosen) and (chosen[0] < 0 or (np.diff(chosen) <= 0).any()):
            raise CorpusError("rows must be positions from 0, ascending, each once")

        def pick(size: int, report: ReadReport) -> Iterator[Examples]:
            start = 0
            for block in self._make_blocks(size, ReadReport()):
                low, high = np.searchsorted(chosen, (start, start + len(block)))
                if high > low:
                    part = block.take(chosen[low:high] - start)
                    report.count(part.ids, np.diff(part.labels.indptr))
                    yield part
                start += len(block)
            if len(chosen) and chosen[-1] >= start:
                raise CorpusError(f"{self.name}: row {chosen[-1]} was asked for, but there are {start:,} documents")

        return Corpus(self.taxonomy, self.name, pick, once=self._once)

    def __iter__(self) -> Iterator[Example]:
        for block in self.batches():
            yield from block

    def load(self, memory: str | int | None = None, folder: str | Path | None = None) -> Examples:
        """All documents at once.

        Parameters
        ----------
        memory
            How much they may take in memory, such as `"500MB"`; None for any amount. Where they take more, they are
            written to a working folder once and used from there, to the same result: for texts only.
        folder
            The working folder, which stays, so that the corpus is not read again next time. None makes a temporary one.
        """
        if memory is not None:
            from hilap.corpus import stored

            return stored.load(self, memory, folder)
        require(folder is None, "folder", "None where there is no limit of memory", folder)
        parts = list(self.batches(16_384))
        if not parts:  # only a corpus from memory may be empty
            return Examples(self.taxonomy, [], self.taxonomy.encode([]))
        return Examples.join(parts)

    def __repr__(self) -> str:
        return f"<Corpus: {self.name}, {len(self.taxonomy):,} labels>"


def _examples(
    texts: Sequence[str] | None,
    labels: Iterable[Iterable[str]] | None,
    taxonomy: Taxonomy | None,
    features: Any,
    ids: Sequence[str] | None,
    groups: Sequence[str] | None,
) -> Examples:
    if taxonomy is None and labels is not None:
        raise CorpusError("a taxonomy is needed to understand the labels; give taxonomy=...")
    given_texts = None if texts is None else _strings(texts, "text")
    given_features = None if features is None else _matrix(features)
    sets = None if labels is None else [_set(labels_of, row) for row, labels_of in enumerate(labels)]
    n = _length(given_texts, given_features, sets, ids)
    tree = taxonomy if taxonomy is not None else Taxonomy.of({})
    rows = _resolved(tree, sets) if sets is not None else [[] for _ in range(n)]
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.array([k for row in rows for k in row], dtype=np.int32)
    names = [str(i) for i in range(n)] if ids is None else [str(i) for i in ids]
    indicator = tree.from_indices(columns, starts, close=True)
    return Examples(tree, names, indicator, given_texts, given_features, None if groups is None else list(groups))


def _length(*columns: Any) -> int:
    for column in columns:
        if column is not None:
            return int(column.shape[0]) if hasattr(column, "shape") else len(column)
    raise CorpusError("a corpus needs documents; give texts=..., features=... or labels=...")


def _strings(column: Any, what: str) -> list[str]:
    if isinstance(column, str):
        raise CorpusError(f"a list of {what}s is needed, got one string; write [{what}]")
    values = list(column)
    for row, value in enumerate(values):
        if not isinstance(value, str):
            raise CorpusError(f"row {row}: the {what} must be a string, got {shorten(value)}")
    return values


def _set(labels: Any, row: int) -> list[Any]:
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise CorpusError(f"row {row}: a collection of labels is needed, got {shorten(labels)}; write [label]")
    return list(labels)


def _resolved(taxonomy: Taxonomy, sets: list[list[Any]]) -> list[list[int]]:
    resolver = Resolver(taxonomy)
    rows = []
    for row, labels in enumerate(sets):
        try:
            rows.append(resolver.indices(labels))
        except (BadLabelsError, UnresolvedError) as fault:
            raise CorpusError(f"row {row}: {fault}") from None
    return rows


def _matrix(features: Any) -> Any:
    try:
        with np.errstate(over="ignore"):
            matrix = (
                sparse.csr_array(features, dtype=np.float32)
                if sparse.issparse(features)
                else np.asarray(features, dtype=np.float32)
            )
    except (TypeError, ValueError, OverflowError) as fault:
        raise CorpusError(f"features must be rows of numbers, all of one length ({fault})") from None
    if matrix.ndim != 2:
        raise CorpusError(f"features must have two dimensions (documents, features), got shape {matrix.shape}")
    infinite = np.isinf(matrix.data if sparse.issparse(matrix) else matrix)
    if infinite.any():
        at = np.flatnonzero(infinite.any(axis=1))[0] if infinite.ndim == 2 else _row_of(matrix, infinite)
        raise CorpusError(
            f"row {at}: a feature is infinite or too large; give finite numbers, NaN where one is missing"
        )
    return matrix


def _row_of(matrix: sparse.csr_array, marked: Any) -> int:
    return int(np.searchsorted(matrix.indptr, np.flatnonzero(marked)[0], side="right")) - 1


__all__ = ["Corpus"]
