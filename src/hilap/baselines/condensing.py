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
from hilap.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Whole = NDArray[Any]
_ROUNDING = 1e-12  # of the largest score: what is left of a flow that should be nothing


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
    parents = taxonomy.parent_matrix
    if taxonomy.is_tree:
        above = np.full(len(taxonomy), -1, dtype=np.int64)
        above[np.diff(parents.indptr) > 0] = parents.indices
        return np.maximum(_condensed_on_trees(given, above), floor)
    upward = (parents.indptr.astype(np.int64), parents.indices.astype(np.int64))
    child = np.repeat(np.arange(len(taxonomy)), np.diff(parents.indptr))
    order = np.argsort(parents.indices, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(parents.indices, minlength=len(taxonomy)))])
    downward = (starts.astype(np.int64), child[order].astype(np.int64), order.astype(np.int64))
    return np.asarray(_condensed_on_dags(given, upward, downward, float(floor)))


@compiled
def _condensed_on_trees(scores: Floats, above: Whole) -> Floats:
    """Greedy merging, supernode with the highest value first. `above`: each label's parent, -1 for none."""
    found = np.empty_like(scores)
    n_labels = scores.shape[1]
    for row in range(len(scores)):
        total = scores[row].copy()
        size = np.ones(n_labels, dtype=np.int64)
        into = np.arange(n_labels)  # the supernode, named by its topmost label, that a label was merged into
        done = np.zeros(n_labels, dtype=np.bool_)
        value = np.zeros(n_labels)
        waiting = [(-total[label], label, 1) for label in range(n_labels)]
        heapq.heapify(waiting)
        while len(waiting):
            _, top, count = heapq.heappop(waiting)
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
    return found


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
def _condensed_on_dags(
    scores: Floats, upward: tuple[Whole, Whole], downward: tuple[Whole, Whole, Whole], floor: float
) -> Floats:
    """Cutting from above. `upward`: parents of each label (CSR); `downward`: children, and the number of the arc."""
    found = np.empty_like(scores)
    n_labels = scores.shape[1]
    group = np.empty(n_labels, dtype=np.int64)
    flow = np.empty(len(upward[1]))
    need = np.empty(n_labels)
    depth = np.empty(n_labels, dtype=np.int64)
    room = np.empty((3, n_labels + 1), dtype=np.int64)
    for row in range(len(scores)):
        score = scores[row]
        labels = np.arange(n_labels)
        group[:] = 0
        groups = 1
        tiny = _ROUNDING * max(np.abs(score).max(), 1e-300) if n_labels else 0.0
        # A part of `labels` that is a group: from, to, and what its values lie between.
        waiting = [(0, n_labels, floor, np.inf, floor > -np.inf)]
        while len(waiting):
            start, stop, low, high, at_floor = waiting.pop()
            part = labels[start:stop]
            if len(part) == 0:
                continue
            mean = 0.0
            for label in part:
                mean += score[label]
            mean = min(max(mean / len(part), low), high)
            centre = floor if at_floor else mean
            for label in part:
                need[label] = score[label] - centre
            _push(part, group, upward, downward, flow, need, depth, room, tiny)
            taken = _parted(part, depth)
            if not at_floor and (taken == 0 or taken == len(part)):
                for label in part:
                    found[row, label] = mean
                continue
            for label in part[taken:]:
                group[label] = groups
            groups += 1
            waiting.append((start, start + taken, centre, high, False))
            if at_floor:
                for label in part[taken:]:
                    found[row, label] = floor
            else:
                waiting.append((start + taken, stop, low, centre, False))
    return found


@compiled
def _parted(part: Whole, depth: Whole) -> int:
    """Put those that were reached first, keeping the order otherwise; gives how many."""
    taken = part[depth[part] >= 0]
    rest = part[depth[part] < 0]
    part[: len(taken)] = taken
    part[len(taken) :] = rest
    return len(taken)


@compiled
def _push(
    part: Whole,
    group: Whole,
    upward: tuple[Whole, Whole],
    downward: tuple[Whole, Whole, Whole],
    flow: Floats,
    need: Floats,
    depth: Whole,
    room: Whole,
    tiny: float,
) -> None:
    """Let labels above the mean (need > 0) make up for labels over them that are below it: a maximum flow (Dinic).

    What still has more than it can pass on, with all it reaches (depth >= 0 afterwards), is the best consistent part.
    """
    for label in part:
        for arc in range(upward[0][label], upward[0][label + 1]):
            flow[arc] = 0.0
    while _reach(part, group, upward, downward, flow, need, depth, room[0], tiny):
        for label in part:
            room[0, label] = 0  # the arc of each label to go on with
        for source in part:
            while need[source] > tiny and depth[source] == 0:
                if not _augment(source, group, upward, downward, flow, need, depth, room, tiny):
                    break


@compiled
def _reach(
    part: Whole,
    group: Whole,
    upward: tuple[Whole, Whole],
    downward: tuple[Whole, Whole, Whole],
    flow: Floats,
    need: Floats,
    depth: Whole,
    queue: Whole,
    tiny: float,
) -> bool:
    """How far each label is from one that has too much; whether one that lacks something is reached."""
    filled = 0
    for label in part:
        depth[label] = -1
        if need[label] > tiny:
            depth[label] = 0
            queue[filled] = label
            filled += 1
    lacking = False
    i = 0
    while i < filled:
        here = queue[i]
        i += 1
        lacking |= need[here] < -tiny
        for arc in range(upward[0][here], upward[0][here + 1]):
            there = upward[1][arc]
            if depth[there] == -1 and group[there] == group[here]:
                depth[there] = depth[here] + 1
                queue[filled] = there
                filled += 1
        for k in range(downward[0][here], downward[0][here + 1]):
            there = downward[1][k]
            if flow[downward[2][k]] > tiny and group[there] == group[here] and depth[there] == -1:
                depth[there] = depth[here] + 1
                queue[filled] = there
                filled += 1
    return lacking


@compiled
def _augment(
    source: int,
    group: Whole,
    upward: tuple[Whole, Whole],
    downward: tuple[Whole, Whole, Whole],
    flow: Floats,
    need: Floats,
    depth: Whole,
    room: Whole,
    tiny: float,
) -> bool:
    """Pass something on from one label along a shortest way; False where there is no such way left."""
    next_arc, way, arcs = room[0], room[1], room[2]  # arcs: the number of an arc, or -1 - number against its flow
    length = 0
    way[0] = source
    while True:
        here = way[length]
        if need[here] < -tiny:
            break
        ups = upward[0][here + 1] - upward[0][here]
        choices = ups + downward[0][here + 1] - downward[0][here]
        moved = False
        while next_arc[here] < choices:
            k = next_arc[here]
            if k < ups:
                arc = upward[0][here] + k
                there = upward[1][arc]
                step = arc
                open_way = True
            else:
                at = downward[0][here] + k - ups
                there = downward[1][at]
                step = -1 - downward[2][at]
                open_way = flow[downward[2][at]] > tiny
            if open_way and group[there] == group[here] and depth[there] == depth[here] + 1:
                length += 1
                way[length], arcs[length] = there, step
                moved = True
                break
            next_arc[here] += 1
        if moved:
            continue
        if length == 0:
            return False
        length -= 1
        next_arc[way[length]] += 1
    much = min(need[source], -need[way[length]])
    for i in range(1, length + 1):
        if arcs[i] < 0:
            much = min(much, flow[-1 - arcs[i]])
    need[source] -= much
    need[way[length]] += much
    for i in range(1, length + 1):
        if arcs[i] < 0:
            flow[-1 - arcs[i]] -= much
        else:
            flow[arcs[i]] += much
    return True


__all__ = ["condensed"]
