"""Where to stop: a bias that trades precision for recall, and its tuning on validation data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hilap.decoding.checks import number, one_of, whole
from hilap.decoding.coherence import Coherence, Lifting
from hilap.errors import SettingError, require
from hilap.metrics.counts import document_counts, label_counts, pair, training_counts
from hilap.metrics.flat import covered, example_from_counts, macro_from_counts, micro_from_counts
from hilap.metrics.single import single
from hilap.settings import METRICS, Settings
from hilap.taxonomy import Taxonomy

MOST = 1e3

Metric = Callable[[Any, Any], float]
"""(n, L) gold and predicted indicator matrices -> a score, the higher the better."""
SetsFor = Callable[["StopBias"], Any]
"""A bias -> the (n, L) indicator matrix of the sets decoded with it."""


@dataclass(frozen=True, kw_only=True)
class StopBias(Settings):
    """What is added to the action scores when decoding; all zero: nothing.

    Parameters
    ----------
    constant
        Added to the score of stop. Above 0 walks stop sooner (precision), below 0 later (recall).
    prior
        This times the label's log prior odds, less their mean over labels, is taken off the label's score. Above 0
        rare labels are favoured.
    level
        This times (level - 1) is added to the label's score. Above 0 walks go deeper.
    count
        This times the label's shortfall is added to its score: how far it lies below the threshold on the document
        that would be the last to get it, were it placed as often as it occurs (`shortfalls`). Rare labels are often
        below the threshold everywhere; 1 lifts each as far as its own counts ask for, and no further.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"]})
    >>> StopBias(constant=2.0, level=0.5).vector(taxonomy, [8, 2], 10).tolist()
    [0.0, 0.5, 2.0]
    """

    constant: float = 0.0
    prior: float = 0.0
    level: float = 0.0
    count: float = 0.0

    def __post_init__(self) -> None:
        for name in ("constant", "prior", "level", "count"):
            number(name, getattr(self, name), -MOST, MOST)

    def vector(
        self, taxonomy: Taxonomy, counts: Any, n_documents: int, shortfall: NDArray[Any] | None = None
    ) -> Tensor:
        """(A,) for `Policy.documents(bias=...)`, from the training documents of each label and of all together.

        `shortfall` (L,) is needed where `count` is not 0.
        """
        seen = training_counts(counts, len(taxonomy))
        good = isinstance(n_documents, int) and not isinstance(n_documents, bool)
        require(
            good and int(seen.max(initial=0)) <= n_documents,
            "n_documents",
            f"a whole number, at least the largest count ({int(seen.max(initial=0))})",
            n_documents,
        )
        odds = np.log((seen + 0.5) / (n_documents - seen + 0.5))
        odds -= odds.mean() if len(odds) else 0.0
        labels = self.level * (taxonomy.levels - 1) - self.prior * odds
        if self.count:
            require(shortfall is not None, "count", "0 where labels have no shortfall", self.count)
            labels = labels + self.count * np.asarray(shortfall, dtype=np.float64)
        return torch.from_numpy(np.append(labels, self.constant)).float()


@dataclass(frozen=True)
class Tuned:
    """The best bias found, its score, and every bias tried with its score, in the order of trying."""

    bias: StopBias
    score: float
    table: tuple[tuple[StopBias, float], ...]


COARSE: Mapping[str, tuple[float, ...]] = {
    "constant": (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0),
    "prior": (-0.5, 0.0, 0.5, 1.0),
    "level": (-1.0, -0.5, 0.0, 0.5, 1.0),
    "count": (0.0, 0.25, 0.5, 0.75, 1.0),
}
"""Where tuning looks first. Refining leaves these ranges if that helps, but for counts, which lift and never lower."""


def shortfalls(
    logits: NDArray[Any], labels: Any, threshold: float, taxonomy: Taxonomy, *, lift: bool = False
) -> NDArray[np.float32]:
    """(L,) how far each label lies below the threshold on the n-th best document, n being how many carry it.

    Parameters
    ----------
    logits
        (n, L) flat logits of documents that the model has not learned from.
    labels
        (n, L) their gold sets.
    threshold
        The logit above which a label is placed.
    lift
        Whether labels are lifted to the highest below them; else each counts as no more probable than any above it.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": []})
    >>> shortfalls(np.array([[2.0, -3.0], [1.0, -2.0]]), np.array([[1, 0], [1, 1]]), -1.0, taxonomy).tolist()
    [0.0, 1.0]
    """
    fitting = Lifting(taxonomy)(torch.from_numpy(logits)).numpy() if lift else Coherence(taxonomy)(logits)
    ranked = np.sort(fitting, axis=0)
    counts = np.asarray(labels.sum(0)).ravel().astype(np.int64)
    seen = np.flatnonzero(counts)
    found = np.zeros(len(counts), dtype=np.float32)
    found[seen] = np.maximum(0, threshold - ranked[len(ranked) - counts[seen], seen])
    return found


def tune_stop_bias(
    sets_for: SetsFor,
    gold: Any,
    *,
    metric: str | Metric = "example_f1",
    grids: Mapping[str, Sequence[float]] = COARSE,
    refinements: int = 2,
    start: StopBias | None = None,
) -> Tuned:
    """The stop bias with the best score on validation data: a coarse grid, then ever smaller steps.

    The parts of the bias are tuned one after the other, each on its grid with the others at their best; then steps of
    half, a quarter, ... of the grid's spacing are tried up and down in every part until none helps. No bias is decoded
    twice. The same input gives the same result; of equally good ones the first found is kept, which is the nearest to
    `start`.

    Parameters
    ----------
    sets_for
        Decodes the validation documents with a bias; gives their (n, L) indicator matrix (array, sparse or tensor).
    gold
        (n, L) their gold sets.
    metric
        `micro_f1`, `macro_f1` (over the labels that occur in gold), `example_f1`, `mean` or `balanced` (of these three:
        `hilap.metrics.single`), or a function of gold and predicted sets.
    grids
        The values to try first, for each part that is to be tuned; the others stay as in `start`.
    refinements
        How often steps are halved.
    start
        Where to begin, unless zero for all parts that are tuned is better; default: no bias.
    """
    whole("refinements", refinements, 0)
    search = _Search(sets_for, gold, score_of(metric))
    first = StopBias() if start is None else start
    best = search.better(first, [first.but(**dict.fromkeys(grids, 0.0))] if {*grids} <= {*COARSE} else [])
    for part, values in grids.items():
        one_of("grids", part, tuple(COARSE))
        nearest = sorted({float(v) for v in values}, key=lambda v: (abs(v - getattr(best, part)), v))
        best = search.better(best, [best.but(**{part: v}) for v in nearest])
    for halvings in range(1, refinements + 1):
        steps = {part: _spacing(values) / 2**halvings for part, values in grids.items() if _spacing(values)}
        best = _climb(search, best, steps)
    return Tuned(best, search.scores[best], tuple(search.scores.items()))


@dataclass
class _Search:
    """What was tried so far."""

    sets_for: SetsFor
    gold: Any
    score: Metric
    scores: dict[StopBias, float] = field(default_factory=dict)

    def better(self, best: StopBias, others: Sequence[StopBias]) -> StopBias:
        """The best of these; the first one where others are only as good."""
        for bias in (best, *others):
            if bias not in self.scores:
                self.scores[bias] = self._try(bias)
        return max((best, *others), key=self.scores.__getitem__)

    def _try(self, bias: StopBias) -> float:
        found = self.sets_for(bias)
        score = float(self.score(self.gold, found.cpu().numpy() if isinstance(found, Tensor) else found))
        if math.isnan(score):
            raise SettingError(
                f"the metric is not a number with {bias}; macro_f1 needs a document with a gold label in the "
                "validation data"
            )
        return score


def _climb(search: _Search, best: StopBias, steps: Mapping[str, float]) -> StopBias:
    """Small steps up and down in each part, as long as one helps."""
    before = None
    while best != before:
        before = best
        for part, step in steps.items():
            here = getattr(best, part)
            least = 0.0 if part == "count" else -MOST
            around = [min(max(here + way * step, least), MOST) for way in (-1, 1)]
            best = search.better(best, [best.but(**{part: value}) for value in around])
    return best


def _spacing(values: Sequence[float]) -> float:
    """The mean distance between the values of a grid; 0 for a single value, which is not refined."""
    distinct = {float(v) for v in values}
    return (max(distinct) - min(distinct)) / (len(distinct) - 1) if len(distinct) > 1 else 0.0


def score_of(metric: str | Metric) -> Metric:
    """The function behind the name of a metric."""
    if callable(metric):
        return metric
    one_of("metric", metric, METRICS)

    def score(gold: Any, predicted: Any) -> float:
        right, found = pair(gold, predicted)
        by_label = label_counts(right, found)
        scores = {
            "micro_f1": micro_from_counts(by_label).f1,
            "macro_f1": macro_from_counts(by_label, covered("gold", by_label.gold)).f1,
            "example_f1": example_from_counts(document_counts(right, found)).f1,
        }
        return single(scores, str(metric))

    return score
