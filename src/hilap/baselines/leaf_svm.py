"""Leaf-SVM: linear SVMs for the leaves only; a document that is given a leaf is given all its ancestors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilap.baselines.linear import LinearBaseline, one_vs_rest
from hilap.baselines.progress import counting
from hilap.corpus import Examples
from hilap.taxonomy import Taxonomy


class LeafSVM(LinearBaseline):
    """One linear SVM for each leaf (a label without children); inner labels follow from leaves.

    A document whose deepest label is an inner label is a negative document of every leaf: it has no leaf, and this
    system cannot say "somewhere below". The score of an inner label is the best of the leaves below it, so that the
    sets are consistent at any threshold, on trees and DAGs.

    Parameters
    ----------
    taxonomy
        The labels.
    strength, row_options, tolerance
        As of `SVM`.
    threshold, tune
        The margin above which a leaf is given (None: 0), and what tunes it. Thresholds of inner labels' own (`scut`,
        `scutfbr`) are of no effect.
    refit, validation_share, seed, jobs, output, progress
        As of `SVM`.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> model = LeafSVM(taxonomy, row_options={"min_df": 1}, validation_share=0.2, output="labels")
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.predict(["a beer"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "leaf-svm"
    repair = None

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        strength: float = 1.0,
        row_options: Mapping[str, Any] | None = None,
        tolerance: float = 1e-4,
        threshold: float | None = None,
        tune: str | None = None,
        refit: bool = False,
        validation_share: float = 0.1,
        seed: int = 0,
        jobs: int = -1,
        output: str = "indicator",
        progress: bool = False,
    ) -> None:
        self.taxonomy = taxonomy
        self.strength = strength
        self.row_options = row_options
        self.tolerance = tolerance
        self.threshold = threshold
        self.tune = tune
        self.refit = refit
        self.validation_share = validation_share
        self.seed = seed
        self.jobs = jobs
        self.output = output
        self.progress = progress

    def _learn(self, train: Examples, valid: Examples) -> None:
        leaves = leaves_of(train.taxonomy)
        with counting("leaves", len(leaves), shown=self.progress) as advance:
            self.linear_ = one_vs_rest(
                self._rows(train),
                train.labels,
                leaves.tolist(),
                strength=self.strength,
                tolerance=self.tolerance,
                seed=int(self.seed),
                jobs=self.jobs,
                advance=advance,
            )

    def _scores(self, examples: Examples) -> NDArray[Any]:
        return from_leaves(self.taxonomy_, super()._scores(examples))

    def _repaired(self, values: NDArray[Any]) -> NDArray[Any]:
        return from_leaves(self.taxonomy_, values.astype(np.float64)).astype(values.dtype)


def leaves_of(taxonomy: Taxonomy) -> NDArray[np.int64]:
    """The columns of the labels without children."""
    return np.flatnonzero(np.diff(taxonomy.child_matrix.indptr) == 0)


def from_leaves(taxonomy: Taxonomy, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, L) where an inner label has the best score of the leaves below it.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"A": [], "B": ["A"], "C": ["A"]})
    >>> from_leaves(taxonomy, np.array([[9.0, -1.0, 2.0]])).tolist()
    [[2.0, -1.0, 2.0]]
    """
    from hilap.consistent.closed_sets import lifted

    leaves = leaves_of(taxonomy)
    only = np.full_like(scores, -np.inf)
    only[:, leaves] = scores[:, leaves]
    return lifted(taxonomy, only)


__all__ = ["LeafSVM", "from_leaves", "leaves_of"]
