"""The best consistent label sets of all sizes at once: condensing sort and select (Bi and Kwok 2011).

Given a score for each label, which consistent set of K labels has the largest sum? The labels are condensed into
*supernodes*: a label whose score is above that of the label over it can only be had together with it, so the two
become one with the mean of their scores, and so on until no supernode stands above the one over it. Then supernodes
are taken from the highest value downward. Every set that consists of whole supernodes is the best of its size, and for
sizes in between the last supernode taken in part solves the problem in which labels may be had in part.

The values are at the same time the isotonic regression of the scores: the nearest ones (in squares) in which no label
is above a parent. On a tree the supernodes are found by merging greedily, as in the paper. On a DAG greedy merging
(CSSAG) can go wrong, as a label under two parents must be merged before it is known which of them comes last; so there
supernodes are found from above, by cutting. The best consistent subset of what a group of labels scores above its mean
is a minimum cut; where there is none, the group is a supernode; else both parts are cut again.

Import this module where it is used: numba takes a moment to load.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled
from hilap.consistent.closed_sets import Graph, Room, best_set, graph_of, regress, room_for, settle
from hilap.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Whole = NDArray[Any]


def condensed(scores: NDArray[Any], taxonomy: Taxonomy, floor: float = -np.inf) -> Floats:
    """(n, L) for each label the value of its supernode, but at least `floor`; never above a parent's.

    Parameters
    ----------
    scores
        (n, L) of each document and label.
    taxonomy
        The labels; consistent sets have all parents of their labels.
    floor
        Supernodes below it are not told apart, which is much faster on a DAG.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> condensed(np.array([[0.25, 0.75, 0.25]]), taxonomy).tolist()
    [[0.5, 0.5, 0.25]]
    """
    given = np.ascontiguousarray(scores, dtype=np.float64)
    found = np.empty_like(given)
    if taxonomy.is_tree:
        parents = taxonomy.parent_matrix
        above = np.full(len(taxonomy), -1, dtype=np.int64)
        above[np.diff(parents.indptr) > 0] = parents.indices
        _merge(given, above, float(floor), found)
    else:
        graph = graph_of(taxonomy)
        _cut(given, graph, room_for(graph), float(floor), found)
    return found


@compiled
def _merge(scores: Floats, above: Whole, floor: float, found: Floats) -> None:
    """Greedy merging, supernode with the highest value first. `above`: each label's parent, -1 for none."""
    n_labels = scores.shape[1]
    for row in range(len(scores)):
        total = scores[row].copy()
        size = np.ones(n_labels, dtype=np.int64)
        into = np.arange(n_labels)  # the supernode, named by its topmost label, that a label was merged into
        done = np.zeros(n_labels, dtype=np.bool_)
        value = np.full(n_labels, floor)
        waiting = [(-total[label], label, 1) for label in range(n_labels)]
        heapq.heapify(waiting)
        while len(waiting):
            least, top, count = heapq.heappop(waiting)
            if -least <= floor:
                break  # merging gives means, so nothing that waits gets above it any more
            if into[top] != top or size[top] != count:
                continue  # it has been merged since
            parent = above[top]
            if parent >= 0:
                parent = _supernode(into, parent)
            if parent < 0 or done[parent]:
                done[top] = True
                value[top] = total[top] / size[top]
                if parent >= 0:  # in spite of rounding
                    value[top] = min(value[top], value[parent])
                continue
            into[top] = parent
            total[parent] += total[top]
            size[parent] += size[top]
            heapq.heappush(waiting, (-total[parent] / size[parent], parent, size[parent]))
        for label in range(n_labels):
            found[row, label] = value[_supernode(into, label)]


@compiled
def _supernode(into: Whole, label: int) -> int:
    """The topmost label of a label's supernode; ways there get shorter with use."""
    top = label
    while into[top] != top:
        top = into[top]
    while into[label] != top:
        into[label], label = top, into[label]
    return top


@compiled
def _cut(scores: Floats, graph: Graph, room: Room, floor: float, found: Floats) -> None:
    """Cutting from above, first at the floor, where there is one."""
    for row in range(len(scores)):
        labels = graph.order.copy()
        room.block[:] = 0
        if floor > -np.inf:
            found[row] = floor
            size = best_set(graph, room, labels, scores[row], floor)
            room.block[labels[size:]] = 1
            labels = labels[:size]
        regress(graph, room, labels, 1, scores[row], found[row])
        for label in labels:  # in spite of rounding
            found[row, label] = max(found[row, label], floor)
        settle(graph, found[row])


__all__ = ["condensed"]
