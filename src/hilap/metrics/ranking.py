"""How well scores rank labels: area under the precision-recall curve, R-precision, P@k and nDCG@k.

Scores are (n, L) floats, dense or sparse; what a sparse matrix does not store is 0. Equal scores are never broken by
the order of labels or documents: a curve takes them in one step, and P@k, R-precision and nDCG@k are the expected value
when equal scores are put in random order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from hilap.errors import SettingError, require
from hilap.metrics.counts import Floats, Integers, column_counts, entries, indicator, row_numbers, score_matrix
from hilap.metrics.flat import mean
from hilap.taxonomy.graph import Indicator

Curve = Literal["average_precision", "interpolated"]
"""How the area is taken: a step at each distinct score (scikit-learn's average precision), or the exact integral of
the interpolation of Davis and Goadrich, as Vens et al. (2008) do."""

CURVES: tuple[Curve, ...] = ("average_precision", "interpolated")
MOST_SCORES = 4_000_000  # of one dense block


class AUPRC(NamedTuple):
    """Areas under precision-recall curves. NaN where there is no gold label at all."""

    pooled: float  # one curve over all (document, label) pairs
    macro: float  # mean over the labels with gold documents
    weighted: float  # the same, weighted by the number of gold documents


def au_prc(gold: Any, scores: Any, curve: Curve = "average_precision") -> AUPRC:
    """The three areas at once.

    Examples
    --------
    >>> au_prc([[1, 0], [0, 1]], [[0.9, 0.2], [0.1, 0.6]])
    AUPRC(pooled=1.0, macro=1.0, weighted=1.0)
    """
    right, ranked = _checked(gold, scores)
    support = column_counts(right)
    areas = label_areas(right, ranked, curve)[support > 0]
    weighted = float(np.average(areas, weights=support[support > 0])) if len(areas) else float("nan")
    return AUPRC(pooled_area(right, ranked, curve), mean(areas), weighted)


def pooled_area(gold: Any, scores: Any, curve: Curve = "average_precision") -> float:
    """The area under one curve over all (document, label) pairs."""
    right, ranked = _checked(gold, scores)
    if not right.nnz:
        return float("nan")
    values = entries(ranked, row_numbers(right), right.indices)
    stored = np.sort(ranked.data if sparse.issparse(ranked) else ranked, axis=None)
    absent = right.shape[0] * right.shape[1] - len(stored)  # pairs whose score is 0 without being stored
    at_least = len(stored) - np.searchsorted(stored, values, side="left") + absent * (values <= 0)
    above = len(stored) - np.searchsorted(stored, values, side="right") + absent * (values < 0)
    return float(_areas(np.zeros(len(values), dtype=np.int64), above, at_least, 1, curve)[0])


def label_areas(gold: Any, scores: Any, curve: Curve = "average_precision") -> Floats:
    """(L,) the area under the curve of each label; NaN for labels without gold documents."""
    right, ranked = _checked(gold, scores)
    areas = [
        _areas(group, above, at_least, size, curve)
        for size, group, above, at_least in _standings(right.T.tocsr(), ranked.T)
    ]
    return np.concatenate(areas)


def r_precision(gold: Any, scores: Any) -> float:
    """The share of gold labels among the g best-scored labels of a document with g gold labels, averaged.

    Documents without gold labels have nothing to find and are left out, here and in the two below; NaN if all are.
    """
    right, ranked = _checked(gold, scores)
    return _mean_gain(right, ranked, [None], discounted=False)[0]


def precision_at(gold: Any, scores: Any, ks: Sequence[int] = (1, 3, 5)) -> list[float]:
    """The share of gold labels among the k best-scored, for each k. With fewer than k labels it is still out of k."""
    right, ranked = _checked(gold, scores)
    return _mean_gain(right, ranked, _checked_ks(ks), discounted=False)


def ndcg_at(gold: Any, scores: Any, ks: Sequence[int] = (1, 3, 5)) -> list[float]:
    """Gold labels among the k best-scored, discounted by log2(place + 1), out of what the best order would get."""
    right, ranked = _checked(gold, scores)
    return _mean_gain(right, ranked, _checked_ks(ks), discounted=True)


def _mean_gain(gold: Indicator, scores: Any, ks: Sequence[int | None], *, discounted: bool) -> list[float]:
    """Mean over documents with gold labels of the expected gain in the first k places (None: as many as gold)."""
    places = np.arange(1, gold.shape[1] + 1)
    gains = np.concatenate([[0.0], np.cumsum(1 / np.log2(places + 1) if discounted else np.ones(len(places)))])
    totals = np.zeros(len(ks))
    sizes = np.diff(gold.indptr).astype(np.int64)
    start = 0
    for size, group, above, at_least in _standings(gold, scores):
        mine = sizes[start : start + size][group]
        start += size
        for i, k in enumerate(ks):
            last = mine if k is None else np.minimum(k, gold.shape[1])
            expected = (gains[np.minimum(last, at_least)] - gains[np.minimum(last, above)]) / (at_least - above)
            best = gains[np.minimum(last, mine)] if discounted else (mine if k is None else k)
            totals[i] += float((expected / best).sum())
    judged = int((sizes > 0).sum())
    return [float(t / judged) if judged else float("nan") for t in totals]


def _areas(group: Integers, above: Integers, at_least: Integers, groups: int, curve: Curve) -> Floats:
    """(groups,) areas, from how many of its group score above each positive, and how many at least as high."""
    require(curve in CURVES, "curve", " or ".join(map(repr, CURVES)), curve)
    order = np.lexsort((-at_least, group))  # from low to high scores within each group
    group, above, at_least = group[order], above[order], at_least[order]
    support = np.bincount(group, minlength=groups)
    new = np.ones(len(order), dtype=bool)
    new[1:] = (group[1:] != group[:-1]) | (at_least[1:] != at_least[:-1])
    first = np.flatnonzero(new)
    tied = np.diff(np.append(first, len(order)))  # positives that come in with one distinct score
    group, above, at_least = group[first], above[first], at_least[first]
    ends = np.cumsum(support)
    found = ends[group] - first  # positives with at least this score
    if curve == "average_precision":
        steps = tied * found / at_least
    else:
        steps = _interpolated(found - tied, found, above, at_least)
    totals = np.bincount(group, weights=steps, minlength=groups)
    return np.where(support > 0, totals / np.maximum(support, 1), np.nan)


def _interpolated(found_before: Integers, found: Integers, seen_before: Integers, seen: Integers) -> Floats:
    """The integral of precision over true positives from one point of the curve to the next.

    Between the points false positives grow in proportion to true positives, so precision is t / (slope · t + shift).
    """
    width = found - found_before
    slope = (seen - seen_before) / width
    shift = seen_before - slope * found_before
    started = seen_before > 0  # before the first point nothing is seen, and precision is constant
    logs = np.log(np.where(started, seen / np.where(started, seen_before, 1), 1))
    return np.asarray(width / slope - shift / slope**2 * logs)


def _standings(gold: Indicator, scores: Any) -> Iterator[tuple[int, Integers, Integers, Integers]]:
    """Block after block of rows: its size and, for each gold entry, row in the block, scores above and at least it."""
    matrix = scores.tocsr() if sparse.issparse(scores) else scores
    at_a_time = max(1, MOST_SCORES // gold.shape[1])
    for start in range(0, gold.shape[0], at_a_time):
        rows = gold[start : start + at_a_time]
        block = matrix[start : start + at_a_time]
        dense = np.ascontiguousarray(block.toarray() if sparse.issparse(block) else block)
        group = row_numbers(rows)
        values = dense[group, rows.indices]
        ordered = np.sort(dense, axis=1)
        size = gold.shape[1]
        above = size - _bisect(ordered, group, values, right=True)
        at_least = size - _bisect(ordered, group, values, right=False)
        yield rows.shape[0], group, above, at_least


def _bisect(ordered: Any, row: Integers, values: Any, *, right: bool) -> Integers:
    """`np.searchsorted`, but for each value in a row of its own."""
    low = np.zeros(len(values), dtype=np.int64)
    high = np.full(len(values), ordered.shape[1], dtype=np.int64)
    for _ in range(int(ordered.shape[1]).bit_length()):
        middle = (low + high) // 2
        at = ordered[row, np.minimum(middle, ordered.shape[1] - 1)]
        open_ = low < high
        further = open_ & ((at <= values) if right else (at < values))
        low = np.where(further, middle + 1, low)
        high = np.where(open_ & ~further, middle, high)
    return low


def _checked(gold: Any, scores: Any) -> tuple[Indicator, Any]:
    right = indicator(gold, "gold")
    if 0 in right.shape:
        raise SettingError(f"there is nothing to rank: gold has shape {right.shape}; at least one document is needed")
    return right, score_matrix(scores, right)


def _checked_ks(ks: Sequence[int]) -> Sequence[int]:
    for k in ks:
        require(k >= 1, "k", "at least 1", k)
    return ks
