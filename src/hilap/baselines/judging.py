"""How good an epoch is: its scores on validation documents, at the threshold the classifier will have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.baselines.levels import Levels
from hilap.baselines.thresholds import _candidates, tuned
from hilap.metrics.counts import Counts, document_counts, label_counts, pair
from hilap.metrics.flat import covered, example_from_counts, f1_from_counts, macro_from_counts, micro_from_counts
from hilap.metrics.ranking import pooled_area
from hilap.metrics.single import single

F1S = ("example_f1", "micro_f1", "macro_f1")
SELECTS = (*F1S, "mean", "balanced", "au_prc", "loss")
"""What may choose the epoch: an F1, or the three together (`hilap.metrics.single`), the pooled area under the
precision-recall curve, or the loss on validation documents."""


@dataclass(frozen=True)
class Judge:
    """Scores of an epoch.

    With one tuned threshold for all labels, hundreds are tried; one pass over the scores counts for all of them at
    once, because repairing thresholded sets is thresholding repaired scores (`add`: the highest score at or below a
    label; `drop`: the lowest at or above it).
    """

    gold: Any  # (n, L) sparse indicator
    levels: Levels
    tune: str | None
    repair: str | None
    select: str
    start: float  # the threshold where none is tuned
    repaired: Callable[[NDArray[np.bool_]], NDArray[np.bool_]]

    def __call__(self, scores: NDArray[Any], loss: float) -> dict[str, float]:
        """`select`, the three F1 scores and the loss, from (n, L) probabilities and the loss of these documents."""
        figures = self._at_best(scores) if self._one_threshold else self._plain(scores)
        figures = {name: float(np.nan_to_num(value)) for name, value in figures.items()}
        together = {name: single(figures, name) for name in ("mean", "balanced")}
        chosen = {**figures, **together, "loss": -loss}
        if self.select == "au_prc":
            chosen["au_prc"] = figures["au_prc"] = float(np.nan_to_num(pooled_area(self.gold, scores)))
        return {"select": chosen[self.select], **figures, "validation_loss": loss}

    @property
    def _one_threshold(self) -> bool:
        return self.tune is not None and self.tune != "scut"

    def _plain(self, scores: NDArray[Any]) -> dict[str, float]:
        thresholds: Any = self.start
        if self.tune == "scut":
            thresholds = tuned(self.gold, scores, "scut", self.repaired, self.start)
        right, found = pair(self.gold, self.repaired(scores > thresholds))
        by_label = label_counts(right, found)
        return {
            "example_f1": example_from_counts(document_counts(right, found)).f1,
            "micro_f1": micro_from_counts(by_label).f1,
            "macro_f1": macro_from_counts(by_label, covered("gold", by_label.gold)).f1,
        }

    def _at_best(self, scores: NDArray[Any]) -> dict[str, float]:
        # scutfbr trains twelve further models: an epoch is judged by one threshold for what chooses epochs
        metric = self.tune if self.tune != "scutfbr" else self.select if self.select in F1S else "mean"
        tried = _candidates(self.gold, scores, self.start)
        whole = {"add": self.levels.highest, "drop": self.levels.lowest}
        repaired = scores if self.repair is None else whole[self.repair](scores)
        curves = f1_curves(self.gold, repaired, tried)
        known = {name: np.nan_to_num(curve) for name, curve in curves.items()}
        wanted = [single(dict(zip(known, at, strict=True)), str(metric)) for at in zip(*known.values(), strict=True)]
        best = int(np.argmax(wanted))
        return {name: float(curve[best]) for name, curve in curves.items()}


def f1_curves(gold: Any, scores: NDArray[Any], thresholds: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """(T,) for each metric its value at each of some ascending thresholds for all labels.

    Parameters
    ----------
    gold
        (n, L) sparse indicator.
    scores
        (n, L); a label is given where its score is above the threshold.
    thresholds
        (T,) ascending.
    """
    places = np.searchsorted(thresholds, scores.astype(np.float64))  # how many thresholds each score is above
    rows = np.repeat(np.arange(gold.shape[0]), np.diff(gold.indptr))
    right = places[rows, gold.indices]
    documents = Counts(
        _above(rows, right, gold.shape[0], len(thresholds)),
        _above(np.arange(len(places))[:, None], places, gold.shape[0], len(thresholds)),
        np.diff(gold.indptr)[:, None],
    )
    held = np.bincount(gold.indices, minlength=gold.shape[1])
    labels = Counts(
        _above(gold.indices, right, gold.shape[1], len(thresholds)),
        _above(np.arange(gold.shape[1]), places, gold.shape[1], len(thresholds)),
        held[:, None],
    )
    by_label = f1_from_counts(*labels, empty=0.0)[held > 0]
    hits, given = documents.true_positives.sum(0), documents.predicted.sum(0)
    return {
        "example_f1": f1_from_counts(*documents).mean(0),
        "micro_f1": f1_from_counts(hits, given, documents.gold.sum(), empty=0.0),
        "macro_f1": by_label.mean(0) if len(by_label) else np.full(len(thresholds), np.nan),
    }


def _above(group: NDArray[Any], places: NDArray[Any], groups: int, n: int) -> NDArray[np.int64]:
    """(groups, n) how many of a group's scores are above each of n thresholds."""
    exactly = np.bincount((group.astype(np.int64) * (n + 1) + places).ravel(), minlength=groups * (n + 1))
    passed = exactly.reshape(groups, n + 1)[:, ::-1].cumsum(1)[:, ::-1]
    return np.asarray(passed[:, 1:])


__all__ = ["F1S", "SELECTS", "Judge", "f1_curves"]
