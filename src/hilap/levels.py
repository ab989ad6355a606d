"""Values passed along the edges of a taxonomy, level by level: never a (documents, labels, labels) tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hilap.taxonomy import Taxonomy

Step = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Labels; what each is made of, one label's after the other's; where each label's begin."""


class Levels:
    """The edges of a taxonomy in the order in which values flow.

    Parameters
    ----------
    taxonomy
        The labels.

    Examples
    --------
    >>> levels = Levels(Taxonomy.of({"Food": [], "Bars": ["Food"], "Beer Bars": ["Bars"]}))
    >>> chances = np.array([[0.2, 0.5, 0.4]])
    >>> levels.highest(chances).tolist(), levels.lowest(chances).tolist(), levels.product(chances).round(3).tolist()
    ([[0.5, 0.5, 0.4]], [[0.2, 0.2, 0.2]], [[0.2, 0.1, 0.04]])
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        level = taxonomy.longest_levels  # all parents of a label are above it, all its children below
        depth = int(level.max(initial=0))
        n_children = np.diff(taxonomy.child_matrix.indptr)
        self.up: list[Step] = []
        for number in range(depth - 1, 0, -1):
            labels = np.flatnonzero((level == number) & (n_children > 0))
            if len(labels):
                self.up.append(_step(labels, taxonomy.child_matrix, itself=True))
        self.down: list[Step] = [
            _step(np.flatnonzero(level == number), taxonomy.parent_matrix, itself=False)
            for number in range(2, depth + 1)
        ]

    def highest(self, values: NDArray[Any]) -> NDArray[Any]:
        """(n, L) for each label the highest of its own value and those of all labels below it."""
        found = values.copy()
        for labels, members, starts in self.up:
            found[:, labels] = np.maximum.reduceat(found[:, members], starts, axis=1)
        return found

    def lowest(self, values: NDArray[Any]) -> NDArray[Any]:
        """(n, L) for each label the lowest of its own value and those of all labels above it."""
        return self._downward(values, np.minimum)

    def product(self, values: NDArray[Any]) -> NDArray[Any]:
        """(n, L) for each label its own value times the result of its parent; of several parents, the lowest."""
        return self._downward(values, np.multiply)

    def _downward(self, values: NDArray[Any], joined: Any) -> NDArray[Any]:
        found = np.ascontiguousarray(values.T)
        found = found.copy() if np.shares_memory(found, values) else found
        for labels, parents, starts in self.down:
            found[labels] = joined(found[labels], np.minimum.reduceat(found[parents], starts, axis=0))
        return np.ascontiguousarray(found.T)


class _Highest(torch.autograd.Function):
    """`Levels.highest` with a gradient: it goes to the label whose value was the highest, of equals to the first."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, levels: Levels) -> Tensor:
        found = np.ascontiguousarray(values.detach().numpy().T).copy()
        source = np.repeat(np.arange(len(found), dtype=np.int64)[:, None], found.shape[1], axis=1)
        for labels, members, starts in levels.up:
            parts = found[members]
            top = np.maximum.reduceat(parts, starts, axis=0)
            lengths = np.diff(np.append(starts, len(members)))
            sources = np.where(parts == np.repeat(top, lengths, axis=0), source[members], len(found))
            source[labels] = np.minimum.reduceat(sources, starts, axis=0)
            found[labels] = top
        ctx.save_for_backward(torch.from_numpy(source.T))
        return torch.from_numpy(np.ascontiguousarray(found.T))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (source,) = ctx.saved_tensors
        return torch.zeros_like(gradients[0]).scatter_add_(1, source, gradients[0]), None


def highest(values: Tensor, levels: Levels) -> Tensor:
    """(B, L) for each label the highest of its own value and those of all labels below it, with a gradient."""
    if torch.is_grad_enabled() and values.requires_grad:
        found: Tensor = _Highest.apply(values, levels)  # type: ignore[no-untyped-call]
        return found
    return torch.from_numpy(levels.highest(values.detach().numpy()))


def _step(labels: NDArray[Any], matrix: Any, *, itself: bool) -> Step:
    """These labels with their neighbours in a matrix, and if asked each label itself before its neighbours."""
    rows = matrix[labels]
    lengths = np.diff(rows.indptr).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    members = rows.indices.astype(np.int64)
    if itself:
        members = np.insert(members, starts, labels)
        starts = starts + np.arange(len(labels))
    return labels.astype(np.int64), members, starts


__all__ = ["Levels", "highest"]
