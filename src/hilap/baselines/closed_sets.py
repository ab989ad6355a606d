"""Consistent label sets on trees and DAGs: the best one for given scores, and scores made consistent.

A set is closed (consistent) if it holds every parent of its labels. The closed set with the largest sum of scores is a
minimum cut (Picard 1976): labels with a positive score send it upward, as a flow, to ancestors that cost something;
what cannot be absorbed marks the best set, the smallest one where several are best. On a tree one pass from the bottom
finds the flow; on a DAG, where the first choice of a parent may be wrong, it is repaired along augmenting paths.

The best sets for `scores - t` shrink as t grows, and t -> set is what thresholding the *isotonic regression* of the
scores gives (the nearest scores, in squares, of which no child's exceeds a parent's). `consistent` computes that, so
one pass answers every threshold; both facts are tested against enumeration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled
from hilap.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Truths = NDArray[np.bool_]

TINY = 1e-12  # against the largest score: what rounding may leave of a flow


class Graph(NamedTuple):
    """A taxonomy as ragged rows of edges."""

    order: Whole  # (L,) parents before children
    up: Whole  # (L + 1,) where the edges to a label's parents start
    parent: Whole  # (E,) of each edge
    down: Whole  # (L + 1,) where the edges from a label's children start
    child: Whole  # (E,)
    edge: Whole  # (E,) the same edge's place in `parent`


class Room(NamedTuple):
    """Arrays that a search works in."""

    excess: Floats  # (L,)
    lack: Floats  # (L,)
    flow: Floats  # (E,)
    block: Whole  # (L,) only edges inside a block count
    queue: Whole  # (L,)
    came: Whole  # (L,) the edge a search came by; -1 - edge where it came down
    seen: Whole  # (L,) the search that saw a label last


def graph_of(taxonomy: Taxonomy) -> Graph:
    """The edges of a taxonomy."""
    parents = taxonomy.parent_matrix
    child = np.repeat(np.arange(len(taxonomy)), np.diff(parents.indptr))
    by_parent = np.argsort(parents.indices, kind="stable")
    counts = np.bincount(parents.indices, minlength=len(taxonomy))
    arrays = (
        taxonomy.order,
        parents.indptr,
        parents.indices,
        np.concatenate([[0], np.cumsum(counts)]),
        child[by_parent],
        by_parent,
    )
    return Graph(*(np.ascontiguousarray(array, dtype=np.int64) for array in arrays))


def room_for(graph: Graph) -> Room:
    """Arrays to work in; the block of every label is 0."""
    n, m = len(graph.order), len(graph.parent)
    whole = [np.zeros(n, np.int64) for _ in range(4)]
    return Room(np.zeros(n), np.zeros(n), np.zeros(m), *whole)


@compiled
def _rise(graph: Graph, room: Room, labels: Whole, scores: Floats, tiny: float) -> None:
    """Send every positive score upward: first to parents that lack it, what is left to the first parent."""
    for v in labels:
        room.excess[v], room.lack[v] = max(scores[v], 0.0), max(-scores[v], 0.0)
        room.seen[v] = -1
        for e in range(graph.up[v], graph.up[v + 1]):
            room.flow[e] = 0.0
    for k in range(len(labels) - 1, -1, -1):
        v = labels[k]
        taken = min(room.excess[v], room.lack[v])
        left = room.excess[v] - taken
        room.lack[v] -= taken
        room.excess[v] = 0.0
        if left <= tiny:
            continue
        first = -1
        for e in range(graph.up[v], graph.up[v + 1]):
            p = graph.parent[e]
            if room.block[p] != room.block[v]:
                continue
            if first < 0:
                first = e
            given = min(left, room.lack[p] - room.excess[p])
            if given > 0:
                room.flow[e] += given
                room.excess[p] += given
                left -= given
        if first < 0:
            room.excess[v] = left
        elif left > 0:
            room.flow[first] += left
            room.excess[graph.parent[first]] += left


@compiled
def _search(graph: Graph, room: Room, top: int, dead: Truths, turn: int, tiny: float) -> Any:
    """Look from a label with excess for one that lacks: upward, or downward against a flow.

    Gives that label, or -1, and how many labels were seen.
    """
    room.queue[0], room.seen[top] = top, turn
    head, tail = 0, 1
    while head < tail:
        v = room.queue[head]
        head += 1
        if room.lack[v] > tiny:
            return v, tail
        for e in range(graph.up[v], graph.up[v + 1]):
            p = graph.parent[e]
            if room.block[p] == room.block[v] and room.seen[p] != turn and not dead[p]:
                room.seen[p], room.came[p], room.queue[tail] = turn, e, p
                tail += 1
        for j in range(graph.down[v], graph.down[v + 1]):
            c, e = graph.child[j], graph.edge[j]
            if room.flow[e] > tiny and room.block[c] == room.block[v] and room.seen[c] != turn and not dead[c]:
                room.seen[c], room.came[c], room.queue[tail] = turn, -1 - e, c
                tail += 1
    return -1, tail


@compiled
def _send(graph: Graph, room: Room, top: int, found: int, child_of: Whole) -> None:
    """Send as much as there is room for along the way that a search found."""
    amount = min(room.excess[top], room.lack[found])
    v = found
    while v != top:
        e = room.came[v]
        if e >= 0:
            v = child_of[e]
        else:
            amount = min(amount, room.flow[-1 - e])
            v = graph.parent[-1 - e]
    v = found
    while v != top:
        e = room.came[v]
        if e >= 0:
            room.flow[e] += amount
            v = child_of[e]
        else:
            room.flow[-1 - e] -= amount
            v = graph.parent[-1 - e]
    room.excess[top] -= amount
    room.lack[found] -= amount


@compiled
def best_set(graph: Graph, room: Room, child_of: Whole, labels: Whole, scores: Floats, chosen: Truths) -> int:
    """Mark in `chosen` the closed set with the largest sum among these labels (parents first); gives its size."""
    largest = 0.0
    for v in labels:
        largest = max(largest, abs(scores[v]))
        chosen[v] = False
    tiny = TINY * largest
    _rise(graph, room, labels, scores, tiny)
    size, turn = 0, 0
    for top in labels:
        while room.excess[top] > tiny and not chosen[top]:
            turn += 1
            found, count = _search(graph, room, top, chosen, turn, tiny)
            if found >= 0:
                _send(graph, room, top, found, child_of)
                continue
            for k in range(count):  # nothing more can leave these labels: they are in the set, and out of the way
                chosen[room.queue[k]] = True
            size += count
    return size


@compiled
def _regress(
    graph: Graph, room: Room, child_of: Whole, labels: Whole, block: int, scores: Floats, result: Floats
) -> None:
    """The isotonic regression of a block: it is cut where its best set above its mean ends, until there is none.

    `labels` (parents first) are all labels of the block, and are put into another order; new blocks get numbers from
    `block` on.
    """
    n = len(labels)
    spare, chosen, shifted = np.empty(n, np.int64), np.zeros(len(scores), np.bool_), np.empty(len(scores))
    starts, ends = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    starts[0], ends[0], blocks, at = 0, n, 1, 0
    while at < blocks:
        first, last = starts[at], ends[at]
        part = labels[first:last]
        mean = 0.0
        for v in part:
            mean += scores[v]
        mean /= max(last - first, 1)
        for v in part:
            shifted[v], result[v] = scores[v] - mean, mean
        size = best_set(graph, room, child_of, part, shifted, chosen) if last - first > 1 else 0
        if size == 0 or size == last - first:
            at += 1
            continue
        _part(part, chosen, spare)
        for v in part[size:]:
            room.block[v] = block + blocks
        ends[at], starts[blocks], ends[blocks] = first + size, first + size, last
        blocks += 1


@compiled
def _part(labels: Whole, chosen: Truths, spare: Whole) -> int:
    """Put the chosen before the others, each in their order; gives how many are chosen."""
    size, others = 0, 0
    for v in labels:
        if chosen[v]:
            labels[size] = v
            size += 1
        else:
            spare[others] = v
            others += 1
    labels[size:] = spare[:others]
    return size


@compiled
def _settle(graph: Graph, result: Floats) -> None:
    """Rounding of means must not lift a child above a parent."""
    for v in graph.order:
        for e in range(graph.up[v], graph.up[v + 1]):
            result[v] = min(result[v], result[graph.parent[e]])


@compiled
def _regress_rows(graph: Graph, room: Room, child_of: Whole, scores: Floats, result: Floats) -> None:
    for i in range(len(scores)):
        room.block[:] = 0
        _regress(graph, room, child_of, graph.order.copy(), 0, scores[i], result[i])
        _settle(graph, result[i])


@compiled
def project(graph: Graph, room: Room, child_of: Whole, values: Floats, result: Floats) -> None:
    """The mean of closed sets nearest to some values: isotonic regression, cut off at 0 and 1.

    Labels whose regression is below 0 or above 1 are known from two best sets; only those between, mostly few, are
    regressed.
    """
    n = len(values)
    labels, spare = graph.order.copy(), np.empty(n, np.int64)
    chosen, shifted = np.zeros(n, np.bool_), np.empty(n)
    room.block[:] = 0
    result[:] = 0.0
    some = best_set(graph, room, child_of, labels, values, chosen)
    if some == 0:
        return
    _part(labels, chosen, spare)
    room.block[labels[some:]] = 1
    labels = labels[:some]
    for v in labels:
        shifted[v] = values[v] - 1.0
    sure = best_set(graph, room, child_of, labels, shifted, chosen)
    _part(labels, chosen, spare)
    room.block[labels[:sure]] = 2
    if sure < some:
        _regress(graph, room, child_of, labels[sure:], 2, values, result)
    for v in labels[sure:]:
        result[v] = min(max(result[v], 0.0), 1.0)
    result[labels[:sure]] = 1.0
    _settle(graph, result)


def consistent(taxonomy: Taxonomy, scores: Floats) -> Floats:
    """(n, L) the isotonic regression of each row: `consistent(...) > t` is the best closed set for `scores - t`.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"A": [], "B": ["A"], "C": ["A"]})
    >>> consistent(taxonomy, np.array([[-1.0, 3.0, 0.5]])).tolist()
    [[1.0, 1.0, 0.5]]
    """
    graph = graph_of(taxonomy)
    result = np.empty_like(scores)
    _regress_rows(graph, room_for(graph), children_of(graph), np.ascontiguousarray(scores), result)
    return result


def children_of(graph: Graph) -> Whole:
    """(E,) the child of each edge."""
    return np.repeat(np.arange(len(graph.order)), np.diff(graph.up))


@compiled
def _sink(graph: Graph, scores: Floats) -> None:
    for i in range(len(scores)):
        row = scores[i]
        for v in graph.order:
            first, last = graph.up[v], graph.up[v + 1]
            if first == last:
                continue
            above = -np.inf
            for e in range(first, last):
                above = max(above, row[graph.parent[e]])
            row[v] = min(row[v], above)


@compiled
def _lift(graph: Graph, scores: Floats) -> None:
    for i in range(len(scores)):
        row = scores[i]
        for k in range(len(graph.order) - 1, -1, -1):
            v = graph.order[k]
            for e in range(graph.up[v], graph.up[v + 1]):
                row[graph.parent[e]] = max(row[graph.parent[e]], row[v])


def along_paths(taxonomy: Taxonomy, scores: Floats) -> Floats:
    """(n, L) the least score on the way down from the top; where several ways lead to a label, on the best of them."""
    found = scores.copy()
    _sink(graph_of(taxonomy), found)
    return found


def lifted(taxonomy: Taxonomy, scores: Floats) -> Floats:
    """(n, L) the best score of a label and all below it: thresholds then give ancestors with every label."""
    found = scores.copy()
    _lift(graph_of(taxonomy), found)
    return found


__all__ = [
    "Graph",
    "Room",
    "along_paths",
    "best_set",
    "children_of",
    "consistent",
    "graph_of",
    "lifted",
    "project",
    "room_for",
]
