"""A predictive clustering tree for label sets (Vens et al. 2008): grown once, cut back to any significance.

Documents are label vectors with a weight for each label that falls with depth; a test is chosen for how much variance
it takes away, and kept where an F-test says that this is no accident. As the best test of some documents does not
depend on the significance, the tree for a stricter one is the top of the tree for a looser one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from hilap.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
LEAF = -1  # the feature of a node without a test


def label_weights(taxonomy: Taxonomy, decay: float) -> Floats:
    """(L,) the weight of each label: `decay` for top labels, below them `decay` times the mean of the parents'.

    Examples
    --------
    >>> label_weights(Taxonomy.of({"Food": [], "Bars": ["Food"]}), 0.75).tolist()
    [0.75, 0.5625]
    """
    weights = np.full(len(taxonomy), float(decay))
    parents = taxonomy.parent_matrix
    for level in range(2, int(taxonomy.longest_levels.max(initial=1)) + 1):
        labels = np.flatnonzero(taxonomy.longest_levels == level)
        above = parents[labels]
        weights[labels] = decay * np.add.reduceat(weights[above.indices], above.indptr[:-1]) / np.diff(above.indptr)
    return weights


def f_test(n_documents: float, whole: float, gain: float) -> float:
    """How probable a reduction of the sum of squares this large is by accident: F with 1 and n - 2 degrees of freedom.

    Parameters
    ----------
    n_documents
        Before the split.
    whole
        The sum of squares before the split.
    gain
        What the split takes away from it.
    """
    freedom = np.floor(n_documents - 1.5)
    if freedom <= 0 or gain <= 0:
        return 1.0
    rest = whole - gain
    return float(special.fdtrc(1, freedom, freedom * gain / rest)) if rest > 0 else 0.0


@dataclass(frozen=True)
class Tree:
    """Tests and leaves. A node's children stand behind it; the first node is the root."""

    feature: Whole  # (nodes,) LEAF for a leaf
    threshold: Floats  # (nodes,) documents with a larger value go right
    left: Whole  # (nodes,) a node; of a leaf: its row of `means`
    right: Whole  # (nodes,) a node; of a leaf: 0
    means: sparse.csr_array  # (leaves, L) float32: the share of a leaf's documents that have a label


@dataclass(frozen=True)
class GrownTree:
    """A tree of which every top part can still be had."""

    feature: Whole
    threshold: Floats
    left: Whole
    right: Whole
    accident: Floats  # (nodes,) how probable the gain of its test is by accident
    means: sparse.csr_array  # (nodes, L) of every node

    def cut(self, significance: float) -> Tree:
        """The tree that only has tests whose gain is at most this probable by accident."""
        tested = (self.feature != LEAF) & (self.accident <= significance)
        kept = [0]
        for node in kept:  # grows as it is walked through
            if tested[node]:
                kept += [int(self.left[node]), int(self.right[node])]
        nodes = np.array(kept, dtype=np.int64)
        number = np.zeros(len(self.feature), dtype=np.int64)
        number[nodes] = np.arange(len(nodes))
        inner = tested[nodes]
        return Tree(
            np.where(inner, self.feature[nodes], LEAF),
            np.where(inner, self.threshold[nodes], 0.0),
            np.where(inner, number[self.left[nodes]], np.cumsum(~inner) - 1),
            np.where(inner, number[self.right[nodes]], 0),
            sparse.csr_array(self.means[nodes[~inner]]),
        )


@dataclass(frozen=True)
class Growing:
    """What a tree is grown from, and how.

    Parameters
    ----------
    rows
        (n, F) the documents.
    labels
        (n, L) their label sets, closed upward.
    weights
        (L,) of the labels.
    min_leaf
        The fewest documents of a leaf.
    significance
        The largest probability of an accident at which a test is kept.
    features
        How many features each test is chosen from; all, or drawn anew for each node.
    """

    rows: sparse.csr_matrix
    labels: Any
    weights: Floats
    min_leaf: int
    significance: float
    features: int

    def grow(self, times: Floats, rng: np.random.Generator) -> GrownTree:
        """A tree from documents that count so many times each (0: not at all)."""
        from hilap.baselines.clus_splits import above

        rows = (self.rows.indptr, self.rows.indices, self.rows.data)
        members = [np.flatnonzero(times > 0)]
        feature, threshold, left, right, accident = ([LEAF], [0.0], [0], [0], [1.0])
        for node, documents in enumerate(members):  # grows as it is walked through
            found, cut, chance = self._test(documents, times, rng)
            if found == LEAF:
                continue
            goes_right = above(documents, *rows, found, cut)
            feature[node], threshold[node], accident[node] = found, cut, chance
            left[node], right[node] = len(members), len(members) + 1
            members += [documents[~goes_right], documents[goes_right]]
            for column, value in ((feature, LEAF), (threshold, 0.0), (left, 0), (right, 0), (accident, 1.0)):
                column += [value, value]
        features, lefts, rights = (np.array(column, dtype=np.int64) for column in (feature, left, right))
        means = _means(members, times, self.labels)
        return GrownTree(features, np.array(threshold), lefts, rights, np.array(accident), means)

    def _test(self, documents: Whole, times: Floats, rng: np.random.Generator) -> tuple[int, float, float]:
        """The best test of these documents, and how probable its gain is by accident; LEAF where none is kept."""
        from hilap.baselines.clus_splits import best_split

        size = float(times[documents].sum())
        if size < 2 * self.min_leaf:
            return LEAF, 0.0, 1.0
        allowed = np.ones(self.rows.shape[1], dtype=bool)
        if self.features < len(allowed):
            allowed[:] = False
            allowed[rng.choice(len(allowed), self.features, replace=False)] = True
        found, cut, gain, whole = best_split(
            documents, times, self.rows.indptr, self.rows.indices, self.rows.data, allowed,
            self.labels.indptr, self.labels.indices, self.weights, float(self.min_leaf),
        )  # fmt: skip
        chance = f_test(size, whole, gain)
        return (found, cut, chance) if found >= 0 and chance <= self.significance else (LEAF, 0.0, 1.0)


def _means(members: list[Whole], times: Floats, labels: Any) -> sparse.csr_array:
    """(nodes, L) float32: the mean label vector of each node's documents."""
    sizes = np.array([len(documents) for documents in members])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.concatenate(members)
    node = np.repeat(np.arange(len(members)), sizes)
    totals = np.bincount(node, weights=times[columns], minlength=len(members))
    share = sparse.csr_array((times[columns], columns, starts), shape=(len(members), len(times)))
    means = sparse.csr_array(share @ labels.astype(np.float64))
    means.data /= np.repeat(totals, np.diff(means.indptr))
    means.sort_indices()
    return means.astype(np.float32)


__all__ = ["LEAF", "Growing", "GrownTree", "Tree", "f_test", "label_weights"]
