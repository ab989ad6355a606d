"""The inner loops of predictive clustering trees: the best test for some documents, and the leaf of a document.

The variance of documents is a weighted sum over labels, but only the labels that a document has change when it moves
from one side of a test to the other. With c the number of documents of each label on one side, the sum of squares
``A = sum_l w_l c_l^2`` grows by ``sum over its labels of w_l (2 c_l + 1)``, so all cuts of a feature take as long as
its documents have labels. Values of zero are never touched: cuts above zero are reached from the highest value
downward, cuts below zero from the lowest upward, so sparse rows cost what they store.

Import this module where it is used: numba takes a moment to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled

Floats = NDArray[np.float64]
Whole = NDArray[Any]
LEAST_GAIN = 1e-9  # of the whole sum of squares: less is rounding


@compiled
def _between(low: float, high: float) -> float:
    """A threshold with `low` on its left side and `high` on its right; rounding must not move it onto `high`."""
    middle = low + (high - low) / 2
    return middle if middle < high else low


@compiled
def _summary(
    documents: Whole, times: Floats, y_start: Whole, y_index: Whole, weight: Floats
) -> tuple[float, float, float, Floats]:
    """How many documents, sum of w c, sum of w c^2, and for each document the sum of w c over its labels."""
    counts = np.zeros(len(weight))
    total = 0.0
    for d in documents:
        total += times[d]
        for k in range(y_start[d], y_start[d + 1]):
            counts[y_index[k]] += times[d]
    linear, square = 0.0, 0.0
    for label in range(len(weight)):
        linear += weight[label] * counts[label]
        square += weight[label] * counts[label] * counts[label]
    shares = np.zeros(len(documents))
    for i in range(len(documents)):
        for k in range(y_start[documents[i]], y_start[documents[i] + 1]):
            shares[i] += weight[y_index[k]] * counts[y_index[k]]
    return total, linear, square, shares


@compiled
def sum_of_squares(documents: Whole, times: Floats, y_start: Whole, y_index: Whole, weight: Floats) -> float:
    """The number of documents times the variance of their label vectors."""
    total, linear, square, _ = _summary(documents, times, y_start, y_index, weight)
    return linear - square / total if total > 0 else 0.0


@compiled
def _by_feature(
    documents: Whole, x_start: Whole, x_index: Whole, x_value: Floats, allowed: NDArray[np.bool_]
) -> tuple[Whole, Whole, Floats]:
    """The stored values of these documents, feature after feature: starts, places in `documents`, values."""
    starts = np.zeros(len(allowed) + 1, dtype=np.int64)
    for d in documents:
        for k in range(x_start[d], x_start[d + 1]):
            if x_value[k] != 0 and allowed[x_index[k]]:
                starts[x_index[k] + 1] += 1
    starts = np.cumsum(starts)
    fill = starts[:-1].copy()
    places = np.empty(starts[-1], dtype=np.int64)
    values = np.empty(starts[-1])
    for i in range(len(documents)):
        for k in range(x_start[documents[i]], x_start[documents[i] + 1]):
            f = x_index[k]
            if x_value[k] != 0 and allowed[f]:
                places[fill[f]], values[fill[f]] = i, x_value[k]
                fill[f] += 1
    return starts, places, values


@compiled
def _sweep(
    places: Whole,
    values: Floats,
    others: bool,
    documents: Whole,
    times: Floats,
    y_start: Whole,
    y_index: Whole,
    weight: Floats,
    counts: Floats,
    shares: Floats,
    total: float,
    square: float,
    min_leaf: float,
) -> tuple[float, float]:
    """The best gain and threshold of one feature, cutting at values further from zero on one side of it.

    `values` come from the outermost to zero and beyond; documents leave one after the other, and `counts` (zeros, and
    zeros again afterwards) counts the labels of those that left. `others` says that documents of value zero exist.
    """
    best, threshold = -np.inf, 0.0
    sign = 1.0 if values[0] > 0 else -1.0
    gone, inside, across = 0.0, 0.0, 0.0
    moved = 0
    for i in range(len(values)):
        if sign * values[i] < 0:
            break
        d = documents[places[i]]
        moved += 1
        gone += times[d]
        across += times[d] * shares[places[i]]
        for k in range(y_start[d], y_start[d + 1]):
            label = y_index[k]
            inside += weight[label] * times[d] * (2 * counts[label] + times[d])
            counts[label] += times[d]
        last = i + 1 == len(values)
        if last and not others:
            break
        following = 0.0 if last or (others and sign * values[i + 1] < 0) else values[i + 1]
        if following == values[i] or gone < min_leaf or total - gone < min_leaf:
            continue
        rest = square - 2 * across + inside
        gain = inside / gone + rest / (total - gone) - square / total
        if gain > best:
            best = gain
            threshold = _between(min(values[i], following), max(values[i], following))
    for i in range(moved):
        d = documents[places[i]]
        for k in range(y_start[d], y_start[d + 1]):
            counts[y_index[k]] = 0.0
    return best, threshold


@compiled
def best_split(
    documents: Whole,
    times: Floats,
    x_start: Whole,
    x_index: Whole,
    x_value: Floats,
    allowed: NDArray[np.bool_],
    y_start: Whole,
    y_index: Whole,
    weight: Floats,
    min_leaf: float,
) -> tuple[int, float, float, float]:
    """The test `value > threshold` that leaves the least variance: feature (-1: none), threshold, gain, the whole.

    `gain` and the whole are sums of squares: the number of documents times the variance. Of tests that are equally
    good the one with the lowest feature counts, and the cut above zero.
    """
    total, linear, square, shares = _summary(documents, times, y_start, y_index, weight)
    whole = linear - square / total
    starts, places, values = _by_feature(documents, x_start, x_index, x_value, allowed)
    counts = np.zeros(len(weight))
    found, threshold, most = -1, 0.0, LEAST_GAIN * max(whole, 1.0)
    for f in range(len(allowed)):
        size = starts[f + 1] - starts[f]
        if size == 0:
            continue
        here = values[starts[f] : starts[f + 1]]
        order = np.argsort(here, kind="mergesort")
        upward, there = here[order], places[starts[f] : starts[f + 1]][order]
        for down in (True, False):
            ranked, which = (upward[::-1], there[::-1]) if down else (upward[:], there[:])
            if (ranked[0] > 0) != down:
                continue
            gain, cut = _sweep(
                which, ranked, size < len(documents), documents, times, y_start, y_index, weight, counts, shares,
                total, square, min_leaf,
            )  # fmt: skip
            if gain > most:
                found, threshold, most = f, cut, gain
    return found, threshold, most if found >= 0 else 0.0, whole


@compiled
def above(
    documents: Whole, x_start: Whole, x_index: Whole, x_value: Floats, feature: int, threshold: float
) -> NDArray[np.bool_]:
    """Which of these documents have more than the threshold; each row's columns ascend."""
    found = np.empty(len(documents), dtype=np.bool_)
    for i in range(len(documents)):
        start, stop = x_start[documents[i]], x_start[documents[i] + 1]
        k = start + np.searchsorted(x_index[start:stop], feature)
        value = x_value[k] if k < stop and x_index[k] == feature else 0.0
        found[i] = value > threshold
    return found


@compiled
def leaf_rows(
    x_start: Whole,
    x_index: Whole,
    x_value: Floats,
    roots: Whole,
    feature: Whole,
    threshold: Floats,
    left: Whole,
    right: Whole,
) -> Whole:
    """(n, T) for each document and tree the number of the leaf it falls into: `left` of a node without a test."""
    found = np.empty((len(x_start) - 1, len(roots)), dtype=np.int64)
    for d in range(len(x_start) - 1):
        start, stop = x_start[d], x_start[d + 1]
        for t in range(len(roots)):
            node = roots[t]
            while feature[node] >= 0:
                k = start + np.searchsorted(x_index[start:stop], feature[node])
                value = x_value[k] if k < stop and x_index[k] == feature[node] else 0.0
                node = right[node] if value > threshold[node] else left[node]
            found[d, t] = left[node]
    return found


__all__ = ["above", "best_split", "leaf_rows", "sum_of_squares"]
