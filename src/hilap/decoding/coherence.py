"""Scores of labels made to fit together, a child never above its parent.

By capping children, by lifting parents, or by letting both meet halfway (condensing).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hilap.levels import Levels, highest
from hilap.taxonomy import Taxonomy

_BLOCK = 1_000_000  # scores


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
        self._levels = Levels(taxonomy)

    def __call__(self, probabilities: NDArray[Any]) -> NDArray[Any]:
        """(B, L) the smallest of each label's own probability and those of its ancestors."""
        return self._levels.lowest(probabilities)


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
        self._levels = Levels(taxonomy)

    def __call__(self, scores: Tensor) -> Tensor:
        """(B, L) the highest of each label's own score and those of its descendants; gradients go where it is."""
        if scores.device.type == "cpu":
            return highest(scores, self._levels)
        for labels, members, starts in self._levels.up:
            lengths = np.diff(np.append(starts, len(members)))
            parents = torch.from_numpy(np.repeat(labels, lengths)).to(scores.device)
            values = scores.index_select(1, torch.from_numpy(members).to(scores.device))
            scores = scores.scatter_reduce(1, parents.expand(len(scores), -1), values, "amax")
        return scores


class Condensing:
    """Gives labels that stand above a parent, and that parent, the mean of their scores: the nearest that fit together.

    What speaks for a child speaks for its parent, and what speaks against the parent speaks against the child: the
    isotonic regression of the scores (`hilap.consistent.condensing`).

    Parameters
    ----------
    taxonomy
        The labels.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"]})
    >>> Condensing(taxonomy)(torch.tensor([[0.5, 0.75]])).tolist()
    [[0.625, 0.625]]
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy

    def __call__(self, scores: Tensor) -> Tensor:
        """(B, L) the condensed scores; no gradient goes through them."""
        from hilap.consistent.condensing import condensed

        given = scores.detach().cpu().numpy()
        found = np.empty_like(given)
        block = max(1, _BLOCK // max(1, given.shape[1]))
        for start in range(0, len(given), block):  # regression is done in 64 bits: not of all documents at once
            found[start : start + block] = condensed(given[start : start + block], self._taxonomy)
        return torch.from_numpy(found).to(scores.device)


__all__ = ["Coherence", "Condensing", "Lifting"]
