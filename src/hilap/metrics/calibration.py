"""Whether probabilities mean what they say, for documents with several labels.

A (document, label) pair is one bet: probability p that the label is right. Bets are put in bins, and in each bin the
mean probability is compared with the share that came true. The expected calibration error (ECE) is the mean gap,
weighted by the bets in a bin. Most pairs of a large taxonomy are safe noes near 0, which hide everything else when all
pairs are pooled; so there are also a mean over labels, the predicted labels alone, and the top label alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from hilap.errors import SettingError, require
from hilap.metrics.counts import (
    Bools,
    Floats,
    Integers,
    column_counts,
    entries,
    indicator,
    pair,
    row_numbers,
    score_matrix,
)
from hilap.metrics.flat import mean
from hilap.taxonomy.graph import Indicator

Binning = Literal["width", "mass"]
"""Bins of equal width on [0, 1], or of (as nearly as equal probabilities allow) equally many bets: the bin of a
probability is then `bins` times the share of probabilities strictly below it, rounded down."""

Over = Literal["pairs", "labels", "predicted", "top"]
"""Which bets count: all pairs; those of each label, averaged over labels with gold documents; predicted pairs; the
most probable label of each document."""

OVERS: tuple[Over, ...] = ("pairs", "labels", "predicted", "top")
AT_A_TIME = 4_000_000


class _Bets(NamedTuple):
    probabilities: Any  # (m,)
    right: Bools  # (m,)
    absent: int = 0  # further bets of probability 0 that a sparse matrix does not store
    absent_right: int = 0


@dataclass(frozen=True)
class Reliability:
    """A reliability table: for each bin how many bets, their mean probability, and the share that came true."""

    counts: Integers
    probability: Floats  # NaN in an empty bin
    share: Floats  # NaN in an empty bin

    @property
    def error(self) -> float:
        """The expected calibration error of this table; NaN without bets."""
        total = int(self.counts.sum())
        filled = self.counts > 0
        gaps = np.abs(self.probability - self.share)[filled] * self.counts[filled]
        return float(gaps.sum() / total) if total else float("nan")


def reliability(
    gold: Any,
    probabilities: Any,
    *,
    over: Literal["pairs", "predicted", "top"] = "pairs",
    predicted: Any = None,
    bins: int = 15,
    binning: Binning = "width",
) -> Reliability:
    """The reliability table of all pairs, of the predicted ones, or of the top labels."""
    right, matrix = _checked(gold, probabilities, bins, binning)
    require(over in ("pairs", "predicted", "top"), "over", "'pairs' or 'predicted' or 'top'", over)
    return _table(_bets(right, matrix, over, predicted), bins, binning)


def calibration_error(
    gold: Any,
    probabilities: Any,
    *,
    over: Over = "pairs",
    predicted: Any = None,
    bins: int = 15,
    binning: Binning = "width",
) -> float:
    """The expected calibration error of multi-label probabilities.

    Parameters
    ----------
    gold
        (n, L) indicator matrix.
    probabilities
        (n, L) between 0 and 1, dense or sparse.
    over
        Which pairs count: `"pairs"`, `"labels"`, `"predicted"` or `"top"`.
    predicted
        For `"predicted"`: the (n, L) indicator of the predicted labels.
    bins, binning
        How many bins, of equal `"width"` or of equal `"mass"`.

    Examples
    --------
    >>> round(calibration_error([[1, 0], [1, 0]], [[0.9, 0.1], [0.9, 0.1]]), 6)
    0.1
    """
    right, matrix = _checked(gold, probabilities, bins, binning)
    require(over in OVERS, "over", " or ".join(map(repr, OVERS)), over)
    if over != "labels":
        return _table(_bets(right, matrix, over, predicted), bins, binning).error
    columns, truths = matrix.tocsc() if sparse.issparse(matrix) else matrix, right.tocsc()
    labels = np.flatnonzero(column_counts(right))
    return mean([_table(_label_bets(truths[:, [k]], columns[:, [k]]), bins, binning).error for k in labels])


def brier_score(gold: Any, probabilities: Any) -> float:
    """The mean squared gap between probability and truth over all (document, label) pairs."""
    right, matrix = _checked(gold, probabilities, 1, "width")
    bets = _bets(right, matrix, "pairs", None)
    total = float(bets.absent_right)
    for start in range(0, len(bets.right), AT_A_TIME):
        part = slice(start, start + AT_A_TIME)
        total += float(np.square(bets.probabilities[part] - bets.right[part], dtype=np.float64).sum())
    return total / (len(bets.right) + bets.absent)


def _bets(gold: Indicator, matrix: Any, over: str, predicted: Any) -> _Bets:
    if over == "pairs":
        return _label_bets(gold, matrix)
    if over == "top":
        rows, columns = np.arange(gold.shape[0]), np.asarray(matrix.argmax(axis=1)).ravel()
    else:
        if predicted is None:
            raise SettingError("over='predicted' needs predicted, the indicator matrix of the predicted labels")
        chosen = pair(gold, predicted)[1]
        rows, columns = row_numbers(chosen), chosen.indices
    return _Bets(entries(matrix, rows, columns), entries(gold, rows, columns) != 0)


def _label_bets(gold: Any, matrix: Any) -> _Bets:
    """All pairs of these columns as bets."""
    if not sparse.issparse(matrix):
        truths = np.zeros(gold.shape, dtype=bool)
        truths[gold.nonzero()] = True
        return _Bets(matrix.ravel(), truths.ravel())
    rows = matrix.tocsr()
    stored = entries(gold.tocsr(), row_numbers(rows), rows.indices) != 0
    absent = gold.shape[0] * gold.shape[1] - rows.nnz
    return _Bets(rows.data, stored, absent, int(gold.nnz - stored.sum()))


def _table(bets: _Bets, bins: int, binning: Binning) -> Reliability:
    """Sort the bets into bins, some millions at a time."""
    counts, sums, hits = np.zeros(bins), np.zeros(bins), np.zeros(bins)
    ordered = np.sort(bets.probabilities) if binning == "mass" else None
    for start in range(0, len(bets.right), AT_A_TIME):
        values, right = bets.probabilities[start : start + AT_A_TIME], bets.right[start : start + AT_A_TIME]
        place = _bin(values, bins, ordered, bets.absent)
        counts += np.bincount(place, minlength=bins)
        sums += np.bincount(place, weights=values, minlength=bins)
        hits += np.bincount(place, weights=right, minlength=bins)
    counts[0] += bets.absent  # probability 0 is the least there is: the first bin in either way
    hits[0] += bets.absent_right
    filled = np.maximum(counts, 1)
    return Reliability(
        counts.astype(np.int64),
        np.where(counts > 0, sums / filled, np.nan),
        np.where(counts > 0, hits / filled, np.nan),
    )


def _bin(values: Any, bins: int, ordered: Any, absent: int) -> Integers:
    if ordered is None:
        share = values.astype(np.float64)
    else:
        below = np.searchsorted(ordered, values, side="left") + absent * (values > 0)
        share = below / (len(ordered) + absent)
    return np.asarray(np.minimum((share * bins).astype(np.int64), bins - 1))


def _checked(gold: Any, probabilities: Any, bins: int, binning: str) -> tuple[Indicator, Any]:
    require(bins >= 1, "bins", "at least 1", bins)
    require(binning in ("width", "mass"), "binning", "'width' or 'mass'", binning)
    right = indicator(gold, "gold")
    if 0 in right.shape:
        raise SettingError(f"there is nothing to judge: gold has shape {right.shape}; at least one document is needed")
    matrix = score_matrix(probabilities, right)
    if not are_probabilities(matrix):
        raise SettingError("probabilities must be between 0 and 1; calibrate scores first, for example with a sigmoid")
    return right, matrix


def are_probabilities(scores: Any) -> bool:
    """Whether all scores are between 0 and 1."""
    values = scores.data if sparse.issparse(scores) else scores
    return values.size == 0 or bool(values.min() >= 0 and values.max() <= 1)
