"""Linear models that are drawn towards those of their parents (Gopal and Yang 2013), and the alternating solver.

min over W:  C sum_l sum_i loss(y_il w_l.x_i)
             + 1/2 sum_l [ (1 - c) |w_l|^2 + c sum over parents p of l of |w_l - w_p|^2 ]

where a label without parents has |w_l|^2 alone (the root's weights are 0). c = 1 is recursive regularisation, on a DAG
in its graphical form, one term for each edge; c = 0 leaves the labels alone. Given its neighbours (parents and
children), the problem of one label is that of an SVM around their weighted mean, and a label without a loss of its own
*is* that mean. Labels of one level are no neighbours, so they are solved at the same time; levels follow each other
down and up. A parent with many children hardly moves while they stay, nor do they while it stays: the alternation
begins with what `sweeps` over the joint dual have found.

A label that no training document has is left out, with all that is below it: it would only be drawn to "never", and
draw its parent along. A label that all documents have is as good as the root: its weights are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.baselines.chances import ALWAYS
from hilap.baselines.linear import Column, LinearModels, column, in_threads
from hilap.baselines.sweeps import START, begin_by_sweeps
from hilap.errors import warn_unsolved
from hilap.taxonomy import Taxonomy

PASSES = 100  # over the documents, for a label in one round; the next round goes on from there
SWEEPS = 100  # over the joint dual, at most

Sparse = tuple[NDArray[np.int32], NDArray[np.float64]]
"""Where a vector is not zero, and its values there."""


@dataclass
class Coupled:
    """The problem and where its solution stands."""

    rows: sparse.csr_matrix  # (n, F)
    gold: sparse.csc_array  # (n, L)
    taxonomy: Taxonomy
    trained: NDArray[np.bool_]  # (L,) labels with a loss of their own
    loss: str
    strength: float
    coupling: float
    tolerance: float
    seed: int
    weights: dict[int, Sparse] = field(default_factory=dict)  # the last one is the offset
    duals: dict[int, Sparse] = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        from hilap.descent import lengths

        counts = np.diff(self.gold.indptr)
        n = self.rows.shape[0]
        self.free = np.flatnonzero((counts > 0) & (counts < n))
        self.always = np.flatnonzero((counts == n) & (n > 0))
        self.norms = lengths(self.rows.data, self.rows.indptr)
        self.every = np.arange(n)
        here = np.zeros(len(counts), dtype=bool)
        here[self.free] = True
        kept = sparse.diags_array(here.astype(np.int8), dtype=np.int8).tocsr()
        parents = self.taxonomy.parent_matrix.astype(np.int8)
        # Edges to labels that all documents have stay: they draw to 0.
        self.n_parents = np.where(here, np.diff(parents.indptr), 0) if self.coupling else np.zeros_like(counts)
        among = (kept @ parents @ kept).tocsr()
        among.eliminate_zeros()
        self.edges = among if self.coupling else sparse.csr_array(among.shape, dtype=np.int8)
        self.neighbours = (self.edges + self.edges.T).tocsr()
        self.ridge = np.where(self.n_parents > 0, 1 - self.coupling, 1.0)
        """(L,) the share of |w_l|^2."""
        children = np.bincount(self.edges.indices, minlength=len(counts))
        self.pull = self.ridge + self.coupling * (self.n_parents + children)
        """(L,) how strongly a label is drawn to the mean of its neighbours."""

    def levels(self) -> list[NDArray[np.int64]]:
        """The labels to be solved, level after level."""
        level = self.taxonomy.longest_levels[self.free]
        return [self.free[level == k] for k in np.unique(level)]

    def signs(self, label: int) -> NDArray[np.int8]:
        """(n,) 1 where a document has the label, else -1."""
        found = np.full(self.rows.shape[0], -1, dtype=np.int8)
        found[self.gold.indices[self.gold.indptr[label] : self.gold.indptr[label + 1]]] = 1
        return found

    # -- one label ----------------------------------------------------------------------------------------------------

    def quadratic(self, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """(K, K) the matrix of the regulariser, for labels that have all their neighbours among them."""
        among = self.neighbours[labels][:, labels].toarray()
        return np.asarray(np.diag(self.pull[labels]) - self.coupling * among)

    def take(self, label: int, w: NDArray[np.float64], alpha: NDArray[np.float64]) -> None:
        """Begin with weights (F + 1,) and the dual variables (n,) of the whole problem that they were made of."""
        self.weights[label] = _without_zeros(w)
        if self.trained[label]:
            self._measure(label, w)
            if self.loss != "logistic":
                self.duals[label] = _without_zeros(alpha / self.pull[label])

    def prior(self, label: int) -> NDArray[np.float64]:
        """(F + 1,) the weighted mean of a label's neighbours."""
        starts = self.neighbours.indptr
        around = self.neighbours.indices[starts[label] : starts[label + 1]]
        found = np.zeros(self.rows.shape[1] + 1)
        for other in around.tolist():
            if other in self.weights:
                there, values = self.weights[other]
                found[there] += values
        return np.asarray(found * (self.coupling / self.pull[label]))

    def solve(self, label: int) -> None:
        """The best weights of a label while its neighbours stay; begins where the label stood."""
        w = self.prior(label)
        if self.trained[label]:
            self._descend(label, w, self.strength / self.pull[label])
        self.weights[label] = _without_zeros(w)

    def _descend(self, label: int, w: NDArray[np.float64], cost: float) -> None:
        """Turn the prior w into the solution."""
        from hilap import descent

        signs, kind = self.signs(label), descent.LOSSES[self.loss]
        documents = (self.rows.data, self.rows.indices, self.rows.indptr)
        alpha = self._alpha(label, signs, cost)
        descent.begin(*documents, self.every, signs, alpha, w)
        goal = (self.tolerance, PASSES, (self.seed + label) % 2**31)
        if kind == descent.LOGISTIC:
            used = descent.descend_logistic(*documents, self.norms, self.every, signs, cost, alpha, w, *goal)
        else:
            squared = kind == descent.SQUARED
            used = descent.descend_hinge(*documents, self.norms, self.every, signs, cost, squared, alpha, w, *goal)
            self.duals[label] = _without_zeros(alpha)
        self._measure(label, w)
        if used > PASSES:
            self.unfinished.add(label)
        else:
            self.unfinished.discard(label)

    def _measure(self, label: int, w: NDArray[np.float64]) -> None:
        from hilap.descent import LOSSES, total_loss

        documents = (self.rows.data, self.rows.indices, self.rows.indptr)
        self.losses[label] = total_loss(*documents, self.every, self.signs(label), LOSSES[self.loss], w)

    def _alpha(self, label: int, signs: NDArray[np.int8], cost: float) -> NDArray[np.float64]:
        """(n,) the dual variables a label begins with: its last ones; of the logistic loss, what its weights imply."""
        from hilap.descent import logistic_duals

        n = self.rows.shape[0]
        if self.loss == "logistic":
            if label not in self.weights:
                return np.full(n, START * cost)
            w = np.zeros(self.rows.shape[1] + 1)
            w[self.weights[label][0]] = self.weights[label][1]
            return logistic_duals(self.rows.data, self.rows.indices, self.rows.indptr, signs, cost, w)
        found = np.zeros(n)
        if label in self.duals:
            there, values = self.duals[label]
            found[there] = values
        return found

    # -- all of them --------------------------------------------------------------------------------------------------

    def objective(self) -> float:
        """What is minimised, at the present weights."""
        total = self.strength * sum(self.losses[label] for label in sorted(self.losses))
        dense = np.zeros(self.rows.shape[1] + 1)
        lengths = {label: float(values @ values) for label, (_, values) in self.weights.items()}
        for label in self.free.tolist():
            there, values = self.weights[label]
            dense[there] = values
            own = self.ridge[label] + self.coupling * self.n_parents[label]
            total += 0.5 * own * lengths[label]
            for parent in self.edges.indices[self.edges.indptr[label] : self.edges.indptr[label + 1]].tolist():
                other, theirs = self.weights[parent]
                total += 0.5 * self.coupling * (lengths[parent] - 2 * float(theirs @ dense[other]))
            dense[there] = 0
        return float(total)

    def models(self) -> LinearModels:
        """The weights and offsets found."""
        n_features = self.rows.shape[1]
        found: dict[int, Column] = {int(k): (*column(np.zeros(n_features), 0.0)[:2], ALWAYS) for k in self.always}
        for label, (there, values) in self.weights.items():
            offset = float(values[-1]) if len(there) and there[-1] == n_features else 0.0
            inside = there < n_features
            found[label] = (there[inside], values[inside].astype(np.float32), offset)
        return LinearModels.of_columns(found, (n_features, len(self.taxonomy)))


def solve_coupled(
    problem: Coupled, *, rounds: int, jobs: int, advance: Callable[[], None], sweeps: int = SWEEPS
) -> tuple[LinearModels, list[dict[str, Any]]]:
    """Sweeps over the dual, then round after round; and what each did.

    It ends when the objective is known to be within the tolerance (a share) of its optimum, or every label is solved to
    the tolerance and a round lowers the objective by less than that share.

    Parameters
    ----------
    problem
        What is to be solved.
    rounds
        At most so many.
    jobs
        How many threads; -1 for all cores.
    advance
        Called after the sweeps of each family that there is room for, and after each round.
    sweeps
        At most so many; 0 for rounds alone.
    """
    history: list[dict[str, Any]] = []
    before, bound = np.inf, 0.0
    if problem.edges.nnz and sweeps:
        start = perf_counter()
        bound, used = begin_by_sweeps(problem, sweeps=sweeps, jobs=jobs, advance=advance)
        record: dict[str, Any] = {"phase": "sweeps", "epoch": used, "bound": bound}
        if len(problem.weights) == len(problem.free):  # there was room for all families
            before = record["objective"] = problem.objective()
        history.append({**record, "seconds": perf_counter() - start})
        if np.isfinite(before) and before - bound <= problem.tolerance * before:
            return problem.models(), history
    levels = problem.levels()
    for step in range(rounds):
        start = perf_counter()
        for level in levels if step % 2 == 0 else levels[::-1]:
            for _ in in_threads(problem.solve, level.tolist(), jobs):
                pass
        now = problem.objective()
        record = {"phase": "rounds", "epoch": step + 1, "objective": now, "unfinished": len(problem.unfinished)}
        history.append({**record, "seconds": perf_counter() - start})
        advance()
        alone = problem.edges.nnz == 0
        enough = problem.tolerance * now
        settled = not problem.unfinished and (alone or before - now <= enough)
        if settled or now - bound <= enough:
            break
        before = now
    else:
        warn_unsolved(
            f"hr-svm: not settled after {rounds} rounds ({len(problem.unfinished)} labels not solved to the tolerance "
            f"of {problem.tolerance:g}); give more rounds, a smaller strength or a larger tolerance"
        )
    return problem.models(), history


def _without_zeros(vector: NDArray[np.float64]) -> Sparse:
    there = np.flatnonzero(vector)
    return there.astype(np.int32), vector[there]


__all__ = ["PASSES", "SWEEPS", "Coupled", "solve_coupled"]
