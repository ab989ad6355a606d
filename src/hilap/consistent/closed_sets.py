"""Consistent label sets on trees and DAGs: the best one for given scores, and scores made consistent.

A set is closed (consistent) if it holds every parent of its labels. The closed set with the largest sum of scores is a
minimum cut (Picard 1976): labels with a positive score send it upward, as a flow, to ancestors that cost something;
what cannot be absorbed marks the best set, the smallest one where several are best. On a tree one pass from the bottom
finds the flow; on a DAG, where the first choice of a parent may be wrong, it is put right along augmenting ways, as
many as a search from the top meets.

The best sets for `scores - t` shrink as t grows, and t -> set is what thresholding the *isotonic regression* of the
scores gives (the nearest scores, in squares, of which no child's exceeds a parent's). `regress` finds it by cutting;
`condensing.condensed` does so for many documents. Both facts are tested against enumeration.

Import this module where it is used: numba takes a moment to load.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled
from hilap.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

TINY = 1e-12  # against the largest score: what rounding may leave of a flow
CHOSEN = -2  # said of labels that are in the best set: no search looks at them again


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

    need: Floats  # (L,) what a label has too much, or lacks where it is below 0
    flow: Floats  # (E,)
    block: Whole  # (L,) only edges inside a block count
    seen: Whole  # (L,) the search that saw a label last, or CHOSEN
    queue: Whole  # (L,) labels in the order in which a search saw them
    before: Whole  # (L,) the label from which a search came to a label
    came: Whole  # (L,) the edge it came by; -1 - edge where it came down


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
    whole = [np.zeros(n, np.int64) for _ in range(5)]
    return Room(np.zeros(n), np.zeros(m), *whole)


@compiled
def _rise(graph: Graph, room: Room, labels: Whole, tiny: float) -> None:
    """Send upward what labels have too much: first to parents that lack it, what is left to the first parent."""
    need = room.need
    for k in range(len(labels) - 1, -1, -1):
        v = labels[k]
        left = need[v]
        if left <= tiny:
            continue
        first = -1
        for e in range(graph.up[v], graph.up[v + 1]):
            p = graph.parent[e]
            if room.block[p] != room.block[v]:
                continue
            if first < 0:
                first = e
            given = min(left, -need[p])
            if given > 0:
                room.flow[e] += given
                need[p] += given
                left -= given
        if first >= 0 and left > 0:
            room.flow[first] += left
            need[graph.parent[first]] += left
            left = 0.0
        need[v] = left


@compiled
def _search(graph: Graph, room: Room, top: int, turn: int, tiny: float) -> Any:
    """Go from a label with too much to all that it can send to, upward or downward against a flow, and let it send.

    Gives whether it could, and how many labels were seen: only where it could not, all of them can still be reached.
    """
    room.queue[0], room.seen[top] = top, turn
    head, tail, sent = 0, 1, False
    while head < tail:
        v = room.queue[head]
        head += 1
        if room.need[v] < -tiny and _send(room, top, v, tiny):
            sent = True
            if room.need[top] <= tiny:
                break
        for e in range(graph.up[v], graph.up[v + 1]):
            p = graph.parent[e]
            if room.seen[p] != turn and room.seen[p] != CHOSEN and room.block[p] == room.block[v]:
                room.seen[p], room.before[p], room.came[p], room.queue[tail] = turn, v, e, p
                tail += 1
        for j in range(graph.down[v], graph.down[v + 1]):
            c, e = graph.child[j], graph.edge[j]
            if room.flow[e] <= tiny:
                continue
            if room.seen[c] != turn and room.seen[c] != CHOSEN and room.block[c] == room.block[v]:
                room.seen[c], room.before[c], room.came[c], room.queue[tail] = turn, v, -1 - e, c
                tail += 1
    return sent, tail


@compiled
def _send(room: Room, top: int, last: int, tiny: float) -> bool:
    """Send as much as there is room for along the way that a search came; False where what was sent before fills it."""
    amount = min(room.need[top], -room.need[last])
    v = last
    while v != top:
        if room.came[v] < 0:
            amount = min(amount, room.flow[-1 - room.came[v]])
        v = room.before[v]
    if amount <= tiny:
        return False
    v = last
    while v != top:
        if room.came[v] < 0:
            room.flow[-1 - room.came[v]] -= amount
        else:
            room.flow[room.came[v]] += amount
        v = room.before[v]
    room.need[top] -= amount
    room.need[last] += amount
    return True


@compiled
def best_set(graph: Graph, room: Room, labels: Whole, scores: Floats, level: float) -> int:
    """Put the closed set with the largest sum of `scores - level` before the others; gives its size.

    `labels` (parents first) are all labels of a block; the set and the others each keep their order.
    """
    largest = 0.0
    for v in labels:
        room.need[v], room.seen[v] = scores[v] - level, -1
        largest = max(largest, abs(room.need[v]))
        for e in range(graph.up[v], graph.up[v + 1]):
            room.flow[e] = 0.0
    tiny = TINY * largest
    _rise(graph, room, labels, tiny)
    size, turn = 0, 0
    for top in labels:
        while room.need[top] > tiny and room.seen[top] != CHOSEN:
            turn += 1
            sent, count = _search(graph, room, top, turn, tiny)
            if not sent:  # nothing more can leave these labels: they are in the set
                size += count
                for v in room.queue[:count]:
                    room.seen[v] = CHOSEN
    if 0 < size < len(labels):
        _part(room, labels)
    return size


@compiled
def _part(room: Room, labels: Whole) -> None:
    """Put the chosen before the others, each in their order."""
    size, others = 0, 0
    for v in labels:
        if room.seen[v] == CHOSEN:
            labels[size] = v
            size += 1
        else:
            room.queue[others] = v
            others += 1
    labels[size:] = room.queue[:others]


@compiled
def regress(graph: Graph, room: Room, labels: Whole, block: int, scores: Floats, result: Floats) -> None:
    """The isotonic regression of a block: it is cut where its best set above its mean ends, until there is none.

    `labels` (parents first) are all labels of the block, and are put into another order; new blocks get numbers above
    `block`. Rounding may leave a child above a parent: see `settle`.
    """
    n = len(labels)
    starts, ends = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    starts[0], ends[0], blocks, at = 0, n, 1, 0
    while at < blocks:
        first, last = starts[at], ends[at]
        part = labels[first:last]
        mean = 0.0
        for v in part:
            mean += scores[v]
        mean /= max(last - first, 1)
        size = best_set(graph, room, part, scores, mean) if last - first > 1 else 0
        if size == 0 or size == last - first:
            for v in part:
                result[v] = mean
            at += 1
            continue
        for v in part[size:]:
            room.block[v] = block + blocks
        ends[at], starts[blocks], ends[blocks] = first + size, first + size, last
        blocks += 1


@compiled
def settle(graph: Graph, result: Floats) -> None:
    """Rounding of means must not lift a child above a parent."""
    for v in graph.order:
        for e in range(graph.up[v], graph.up[v + 1]):
            result[v] = min(result[v], result[graph.parent[e]])


@compiled
def project(graph: Graph, room: Room, values: Floats, result: Floats) -> None:
    """The mean of closed sets nearest to some values: isotonic regression, cut off at 0 and 1.

    Labels whose regression is below 0 or above 1 are known from two best sets; only those between, mostly few, are
    regressed.
    """
    labels = graph.order.copy()
    room.block[:] = 0
    result[:] = 0.0
    some = best_set(graph, room, labels, values, 0.0)
    if some == 0:
        return
    room.block[labels[some:]] = 1
    sure = best_set(graph, room, labels[:some], values, 1.0)
    room.block[labels[:sure]] = 2
    between = labels[sure:some]
    if len(between):
        regress(graph, room, between, 2, values, result)
    for v in between:
        result[v] = min(max(result[v], 0.0), 1.0)
    result[labels[:sure]] = 1.0
    settle(graph, result)


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


__all__ = ["Graph", "Room", "along_paths", "best_set", "graph_of", "lifted", "project", "regress", "room_for", "settle"]
