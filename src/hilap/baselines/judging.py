"""How good an epoch is: its scores on validation documents, at the threshold the classifier will have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.baselines.thresholds import curve_of, f1_curves, tried_out, tuned
from hilap.metrics.counts import document_counts, label_counts, pair
from hilap.metrics.flat import covered, example_from_counts, macro_from_counts, micro_from_counts
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
    once, because repairing thresholded sets is thresholding repaired scores.
    """

    gold: Any  # (n, L) sparse indicator
    tune: str | None
    select: str
    start: float  # the threshold where none is tuned
    repair: Callable[[NDArray[Any]], NDArray[Any]]  # of scores, and so of sets
    seen: NDArray[np.bool_]  # (L,) whether a training document has a label; the others are never given

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
            thresholds = tuned(self.gold, scores, "scut", self.repair, self.start, self.seen)
        right, found = pair(self.gold, self.repair((scores > thresholds) & self.seen))
        by_label = label_counts(right, found)
        return {
            "example_f1": example_from_counts(document_counts(right, found)).f1,
            "micro_f1": micro_from_counts(by_label).f1,
            "macro_f1": macro_from_counts(by_label, covered("gold", by_label.gold)).f1,
        }

    def _at_best(self, scores: NDArray[Any]) -> dict[str, float]:
        # scutfbr trains fifteen further models: an epoch is judged by one threshold for what chooses epochs
        metric = self.tune if self.tune != "scutfbr" else self.select if self.select in F1S else "mean"
        _, curves = tried_out(self.gold, scores, self.repair, self.start, self.seen)
        best = int(np.argmax(curve_of(curves, str(metric))))
        return {name: float(curve[best]) for name, curve in curves.items()}


__all__ = ["F1S", "SELECTS", "Judge", "f1_curves"]
