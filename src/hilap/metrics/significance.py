"""How sure a figure is: bootstrap intervals over documents, and paired tests between two systems.

Both reduce to weighted sums over documents, done for many replicates in one sparse product, block after block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hilap.errors import require
from hilap.metrics.counts import Bools, Counts, Floats, document_counts, pair
from hilap.metrics.flat import Macro, covered, f1_from_counts
from hilap.taxonomy.graph import Indicator

METRICS = ("micro_f1", "macro_f1", "example_f1")
MOST_WEIGHTS = 8_000_000  # of one block, documents times replicates: 64 MB
TOLERANCE = 1e-12  # two differences closer than this are the same difference, summed in another order


class Interval(NamedTuple):
    """A percentile interval; NaN where the score itself is not defined."""

    low: float
    high: float


class Sums(NamedTuple):
    """What the metrics need of each document, side by side for a sparse product."""

    labels: sparse.csr_array  # (n, 3 L) right, predicted, gold
    f1: Floats  # (n,) example F1

    @classmethod
    def of(cls, gold: Indicator, predicted: Indicator) -> Sums:
        """Of checked matrices."""
        hits = gold.multiply(predicted).tocsr()
        stacked = sparse.hstack([hits, predicted, gold], format="csr").astype(np.float64)
        return cls(stacked, f1_from_counts(*document_counts(gold, predicted)))


def weighted_scores(
    gold: Any, predicted: Any, weights: Any, *, over: Macro = "gold", training: Any = None
) -> dict[str, Floats]:
    """Micro-, Macro- and example F1 as if document i were there `weights[i]` times, for many weightings at once.

    Parameters
    ----------
    gold, predicted
        (n, L) indicator matrices.
    weights
        (n, R): a column for each replicate.
    over, training
        The labels of the macro mean, decided anew in each replicate: a label without gold documents in a replicate is
        not covered there (unless `"all"`).
    """
    right, found = pair(gold, predicted)
    return _weighted(Sums.of(right, found), np.asarray(weights, dtype=np.float64), over, training)


def bootstrap(
    gold: Any,
    predicted: Any,
    *,
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    over: Macro = "gold",
    training: Any = None,
) -> dict[str, Interval]:
    """Percentile intervals of Micro-, Macro- and example F1, drawing documents with replacement."""
    _check_draws(samples, seed, confidence)
    sums = Sums.of(*pair(gold, predicted))
    drawn = [_weighted(sums, w, over, training) for w in _draws_for(sums, samples, seed)]
    return {name: _interval(np.concatenate([d[name] for d in drawn]), confidence) for name in METRICS}


def bootstrap_difference(
    gold: Any,
    first: Any,
    second: Any,
    *,
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    over: Macro = "gold",
    training: Any = None,
) -> dict[str, Interval]:
    """Percentile intervals of *second minus first*, both scored on the same drawn documents."""
    _check_draws(samples, seed, confidence)
    one = Sums.of(*pair(gold, first, name="first"))
    two = Sums.of(*pair(gold, second, name="second"))
    differences: dict[str, list[Floats]] = {name: [] for name in METRICS}
    for weights in _draws_for(one, samples, seed):
        a, b = _weighted(one, weights, over, training), _weighted(two, weights, over, training)
        for name in METRICS:
            differences[name].append(b[name] - a[name])
    return {name: _interval(np.concatenate(parts), confidence) for name, parts in differences.items()}


def permutation_test(
    gold: Any,
    first: Any,
    second: Any,
    *,
    permutations: int = 1000,
    seed: int = 0,
    over: Macro = "gold",
    training: Any = None,
) -> dict[str, float]:
    """Two-sided p-values of the differences between two systems (paired approximate randomisation).

    If the systems were equal, it would not matter which of them gave which of a document's two answers. So answers are
    swapped at random, and p is the share of swaps with a difference at least as large as the real one, the real one
    counted too: (1 + larger) / (1 + permutations).
    """
    require(permutations >= 1, "permutations", "at least 1", permutations)
    require(seed >= 0, "seed", "at least 0", seed)
    right, one = pair(gold, first, name="first")
    two = pair(gold, second, name="second")[1]
    swapper = _Swapper.of(
        right, one, two, covered(over, np.bincount(right.indices, minlength=right.shape[1]), training)
    )
    real = swapper.differences(np.zeros((swapper.n_swappable, 1)))
    larger = dict.fromkeys(METRICS, 0)
    rng = np.random.default_rng(seed)
    for size in _blocks(max(swapper.n_swappable, 3 * right.shape[1]), permutations):
        swaps = rng.integers(0, 2, size=(swapper.n_swappable, size), dtype=np.int8)
        for name, values in swapper.differences(swaps.astype(np.float64)).items():
            larger[name] += int((np.abs(values) >= abs(real[name][0]) - TOLERANCE).sum())
    # Where no label is covered Macro-F1 is NaN, and so is its p.
    return {
        name: float("nan") if np.isnan(real[name][0]) else (1 + larger[name]) / (1 + permutations) for name in METRICS
    }


def swapped_differences(
    gold: Any, first: Any, second: Any, swaps: Any, *, over: Macro = "gold", training: Any = None
) -> dict[str, Floats]:
    """*Second minus first* after swapping the answers of the documents with a 1, for each column of swaps (n, R)."""
    right, one = pair(gold, first, name="first")
    two = pair(gold, second, name="second")[1]
    cover = covered(over, np.bincount(right.indices, minlength=right.shape[1]), training)
    swapper = _Swapper.of(right, one, two, cover)
    return swapper.differences(np.asarray(swaps, dtype=np.float64)[swapper.swappable])


def draws(documents: int, samples: int, seed: int, labels: int = 1) -> Iterator[Floats]:
    """Blocks of (documents, replicates) weights: how often each document is drawn, with replacement."""
    rng = np.random.default_rng(seed)
    for size in _blocks(max(documents, 3 * labels), samples):
        weights = np.empty((documents, size))
        for column in range(size):
            weights[:, column] = np.bincount(rng.integers(0, documents, size=documents), minlength=documents)
        yield weights


class _Swapper(NamedTuple):
    """Two systems, ready to have the answers of some documents swapped."""

    swappable: Bools  # (n,) documents where the answers differ: swapping others changes nothing
    first: Floats  # (2 L,) right and predicted of each label
    second: Floats
    change: sparse.csr_array  # (swappable, 2 L) what a swap adds to the first and takes from the second
    f1_first: float
    f1_second: float
    f1_change: Floats  # (swappable,) divided by the number of documents
    gold: Floats  # (L,)
    cover: Bools  # (L,)

    @classmethod
    def of(cls, gold: Indicator, first: Indicator, second: Indicator, cover: Bools) -> _Swapper:
        labels = gold.shape[1]
        one, two = Sums.of(gold, first), Sums.of(gold, second)
        change = (two.labels - one.labels)[:, : 2 * labels].tocsr()
        change.eliminate_zeros()
        swappable = np.diff(change.indptr) > 0
        sums_one, sums_two = one.labels.sum(axis=0), two.labels.sum(axis=0)
        f1_change = (two.f1 - one.f1)[swappable] / len(one.f1)
        return cls(
            swappable,
            sums_one[: 2 * labels],
            sums_two[: 2 * labels],
            change[swappable],
            float(one.f1.mean()),
            float(two.f1.mean()),
            f1_change,
            sums_one[2 * labels :],
            cover,
        )

    @property
    def n_swappable(self) -> int:
        return int(self.swappable.sum())

    def differences(self, swaps: Floats) -> dict[str, Floats]:
        """*Second minus first* for each column of swaps (swappable, R)."""
        moved = self.change.T @ swaps
        first = self._scores(self.first[:, None] + moved)
        second = self._scores(self.second[:, None] - moved)
        differences = {name: second[name] - first[name] for name in first}
        differences["example_f1"] = self.f1_second - self.f1_first - 2 * (self.f1_change @ swaps)
        return differences

    def _scores(self, sums: Floats) -> dict[str, Floats]:
        hits, predicted = np.split(sums.T, 2, axis=1)
        counts = Counts(hits, predicted, np.broadcast_to(self.gold, hits.shape))
        return _pooled(counts, np.broadcast_to(self.cover, hits.shape))


def _weighted(sums: Sums, weights: Floats, over: Macro, training: Any) -> dict[str, Floats]:
    counts = Counts(*np.split((sums.labels.T @ weights).T, 3, axis=1))  # (R, L) each
    scores = _pooled(counts, covered(over, counts.gold, training))
    return {**scores, "example_f1": sums.f1 @ weights / weights.sum(axis=0)}


def _pooled(counts: Counts, cover: Bools) -> dict[str, Floats]:
    """Micro- and Macro-F1 of each replicate from its (R, L) counts."""
    micro_f1 = f1_from_counts(*Counts(*(c.sum(axis=1) for c in counts)), 0.0)
    n_covered = cover.sum(axis=1)
    totals = (f1_from_counts(*counts, 0.0) * cover).sum(axis=1)
    return {"micro_f1": micro_f1, "macro_f1": np.where(n_covered > 0, totals / np.maximum(n_covered, 1), np.nan)}


def _interval(values: Floats, confidence: float) -> Interval:
    known = values[~np.isnan(values)]
    if not len(known):
        return Interval(float("nan"), float("nan"))
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def _blocks(width: int, replicates: int) -> Iterator[int]:
    """Sizes of blocks that add up to the number of replicates; each needs `width` numbers."""
    most = max(1, MOST_WEIGHTS // max(1, width))
    for start in range(0, replicates, most):
        yield min(most, replicates - start)


def _draws_for(sums: Sums, samples: int, seed: int) -> Iterator[Floats]:
    return draws(len(sums.f1), samples, seed, sums.labels.shape[1] // 3)


def _check_draws(samples: int, seed: int, confidence: float) -> None:
    require(samples >= 1, "samples", "at least 1", samples)
    require(seed >= 0, "seed", "at least 0", seed)
    require(0 < confidence < 1, "confidence", "between 0 and 1", confidence)
