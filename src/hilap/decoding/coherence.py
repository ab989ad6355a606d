"""Probabilities of labels made to fit together: a child is never more probable than its parent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


__all__ = ["Coherence"]
