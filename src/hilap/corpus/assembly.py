"""Rows to blocks of examples: labels resolved and closed upward, features stacked, a whole block at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.corpus.examples import Examples
from hilap.corpus.labels import BadLabelsError, Resolver, UnresolvedError, shown
from hilap.corpus.report import ReadReport
from hilap.corpus.rows import Faults, Reader, Row
from hilap.errors import CorpusError

_NONE = -1  # the width of a corpus whose documents have no features


def blocks(reader: Reader, resolver: Resolver, faults: Faults, size: int, *, close: bool = True) -> Iterator[Examples]:
    """The documents of a reader, at most `size` at a time."""
    assembly = _Assembly(resolver, faults, reader.width, close)
    report = faults.report
    for rows in _chunks(reader.rows(faults), size):
        block = assembly.block(rows)
        if block is not None:
            yield block
    if not report.documents:
        first = report.skipped_lines[0] if report.skipped else None
        why = f"all {report.skipped:,} were bad, the first at {first.where}: {first.reason}" if first else "it is empty"
        raise CorpusError(f"{reader.name}: no document could be read; {why}")


def strangers(reader: Reader, resolver: Resolver, faults: Faults) -> None:
    """Look all labels up once, so that the resolver has collected those that are unknown."""
    for rows in _chunks(reader.rows(faults), 4096):
        for row in rows:
            _indices(row, resolver, faults)


class _Assembly:
    """Makes blocks, and sees to it that all of them have the same columns."""

    def __init__(self, resolver: Resolver, faults: Faults, sparse_width: int | None, close: bool) -> None:
        self._close = close
        self._resolver = resolver
        self._faults = faults
        self._sparse_width = sparse_width
        self._has_texts: bool | None = None
        self._dense_width: int | None = None

    def block(self, rows: list[Row]) -> Examples | None:
        found = [_indices(row, self._resolver, self._faults) for row in rows]
        if None in found:
            rows = [row for row, labels in zip(rows, found, strict=True) if labels is not None]
        label_rows = [labels for labels in found if labels is not None]
        features, bad = self._features(rows)
        if bad:
            rows = [row for k, row in enumerate(rows) if k not in bad]
            label_rows = [labels for k, labels in enumerate(label_rows) if k not in bad]
        if not rows:
            return None
        columns, starts = self._columns(label_rows)
        ids = [row.id for row in rows]
        groups = [row.group for row in rows if row.group is not None]
        labels = self._resolver.taxonomy.from_indices(columns, starts, close=self._close)
        self._faults.report.count(ids, np.diff(starts))
        return Examples(self._resolver.taxonomy, ids, labels, self._texts(rows), features, groups or None)

    def _columns(self, label_rows: list[list[int]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """All label indices one after another and where each document's start, without the unknown ones."""
        lengths = np.fromiter(map(len, label_rows), dtype=np.int64, count=len(label_rows))
        columns = np.fromiter(chain.from_iterable(label_rows), dtype=np.int32, count=int(lengths.sum()))
        known = columns >= 0
        if not known.all():
            _count_dropped(columns[~known], self._resolver, self._faults.report)
            owner = np.repeat(np.arange(len(label_rows)), lengths)
            lengths = np.bincount(owner[known], minlength=len(label_rows))
            columns = columns[known]
        return columns, np.concatenate([[0], np.cumsum(lengths)])

    def _texts(self, rows: list[Row]) -> list[str] | None:
        texts = [row.text for row in rows if row.text is not None]
        if self._has_texts is None:
            self._has_texts = rows[0].text is not None
        if len(texts) != (len(rows) if self._has_texts else 0):
            odd = next(row for row in rows if (row.text is not None) != self._has_texts)
            what = ("no text here", "have") if self._has_texts else ("a text here", "have none")
            raise CorpusError(f"{odd.place}{odd.line}: there is {what[0]}, but the documents before {what[1]}")
        return texts if self._has_texts else None

    # -- features ---------------------------------------------------------------------------------------------------

    def _features(self, rows: list[Row]) -> tuple[Any, set[int]]:
        """The features of a block, without the rows that are bad, and which those are."""
        if self._sparse_width is not None:
            return _sparse(rows, self._sparse_width), set()
        if not rows:
            return None, set()
        if self._dense_width is None:
            self._dense_width = _NONE if rows[0].features is None else len(rows[0].features)
        if self._dense_width == _NONE and all(row.features is None for row in rows):
            return None, set()
        dense = _stacked([row.features for row in rows])
        if dense is not None and dense.shape[1] == self._dense_width and not np.isinf(dense).any():
            return dense, set()
        return self._sorted_out(rows)

    def _sorted_out(self, rows: list[Row]) -> tuple[Any, set[int]]:
        """Row by row, because one of them is bad."""
        good, bad = [], set()
        for k, row in enumerate(rows):
            reason = self._objection(row.features)
            if reason is None:
                good.append(row.features)
            else:
                self._faults(row.place, row.line, reason)
                bad.add(k)
        return _stacked(good), bad

    def _objection(self, features: Any) -> str | None:
        width = self._dense_width
        if width == _NONE:
            return None if features is None else "there are features, but the documents before have none"
        if features is None:
            return f"there are no features, but the documents before have {width}"
        if len(features) != width:
            return f"there are {len(features)} features, but the documents before have {width}"
        alone = _stacked([features])
        if alone is None or np.isinf(alone).any():
            at = next(k for k, value in enumerate(features) if _is_infinite(value))
            return f"feature {at + 1} is infinite or too large; give a finite number, or none where it is missing"
        return None


def _chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    source = iter(rows)
    while chunk := list(islice(source, size)):
        yield chunk


def _indices(row: Row, resolver: Resolver, faults: Faults) -> list[int] | None:
    try:
        return resolver.indices(row.labels)
    except BadLabelsError as fault:
        faults(row.place, row.line, fault)
        return None
    except UnresolvedError as fault:
        raise CorpusError(f"{row.place}{row.line}: {fault}") from None


def _count_dropped(columns: NDArray[Any], resolver: Resolver, report: ReadReport) -> None:
    numbers, times = np.unique(-1 - columns, return_counts=True)
    report.dropped.update(
        {shown(resolver.unknown[k]): n for k, n in zip(numbers.tolist(), times.tolist(), strict=True)}
    )


def _stacked(vectors: list[Any]) -> NDArray[np.float32] | None:
    """(n, F) float32 with NaN for None; None where the rows are of different length or hold what cannot be a float."""
    if not vectors:
        return None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            dense = np.array(vectors, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        return None
    return dense if dense.ndim == 2 else None


def _is_infinite(value: Any) -> bool:
    alone = _stacked([[value]])
    return alone is None or bool(np.isinf(alone).any())


def _sparse(rows: list[Row], width: int) -> sparse.csr_array:
    lengths = [len(row.features[0]) for row in rows]
    total = sum(lengths)
    indices = np.fromiter(chain.from_iterable(row.features[0] for row in rows), dtype=np.int32, count=total)
    with np.errstate(over="ignore"):
        data = np.fromiter(chain.from_iterable(row.features[1] for row in rows), dtype=np.float64, count=total)
        data = data.astype(np.float32)
    matrix = sparse.csr_array((data, indices, np.cumsum([0, *lengths])), shape=(len(rows), width))
    matrix.sort_indices()
    return matrix


__all__ = ["blocks", "strangers"]
