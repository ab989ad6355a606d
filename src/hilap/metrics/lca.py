"""LCA precision, recall and F1 (after Kosmopoulos et al. 2015): a wrong label is charged for the way to the right one.

hP and hR count *all* ancestors, so deep labels share many and look alike. Here only the ways up to the lowest common
ancestors count. The definition, for one document:

1. Both sets are reduced to their most specific labels, Y (gold) and P (predicted). On sets closed upward the measure
   would only repeat hP, hR and hF.
2. The way from y to p leads up from y to a common ancestor and down to p; its length is the number of edges. A label is
   its own ancestor, and the root is everyone's. The common ancestors of a shortest way are the lowest ones.
3. Every y is linked with every p nearest to it, and every p with every y nearest to it. Ties are all taken, so the
   measure does not depend on the order of labels.
4. For every link and every lowest common ancestor a of it, Y⁺ takes all labels on shortest ways from y up to a, and
   P⁺ those from p up to a; Y⁺ also holds Y, and P⁺ holds P. The root is left out, unless `count_root`.
5. Precision is |Y⁺ ∩ P⁺| / |P⁺|, recall |Y⁺ ∩ P⁺| / |Y⁺|, F1 from both; each is averaged over documents. Two empty
   sets score 1; one empty set against labels scores 0.

The article goes on to thin out the links to a smallest sufficient set, which is not unique; we stop before that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hilap.metrics.counts import Bools, Integers, document_counts, pair, row_numbers
from hilap.metrics.flat import PRF, example_from_counts
from hilap.taxonomy.graph import Indicator, Taxonomy

MOST_PAIRS = 300_000  # (gold, predicted) pairs looked at together: bounds the memory


def lca_scores(gold: Any, predicted: Any, taxonomy: Taxonomy, *, count_root: bool = False) -> PRF:
    """LCA-P, LCA-R and LCA-F, averaged over documents; the module's text gives the definition.

    Parameters
    ----------
    gold, predicted
        (n, L) indicator matrices, closed upward or not.
    taxonomy
        A tree or a DAG.
    count_root
        Count the root where it is the lowest common ancestor, as the article does: then two labels with nothing in
        common still share the root.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"A": [], "B": ["A"], "C": ["A"]})
    >>> lca_scores(taxonomy.encode([["B"]]), taxonomy.encode([["C"]]), taxonomy)
    PRF(precision=0.5, recall=0.5, f1=0.5)
    """
    right, found = augmented(gold, predicted, taxonomy)
    if not count_root:
        right, found = right[:, : len(taxonomy)], found[:, : len(taxonomy)]
    return example_from_counts(document_counts(right, found))


def augmented(gold: Any, predicted: Any, taxonomy: Taxonomy) -> tuple[Indicator, Indicator]:
    """Y⁺ and P⁺ of every document as (n, L + 1) indicators; the last column is the root."""
    right, found = (taxonomy.most_specific_matrix(m) for m in pair(gold, predicted, taxonomy))
    ways = _Ways.of(taxonomy)
    pairs = np.cumsum(np.diff(right.indptr).astype(np.int64) * np.diff(found.indptr))
    parts = []
    start = 0
    while start < right.shape[0]:
        done = pairs[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(pairs, done + MOST_PAIRS, side="right")))
        parts.append(_augment(right[start:end], found[start:end], ways))
        start = end
    return sparse.vstack([p[0] for p in parts], format="csr"), sparse.vstack([p[1] for p in parts], format="csr")


class _Ways(NamedTuple):
    """Shortest ways up: for each label, and the root behind them, the nodes at or above it with their distances."""

    starts: Integers  # (L + 2,) where the nodes of a label start
    nodes: Integers  # ancestors, the label itself and the root (number L), sorted for each label
    distances: Integers
    keys: Integers  # label * (L + 1) + node, sorted: for looking up

    @classmethod
    def of(cls, taxonomy: Taxonomy) -> _Ways:
        root = len(taxonomy)
        every = np.arange(root + 1, dtype=np.int64)
        # Everyone is at distance 0 of itself, and every label as far below the root as its level says.
        froms, tos = [every, every[:-1]], [every, np.full(root, root)]
        distances = [np.zeros_like(every), taxonomy.levels.astype(np.int64)]
        frontier = sparse.eye_array(root, dtype=bool, format="csr")
        seen = frontier
        length = 0
        while frontier.nnz:
            length += 1
            frontier = (frontier @ taxonomy.parent_matrix).astype(bool)
            frontier = (frontier > seen).tocsr()  # a longer way to a node already reached is no news
            seen = (seen + frontier).astype(bool)
            step = frontier.tocoo()
            froms.append(step.row.astype(np.int64))
            tos.append(step.col.astype(np.int64))
            distances.append(np.full(step.nnz, length))
        keys = np.concatenate(froms) * (root + 1) + np.concatenate(tos)
        order = np.argsort(keys)
        keys = keys[order]
        starts = np.searchsorted(keys, np.arange(root + 2, dtype=np.int64) * (root + 1))
        return cls(starts, keys % (root + 1), np.concatenate(distances)[order], keys)

    @property
    def root(self) -> int:
        return len(self.starts) - 2

    def above(self, labels: Integers) -> tuple[Integers, Integers, Integers]:
        """All nodes at or above each of the labels: positions in `labels`, nodes, distances."""
        owner, flat = _ranges(self.starts[labels], self.starts[labels + 1] - self.starts[labels])
        return owner, self.nodes[flat], self.distances[flat]

    def distance(self, labels: Integers, nodes: Integers) -> tuple[Bools, Integers]:
        """Whether each node is at or above its label, and how far (meaningless where it is not)."""
        keys = labels * (self.root + 1) + nodes
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.keys[at] == keys, self.distances[at]


class _Meetings(NamedTuple):
    """The shortest ways between two labels: their length and the common ancestors at their top."""

    lengths: Integers  # (pairs,)
    starts: Integers  # (pairs,) where the tops of a pair start
    counts: Integers  # (pairs,) how many it has
    tops: Integers

    @classmethod
    def of(cls, first: Integers, second: Integers, ways: _Ways) -> _Meetings:
        owner, node, up = ways.above(first)
        common, down = ways.distance(second[owner], node)
        owner, node, length = owner[common], node[common], (up + down)[common]
        shortest = np.full(len(first), np.iinfo(np.int64).max)
        np.minimum.at(shortest, owner, length)
        best = length == shortest[owner]
        counts = np.bincount(owner[best], minlength=len(first))
        return cls(shortest, np.cumsum(counts) - counts, counts, node[best])


def _augment(right: Indicator, found: Indicator, ways: _Ways) -> tuple[Indicator, Indicator]:
    """Y⁺ and P⁺ of a block of documents from their most specific labels."""
    documents = row_numbers(right)
    mine, theirs = _ranges(found.indptr[documents].astype(np.int64), np.diff(found.indptr)[documents])
    first, second = right.indices[mine].astype(np.int64), found.indices[theirs].astype(np.int64)
    kinds, kind = np.unique(
        first * ways.root + second, return_inverse=True
    )  # the same two labels meet in many documents
    meetings = _Meetings.of(kinds // ways.root, kinds % ways.root, ways)
    length = meetings.lengths[kind]
    nearest_to_gold = np.full(right.nnz, np.iinfo(np.int64).max)
    nearest_to_found = np.full(found.nnz, np.iinfo(np.int64).max)
    np.minimum.at(nearest_to_gold, mine, length)
    np.minimum.at(nearest_to_found, theirs, length)
    linked = np.flatnonzero((length == nearest_to_gold[mine]) | (length == nearest_to_found[theirs]))
    owner, flat = _ranges(meetings.starts[kind[linked]], meetings.counts[kind[linked]])
    link = linked[owner]
    where, tops = documents[mine[link]], meetings.tops[flat]
    return (
        _with_ways(right, where, first[link], tops, ways),
        _with_ways(found, where, second[link], tops, ways),
    )


def _with_ways(rows: Indicator, documents: Integers, labels: Integers, tops: Integers, ways: _Ways) -> Indicator:
    """The rows with all nodes on shortest ways from the labels up to the tops, and a column for the root."""
    kinds, kind = np.unique(labels * (ways.root + 1) + tops, return_inverse=True)
    bottom, top = kinds // (ways.root + 1), kinds % (ways.root + 1)
    owner, node, up = ways.above(bottom)
    reaches, rest = ways.distance(node, top[owner])
    on_way = reaches & (up + rest == ways.distance(bottom, top)[1][owner])
    counts = np.bincount(owner[on_way], minlength=len(kinds))
    starts = np.cumsum(counts) - counts
    link, flat = _ranges(starts[kind], counts[kind])
    given = row_numbers(rows)
    row = np.concatenate([documents[link], given])
    column = np.concatenate([node[on_way][flat], rows.indices])
    ones = np.ones(len(row), dtype=bool)
    matrix = sparse.csr_array((ones, (row, column)), shape=(rows.shape[0], ways.root + 1))
    matrix.sum_duplicates()
    return matrix.astype(np.int32)


def _ranges(starts: Integers, lengths: Integers) -> tuple[Integers, Integers]:
    """Many ranges of numbers laid end to end: which range each number belongs to, and the numbers."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    ends = np.cumsum(lengths)
    return owner, np.arange(len(owner)) + np.repeat(starts - (ends - lengths), lengths)
