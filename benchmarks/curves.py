"""What a result keeps of its probabilities: a reliability table and a thinned precision-recall curve.

The probabilities themselves would be megabytes; these are what the figures need of them, as texts of numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hilap.metrics.calibration import are_probabilities, reliability
from hilap.metrics.counts import entries, indicator, row_numbers

BINS, POINTS = 15, 100


def curves_of(gold: Any, scores: Any) -> dict[str, dict[str, str]]:
    """Both curves of the scores (n, L) of a split; nothing where they have no meaning.

    A reliability table needs probabilities, a precision-recall curve at least one gold label.
    """
    right = indicator(gold, "gold")
    found = {}
    if are_probabilities(scores):
        table = reliability(right, scores, bins=BINS)
        found["reliability"] = {
            "pairs": " ".join(str(count) for count in table.counts.tolist()),
            "probability": text_of(table.probability),
            "right": text_of(table.share),
        }
    if right.nnz:
        recall, precision = precision_recall(right, scores)
        found["precision_recall"] = {"recall": text_of(recall), "precision": text_of(precision)}
    return found


def precision_recall(gold: Any, scores: Any, points: int = POINTS) -> tuple[Any, Any]:
    """Recall and precision over all (document, label) pairs, at the highest threshold for each 1/points of recall.

    Equal scores come in together, so a point may lie beyond the recall it was taken for, and there may be fewer points.
    """
    values = np.sort(entries(scores, row_numbers(gold), gold.indices))[::-1]  # of the gold pairs, best first
    everything = np.sort(np.asarray(scores), axis=None)
    places = np.ceil(np.arange(1, points + 1) / points * len(values)).astype(np.int64) - 1
    thresholds = np.unique(values[places])[::-1]
    found = np.searchsorted(-values, -thresholds, side="right")
    given = len(everything) - np.searchsorted(everything, thresholds, side="left")
    return found / len(values), found / given


def text_of(numbers: Any) -> str:
    """Numbers as one text: as a list they would be one line each."""
    return " ".join(f"{number:.4g}" for number in np.asarray(numbers, dtype=np.float64).tolist())
