"""Scores of labels made to fit together, a child never above its parent: by capping children, or by lifting parents."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hilap.taxonomy import Taxonomy


class Coherence:
    """Caps the probability of each label by that of every label above it, level by level.

    Parameters
    ----------
    taxonomy
        The labels.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"]})
    >>> Coherence(taxonomy)(np.array([[0.5, 0.75]])).tolist()
    [[0.5, 0.5]]
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        parents = taxonomy.parent_matrix
        levels = taxonomy.longest_levels  # all parents of a label are done before it
        self._levels = []
        for level in range(2, int(levels.max(initial=1)) + 1):
            labels = np.flatnonzero(levels == level)
            above = parents[labels]
            self._levels.append((labels, above.indices, above.indptr[:-1]))

    def __call__(self, probabilities: NDArray[Any]) -> NDArray[Any]:
        """(B, L) the smallest of each label's own probability and those of its ancestors."""
        capped = probabilities.copy()
        for labels, above, starts in self._levels:
            least = np.minimum.reduceat(capped[:, above], starts, axis=1)
            capped[:, labels] = np.minimum(capped[:, labels], least)
        return capped


class Lifting:
    """Raises the score of each label to the highest below it, level by level: what speaks for a child speaks for it.

    Parameters
    ----------
    taxonomy
        The labels.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"]})
    >>> Lifting(taxonomy)(torch.tensor([[0.5, 0.75]])).tolist()
    [[0.75, 0.75]]
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        children = taxonomy.child_matrix
        inner = np.diff(children.indptr) > 0
        levels = taxonomy.longest_levels  # all children of a label are done before it
        self._levels = []
        for level in range(int(levels.max(initial=1)) - 1, 0, -1):
            labels = np.flatnonzero((levels == level) & inner)
            if len(labels):
                below = children[labels]
                self._levels.append((labels, below.indices.astype(np.int64), below.indptr.astype(np.int64)))

    def __call__(self, scores: Tensor) -> Tensor:
        """(B, L) the highest of each label's own score and those of its descendants; gradients go where it is."""
        if not scores.requires_grad and scores.device.type == "cpu":
            return torch.from_numpy(self._in_numpy(scores.numpy()))
        for labels, below, starts in self._levels:
            parents = torch.from_numpy(np.repeat(labels, np.diff(starts))).to(scores.device)
            values = scores.index_select(1, torch.from_numpy(below).to(scores.device))
            scores = scores.scatter_reduce(1, parents.expand(len(scores), -1), values, "amax")
        return scores

    def _in_numpy(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The same, several times as fast."""
        lifted = scores.copy()
        for labels, below, starts in self._levels:
            highest = np.maximum.reduceat(lifted[:, below], starts[:-1], axis=1)
            lifted[:, labels] = np.maximum(lifted[:, labels], highest)
        return lifted


__all__ = ["Coherence", "Lifting"]
