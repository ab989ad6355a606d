"""One number out of the three F1 scores, to choose by."""

from __future__ import annotations

import math
from collections.abc import Mapping

F1 = ("micro_f1", "macro_f1", "example_f1")


def single(scores: Mapping[str, float], metric: str) -> float:
    """The score of this name, or what several come to together.

    Parameters
    ----------
    scores
        `micro_f1`, `macro_f1` and `example_f1`.
    metric
        One of them; `mean`, of the three; or `balanced`, their geometric mean, for which a gain of a tenth in one makes
        up for a loss of a tenth in another, however large they are. On large taxonomies, where Macro-F1 is small,
        `mean` hardly looks at rare labels.

    Examples
    --------
    >>> round(single({"micro_f1": 0.8, "macro_f1": 0.1, "example_f1": 0.8}, "balanced"), 6)
    0.4
    """
    if metric == "mean":
        return math.fsum(scores[name] for name in F1) / 3
    if metric == "balanced":
        return float(math.prod(scores[name] for name in F1) ** (1 / 3))
    return float(scores[metric])


__all__ = ["F1", "single"]
