"""Where coupled linear models begin: by their joint dual, in which all labels answer at once.

The regulariser of `coupled` is 1/2 sum_kl M_kl w_k.w_l. With g_l = sum_i a_il y_il x_i and K the inverse of M, weights
that are best for given dual variables are w_l = sum_m K_lm g_m, and the dual of the whole problem is

max over a:  sum_il of what the loss gives for a_il  -  1/2 sum_kl K_kl g_k.g_l        0 <= a_il (<= C)

While the other labels' variables stay, those of one label are an SVM's with the cost C K_ll around the prior sum over
m != l of K_lm g_m. A sweep takes one pass over the documents for each label; with a hinge four of five sweeps take
only those whose variable is not zero, a few in a hundred, and rise nearly as much. What the alternation of `coupled`
needs hundreds of rounds for, a whole family of labels that moves together, is one step here: parents, children and
siblings follow every change of a label. In exchange the weights of an unfinished dual are poor, which the alternation
mends in a round or two; and the dual is a bound from below, so that it is known how far from the optimum the weights
can be.

Labels that no edge joins have nothing to do with each other: a family is solved on its own, several at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from hilap.baselines.linear import in_threads

if TYPE_CHECKING:
    from hilap.baselines.coupled import Coupled

MOST_LABELS = 6_000  # of a family: K is dense
MOST_NUMBERS = 2**28  # of a family, in its sums, in its weights and in its dual variables: 2 GB each
BLOCK = 64  # labels whose priors are begun together, as one product of matrices
CYCLE = 5  # sweeps of a hinge, of which the first is over all documents
START = 1e-9  # of the cost: where the dual variables of the logistic loss start; more would push all labels down
_NEAR = 1e-12  # of the cost: how near its ends a dual variable of the logistic loss may come


@dataclass(frozen=True)
class Family:
    """What became of one family of labels."""

    labels: NDArray[np.int64]
    weights: NDArray[np.float64]  # (labels, F + 1)
    duals: NDArray[np.float64]  # (labels, n)
    bound: float
    sweeps: int


def families(problem: Coupled) -> list[NDArray[np.int64]]:
    """The labels to be solved, by the edges that join them; large families first."""
    count, family = sparse.csgraph.connected_components(problem.edges, directed=False)
    family = family[problem.free]
    order = np.argsort(family, kind="stable")
    found = np.split(problem.free[order], np.cumsum(np.bincount(family, minlength=count))[:-1])
    return sorted((labels for labels in found if len(labels)), key=lambda labels: (-len(labels), int(labels[0])))


def fits(problem: Coupled, labels: NDArray[np.int64]) -> bool:
    """Whether there is room for a family's joint dual."""
    n, width = problem.rows.shape
    return len(labels) <= MOST_LABELS and len(labels) * max(n, width + 1) <= MOST_NUMBERS


def swept_families(problem: Coupled) -> list[NDArray[np.int64]]:
    """The families that are swept over: those that there is room for; none where no edge joins any labels."""
    return [labels for labels in families(problem) if fits(problem, labels)] if problem.edges.nnz else []


def begin_by_sweeps(problem: Coupled, *, sweeps: int, jobs: int, advance: Callable[[], None]) -> tuple[float, int]:
    """Give a problem the weights that sweeps over its dual end with; a bound of its objective from below, and how many.

    Parameters
    ----------
    problem
        Gets weights, dual variables and losses for every label of a family that there is room for.
    sweeps
        At most so many; a family ends when they raise its dual by less than the tolerance each.
    jobs
        How many threads; -1 for all cores.
    advance
        Called after each family.
    """
    every = swept_families(problem)
    bound, most = 0.0, 0
    for found in in_threads(lambda k: _kept(problem, _swept(problem, every[k], sweeps)), range(len(every)), jobs):
        bound, most = bound + max(found[0], 0.0), max(most, found[1])  # no objective is below 0
        advance()
    return bound, most


def _kept(problem: Coupled, family: Family) -> tuple[float, int]:
    """Hand a family's solution over, sparse."""
    for k, label in enumerate(family.labels.tolist()):
        problem.take(label, family.weights[k], family.duals[k])
    return family.bound, family.sweeps


def _swept(problem: Coupled, labels: NDArray[np.int64], sweeps: int) -> Family:
    from hilap import descent

    labels = labels[np.argsort(~problem.trained[labels], kind="stable")]  # those with a loss first: blocks are slices
    inverse = np.asarray(np.linalg.inv(problem.quadratic(labels)), dtype=np.float64)
    own = np.diag(inverse).copy()
    n, width = problem.rows.shape
    sums = np.zeros((len(labels), width + 1))  # g
    alpha = np.zeros((len(labels), n))
    learned = range(int(problem.trained[labels].sum()))
    documents, kind = (problem.rows.data, problem.rows.indices, problem.rows.indptr), descent.LOSSES[problem.loss]
    cost = problem.strength * own
    if kind == descent.LOGISTIC:
        alpha[: len(learned)] = START * problem.strength
        for k in learned:
            descent.begin(*documents, problem.every, problem.signs(labels[k]), alpha[k], sums[k])

    def visit(k: int, prior: NDArray[np.float64], sweep: int, whole: bool) -> None:
        w = prior + own[k] * sums[k]
        chosen = problem.every if whole else np.flatnonzero(alpha[k])
        scaled, signs = own[k] * alpha[k, chosen], problem.signs(labels[k])[chosen]
        seed = (problem.seed + int(labels[k]) + 7919 * sweep) % 2**31
        if kind == descent.LOGISTIC:
            inside = np.clip(scaled, _NEAR * cost[k], (1 - _NEAR) * cost[k])
            descent.begin(*documents, chosen, signs, inside - scaled, w)  # w follows, else the dual is no bound
            scaled = inside
            goal = (problem.tolerance**0.5, 1, seed)  # of a slope; the objective has its square
            descent.descend_logistic(*documents, problem.norms, chosen, signs, cost[k], scaled, w, *goal)
        else:
            squared, goal = kind == descent.SQUARED, (problem.tolerance, 1, seed)
            descent.descend_hinge(*documents, problem.norms, chosen, signs, cost[k], squared, scaled, w, *goal)
        alpha[k, chosen] = scaled / own[k]
        sums[k] = (w - prior) / own[k]

    cycle = 1 if kind == descent.LOGISTIC else CYCLE
    bound, used, weights = -np.inf, 0, np.empty_like(sums)
    for used in range(1, sweeps + 1):
        whole = used % cycle == 1 % cycle
        for k, prior in _priors(inverse, sums, len(learned)):
            visit(k, prior, used, whole)
        if not whole and used < sweeps:
            continue
        np.matmul(inverse, sums, out=weights)
        now = sum(_worth(problem, alpha[k]) for k in learned) - 0.5 * float(np.vdot(weights, sums))
        gain, bound = now - bound, max(now, bound)
        if gain <= cycle * problem.tolerance * abs(now):
            break
    return Family(labels, weights, alpha, bound, used)


def _priors(
    inverse: NDArray[np.float64], sums: NDArray[np.float64], count: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Each of the first labels with the weights that the others give it; what they are then is looked at.

    A product for each label would read all sums anew. Those of other blocks do not change while a block is visited.
    """
    for start in range(0, count, BLOCK):
        block = slice(start, min(start + BLOCK, count))
        near, far = inverse[block, block].copy(), inverse[block].copy()
        np.fill_diagonal(near, 0.0)
        far[:, block] = 0.0
        around = far @ sums if far.any() else np.zeros((len(near), sums.shape[1]))
        for j in range(len(near)):
            yield start + j, around[j] + near[j] @ sums[block]


def _worth(problem: Coupled, alpha: NDArray[np.float64]) -> float:
    """What the loss gives for the dual variables (n,) of a label."""
    cost = problem.strength
    if problem.loss == "logistic":
        share = np.minimum(alpha / cost, 1.0)
        return float(cost * np.sum(special.entr(share) + special.entr(1.0 - share)))
    lost = float(np.vdot(alpha, alpha)) / (4 * cost) if problem.loss == "squared_hinge" else 0.0
    return float(alpha.sum()) - lost


__all__ = ["START", "begin_by_sweeps", "families", "fits", "swept_families"]
