"""What a label set is worth, and what each step of a walk gains: the rewards of the method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hilap.metrics.flat import f1_from_counts


@dataclass(frozen=True)
class Score:
    """What a label set is worth, from three sums over labels: in both sets, in the placed one, in the gold one.

    Only sums, so that the gains of a walk follow from the labels that each step places. The paper's score is
    `EXAMPLE_F1`.
    """

    formula: Callable[[Tensor, Tensor, Tensor], Tensor]  # hits, placed, gold -> the score, entry by entry
    weights: Tensor | None = None  # (L,) what a label counts; None: 1
    share: float = 1.0  # of this score in a sum of several
    prices: Tensor | None = None  # (L,) what a placed label counts in the second sum; None: what it weighs

    def weigh(self, labels: Tensor, like: Tensor) -> Tensor:
        """(M,) what these labels count."""
        return like.new_ones(len(labels)) if self.weights is None else self.weights.to(like)[labels]

    def price(self, labels: Tensor, like: Tensor) -> Tensor:
        """(M,) what it counts that these labels are placed."""
        return self.weigh(labels, like) if self.prices is None else self.prices.to(like)[labels]

    def of_sets(self, placed: Tensor, gold: Tensor) -> Tensor:
        """(R,) the score of (R, L) placed sets against gold ones."""
        weights = torch.ones(placed.shape[1]) if self.weights is None else self.weights
        prices = weights if self.prices is None else self.prices
        sums = ((s.to(w.dtype) @ w) for s, w in ((placed & gold, weights), (placed, prices), (gold, weights)))
        return self.share * self.formula(*sums)


EXAMPLE_F1 = Score(f1_from_counts)
"""Example-based F1: the same function that the reports use."""


def gains(
    scores: Sequence[Score], gold: Tensor, steps: int, step: Tensor, row: Tensor, label: Tensor, like: Tensor
) -> Tensor:
    """(T, R) how much each step of each walk adds to the sum of the scores.

    Parameters
    ----------
    scores
        What sets are worth.
    gold
        (R, L) the gold set of each walk.
    steps
        T, the number of steps.
    step, row, label
        (Q,) each: in this step of this walk this label was placed, for the first time.
    like
        Gives the type and the device of the sums.
    """
    n = len(gold)
    total = like.new_zeros(steps + 1, n)
    right, everything = gold[row, label], torch.arange(gold.shape[1], device=gold.device)
    for score in scores:
        found, hits = (
            like.new_zeros((steps + 1) * n).index_add(0, (step + 1) * n + row, value).view(steps + 1, n).cumsum(0)
            for value in (score.price(label, like), score.weigh(label, like) * right)
        )
        whole = gold.to(like.dtype) @ score.weigh(everything, like)
        total += score.share * score.formula(hits, found, whole.expand_as(hits))
    return total.diff(dim=0)


__all__ = ["EXAMPLE_F1", "Score", "gains"]
