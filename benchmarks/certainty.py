"""Whether the best system of a set is really better than the runner-up: a paired bootstrap over what was judged.

Micro-F1 and EBF are sums over documents, so documents are drawn with replacement; Macro-F1 is a mean over labels, so
labels are drawn. Both systems are scored on the same draw. Their *seeds are drawn too*, each system's from its own:
the claim is about a system, and another training run would be another draw. (Averaging each document's counts over
seeds would treat the runs at hand as all there are, and call differences certain that another seed turns round.) In
every draw a system's score is the mean over its drawn seeds, which is the figure of the table.

What it needs is in `counts` of the result files; older files have none, and then nothing is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from cells import F1, HEADINGS, mean_of
from numpy.typing import NDArray
from records import Runs

from hilap.errors import HilapError
from hilap.metrics.flat import f1_from_counts
from hilap.metrics.significance import draws

SAMPLES, LEAST_SAMPLES = 2_000, 400  # 400 can still tell p < 0.01
MOST_DRAWS = 400_000_000  # documents times samples: RCV1 has 781,265 documents
LIMIT = 0.05
SIGNS = ((0.01, "‡"), (LIMIT, "†"))
KEPT = 1_024  # p-values and counts that are kept: a page tests many pairs in several tables
OVER = {"micro_f1": "documents", "macro_f1": "labels", "example_f1": "documents"}
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """The best system of a set by one metric, and the next."""

    metric: str
    best: Runs
    second: Runs
    gap: float  # in percent points
    p: float | None  # two-sided; None where it cannot be tested

    @property
    def sign(self) -> str:
        """What stands behind the best figure."""
        return sign_of(self.p)

    def __str__(self) -> str:
        between = f"`{self.best.method}` over `{self.second.method}` by {self.gap:.2f}"
        return f"{HEADINGS[self.metric]} {between}, {p_words(self.p)}"


def sign_of(p: float | None) -> str:
    """The mark of a p; none where it is large or not known."""
    return next((sign for limit, sign in SIGNS if p is not None and p < limit), "")


def p_words(p: float | None) -> str:
    """How a p is told."""
    return "not tested" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def comparisons(runs: Sequence[Runs], seed: int = 0) -> dict[str, Comparison]:
    """Metric -> the best system against the runner-up; without a metric that fewer than two systems have."""
    pairs: dict[str, tuple[Runs, Runs]] = {}
    means = {(one.method, key): mean_of(one, key) for one in runs for key in F1}
    for key in F1:
        known = [one for one in runs if means[one.method, key] is not None]
        if len(known) > 1:
            first, second, *_ = sorted(known, key=lambda one: -(means[one.method, key] or 0.0))  # stable: page order
            pairs[key] = first, second
    found = {}
    for key, (first, second) in pairs.items():
        gap = (means[first.method, key] or 0.0) - (means[second.method, key] or 0.0)
        found[key] = Comparison(key, first, second, gap, p_value(first, second, key, seed))
    return found


def best_words(found: dict[str, Comparison]) -> list[str]:
    """The sentence below a table: how sure its best figures are."""
    return [f"Best in this table against the runner-up: {'; '.join(map(str, found.values()))}."] if found else []


def marks_of(found: dict[str, Comparison]) -> dict[tuple[str, str], str]:
    """(method, metric) -> its mark."""
    return {(one.best.method, key): f" {one.sign}" for key, one in found.items() if one.sign}


def p_value(first: Runs, second: Runs, metric: str, seed: int = 0) -> float | None:
    """Two-sided p of the difference between two systems, whichever is named first; None where a result has no counts.

    Seeds are drawn for one system after the other, so the order would change the draw: it is that of the names.
    """
    one, two = sorted((first, second), key=lambda runs: runs.method)
    return _drawn_p(one, two, metric, seed)


@lru_cache(maxsize=KEPT)
def _drawn_p(first: Runs, second: Runs, metric: str, seed: int) -> float | None:
    """The p of a pair in its order; a pair that stands in several tables is drawn once."""
    judged = [of_seeds(one, OVER[metric]) for one in (first, second)]
    if judged[0] is None or judged[1] is None:
        return None
    one, two = judged
    if not np.array_equal(one["gold"][0], two["gold"][0]):
        raise HilapError(f"{first.name}: {first.method} and {second.method} were judged on other documents or labels")
    size = one["gold"].shape[1]
    if not size:
        return None  # no label is covered: there is nothing to draw
    samples = min(SAMPLES, max(LEAST_SAMPLES, MOST_DRAWS // size))
    rng = np.random.default_rng([seed, 1])
    below = above = 0
    for weights in draws(size, samples, seed):
        gaps = drawn_means(one, weights, metric, rng) - drawn_means(two, weights, metric, rng)
        below += int((gaps <= 0).sum())
        above += int((gaps >= 0).sum())
    return min(1.0, 2 * (1 + min(below, above)) / (1 + samples))


def drawn_means(counts: dict[str, Scores], weights: Scores, metric: str, rng: np.random.Generator) -> Scores:
    """(R,) the mean score of drawn seeds on drawn documents or labels, one for each column of weights (n, R)."""
    if metric == "micro_f1":
        scores = f1_from_counts(*(counts[key] @ weights for key in ("right", "placed", "gold")), 0.0)  # (seeds, R)
    else:
        scores = counts["f1"] @ weights / weights.sum(axis=0)
    drawn = rng.integers(0, len(scores), scores.shape)
    return np.asarray(np.take_along_axis(scores, drawn, axis=0).mean(axis=0))


@lru_cache(maxsize=KEPT)
def of_seeds(runs: Runs, over: str) -> dict[str, Scores] | None:
    """(seeds, n) right, placed, gold and F1 of each document, or of each label that Macro-F1 covers.

    Labels also have their training documents and their level.
    """
    keys = ("right", "placed", "gold", *(("training", "level") if over == "labels" else ()))
    found = runs.columns(("counts", over), keys)
    if found is None:
        return None
    if any(np.isnan(values).any() for values in found.values()):
        raise HilapError(f"{runs.name}/{runs.method}: counts of {over} must be numbers; run it again with --again")
    if over == "labels":
        cover = (found["training"][0] > 0) & (found["gold"][0] > 0)
        found = {key: value[:, cover] for key, value in found.items()}
    empty = 1.0 if over == "documents" else 0.0
    return {**found, "f1": f1_from_counts(found["right"], found["placed"], found["gold"], empty)}
