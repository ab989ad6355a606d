"""How walks choose their actions: the best one, or a draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Choose = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(G, A) log-probabilities of the walks still going, (G,) which walks, (A,) all actions -> (G,) the chosen ones."""


def greedy(log_probs: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The most probable action."""
    return log_probs.argmax(1)


@dataclass(frozen=True)
class Sampler:
    """Draws actions from the policy (Gumbel: the largest of log-probability plus noise is a fair draw)."""

    generator: torch.Generator | None

    def __call__(self, log_probs: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """One draw for each row."""
        uniform = torch.rand(log_probs.shape, generator=self.generator, device=log_probs.device, dtype=log_probs.dtype)
        return (log_probs - torch.log(-torch.log(uniform.clamp_min(1e-30)))).argmax(1)


def sampler(generator: torch.Generator | None = None) -> Choose:
    """Draw actions from the policy."""
    return Sampler(generator)


@dataclass(frozen=True)
class FirstGreedy:
    """The first n walks take the best action, the others do something else."""

    n: int
    others: Choose

    def __call__(self, log_probs: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """The best action of the first rows, what the others choose for the rest."""
        arguments = (log_probs, rows, columns)
        return torch.where(rows < self.n, greedy(*arguments), self.others(*arguments))


def uniform_of(choose: Choose, steps: int, rows: int) -> NDArray[np.float64] | None:
    """(T, R) numbers that decide draws, as `Walker.walk` takes them; None for a choice of another kind."""
    if choose is greedy:
        return np.full((1, 1), -1.0)
    if isinstance(choose, Sampler):
        return torch.rand(steps, rows, generator=choose.generator, dtype=torch.float64).numpy()
    if isinstance(choose, FirstGreedy):
        drawn = uniform_of(choose.others, steps, rows)
        if drawn is not None:
            drawn = np.broadcast_to(drawn, (steps, rows)).copy()
            drawn[:, : choose.n] = -1.0
        return drawn
    return None


__all__ = ["Choose", "FirstGreedy", "Sampler", "greedy", "sampler", "uniform_of"]
