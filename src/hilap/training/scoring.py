"""How well predicted sets do, and where thresholds and rough biases are looked for."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hilap.metrics import flat as flat_metrics
from hilap.metrics.single import single

THRESHOLDS = tuple(n / 100 for n in (*range(2, 50, 2), *range(50, 95, 10)))
"""Where the threshold of a flat model, or of HiLAP-SL, is looked for."""
ROUGH = {"constant": (-0.4, -0.2, 0.0, 0.2, 0.4), "prior": (0.0, 0.1, 0.2)}
ROUGH_RESIDUAL = {"constant": ROUGH["constant"], "count": (0.0, 0.25, 0.5, 0.75)}
"""Where the stop bias is looked for after every epoch; after the last one it is looked for more closely."""


def score_sets(gold: Any, found: Any, select: str) -> dict[str, float]:
    """Micro-, Macro- and example F1, and under `select` the one that chooses."""
    scores = {
        "micro_f1": flat_metrics.micro(gold, found).f1,
        "macro_f1": flat_metrics.macro(gold, found).f1,
        "example_f1": flat_metrics.example(gold, found).f1,
    }
    return {**scores, "select": single(scores, select)}


def best_threshold(gold: Any, probabilities: NDArray[Any], select: str) -> tuple[float, dict[str, float]]:
    """The threshold that gives the best score, and the scores it gives."""
    tried = [(t, score_sets(gold, probabilities > t, select)) for t in THRESHOLDS]
    return max(tried, key=lambda pair: pair[1]["select"])
