"""The structured SVM over consistent label sets: exact steps on its dual, one document after the other.

min over W:  1/2 |W|^2  +  cost * sum_i max over closed sets S of [ |S_i ^ S| + score(S) - score(S_i) ]

with score(S) = sum of w_l.x over l in S, and S_i ^ S the labels in which the two sets differ. Every constraint of a
document lives in x_i (x) R^L, so its dual variables shrink to one row u_i, a mean of closed sets, and
W = cost * sum_i x_i (x) (S_i - u_i). While the other documents stay, the best u_i is the projection of
u_i + worth / (cost |x_i|^2) onto the means of closed sets, which is an isotonic regression cut off at 0 and 1. On a
flat taxonomy this is the dual coordinate descent of the hinge loss for every label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled
from hilap.consistent.closed_sets import Graph, Room, best_set, graph_of, project, room_for
from hilap.descent import lengths, shuffle
from hilap.taxonomy import Taxonomy

CHECK_EVERY = 5  # passes: a look at the objectives costs about as much as one

Floats = NDArray[np.float64]
Whole = NDArray[Any]


class Documents(NamedTuple):
    """Rows and gold sets, both CSR."""

    data: Floats
    indices: Whole
    starts: Whole
    norms: Floats  # (n,) |x|^2 with the constant feature
    gold: Whole  # columns
    gold_starts: Whole


@compiled
def _worth(documents: Documents, i: int, weight: Floats, worth: Floats) -> None:
    """(L,) w_l.x_i, plus 1 for labels that are not gold and minus 1 for those that are."""
    worth[:] = weight[-1]
    worth += 1.0
    for k in range(documents.starts[i], documents.starts[i + 1]):
        x, line = documents.data[k], weight[documents.indices[k]]
        for j in range(len(worth)):
            worth[j] += x * line[j]
    for k in range(documents.gold_starts[i], documents.gold_starts[i + 1]):
        worth[documents.gold[k]] -= 2.0


@compiled
def _move(documents: Documents, i: int, factor: float, labels: Whole, change: Floats, weight: Floats) -> None:
    """Add factor times x_i (x) change, where change is given for some labels."""
    for k in range(documents.starts[i], documents.starts[i + 1]):
        x, line = factor * documents.data[k], weight[documents.indices[k]]
        for j in range(len(labels)):
            line[labels[j]] += x * change[j]
    for j in range(len(labels)):
        weight[-1, labels[j]] += factor * change[j]


@compiled
def one_pass(
    documents: Documents,
    graph: Graph,
    room: Room,
    cost: float,
    means: NDArray[np.float32],
    weight: Floats,
    order: Whole,
    seed: int,
) -> None:
    """One step for every document, in a random order: means and weights change."""
    n_labels = weight.shape[1]
    worth, target = np.empty(n_labels), np.empty(n_labels)
    labels, change = np.empty(n_labels, np.int64), np.empty(n_labels)
    shuffle(order, len(order), np.uint64(seed) * np.uint64(7919) + np.uint64(88172645463325252))
    for i in order:
        _worth(documents, i, weight, worth)
        mean, scale = means[i], 1.0 / (cost * documents.norms[i])
        for j in range(n_labels):
            worth[j] = mean[j] + scale * worth[j]
        project(graph, room, worth, target)
        count = 0
        for j in range(n_labels):
            after = np.float32(target[j])
            if after != mean[j]:
                labels[count] = j
                change[count] = np.float64(after) - np.float64(mean[j])  # as rounded, so that W fits the means
                mean[j] = after
                count += 1
        _move(documents, i, -cost, labels[:count], change, weight)


@compiled
def objectives(
    documents: Documents,
    graph: Graph,
    room: Room,
    cost: float,
    means: NDArray[np.float32],
    weight: Floats,
) -> Any:
    """The primal and the dual objective, exactly: the optimum lies between them."""
    n_labels = weight.shape[1]
    worth = np.empty(n_labels)
    slack, value = 0.0, 0.0
    room.block[:] = 0
    for i in range(len(documents.norms)):
        _worth(documents, i, weight, worth)
        labels = graph.order.copy()
        size = best_set(graph, room, labels, worth, 0.0)
        for label in labels[:size]:
            slack += worth[label]
        for j in range(n_labels):
            value += means[i, j]
        for k in range(documents.gold_starts[i], documents.gold_starts[i + 1]):
            label = documents.gold[k]
            slack -= worth[label]
            value += 1.0 - 2.0 * means[i, label]
    half = 0.0
    for line in weight:
        for x in line:
            half += 0.5 * x * x
    return half + cost * slack, cost * value - half


class Objectives(NamedTuple):
    """How far learning came after so many passes: the optimum lies between the two."""

    passes: int
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """At most this share above its optimum is the objective."""
        return (self.primal - self.dual) / self.primal if self.primal > self.dual else 0.0


def solve(
    rows: Any,
    gold: Any,
    taxonomy: Taxonomy,
    *,
    cost: float,
    tolerance: float,
    passes: int,
    seed: int,
    passed: Callable[[Objectives | None], None] = lambda known: None,
) -> tuple[Floats, Objectives]:
    """(F + 1, L) the weights, those of the constant feature last, and how far from the optimum they are.

    Parameters
    ----------
    rows
        (n, F) CSR, of 64-bit floats.
    gold
        (n, L) CSR, closed upward.
    taxonomy
        The labels.
    cost
        What an error costs against large weights.
    tolerance
        Learning ends when the objective is at most this share above its optimum.
    passes
        Over the documents, at most.
    seed
        Of the order of documents.
    passed
        Called after every pass, with the objectives where they were looked at.
    """
    norms = lengths(rows.data, rows.indptr)
    documents = Documents(rows.data, rows.indices, rows.indptr, norms, gold.indices, gold.indptr)
    graph = graph_of(taxonomy)
    means = gold.astype(np.float32).toarray()
    weight = np.zeros((rows.shape[1] + 1, len(taxonomy)))
    problem = (documents, graph, room_for(graph), float(cost), means, weight)
    order = np.arange(len(norms))
    known = Objectives(0, 0.0, 0.0)
    for step in range(1, passes + 1):
        one_pass(*problem, order, (seed + step) % 2**31)
        if step % CHECK_EVERY and step < passes:
            passed(None)
            continue
        known = Objectives(step, *objectives(*problem))
        passed(known)
        if known.primal - known.dual <= tolerance * known.primal:
            break
    return weight, known


__all__ = ["Documents", "Objectives", "objectives", "one_pass", "solve"]
