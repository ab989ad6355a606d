"""TD-SVM: local linear SVMs from the top down (Liu et al. 2005).

Tie-Yan Liu et al., "Support vector machines classification with a very large-scale taxonomy", SIGKDD Explorations 7(1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilap.baselines.linear import LinearBaseline, one_vs_rest
from hilap.baselines.progress import counting
from hilap.corpus import Examples
from hilap.taxonomy import Taxonomy


class TopDownSVM(LinearBaseline):
    """One linear SVM for each label, among the documents of its parent; a label is visited if its parent was given.

    In a DAG the documents of any parent count, a label is visited if any parent was given, and giving it gives all its
    ancestors. Probabilities are made of the least margin on the best way down to a label, or that of a label below it
    where that is better (in a DAG only): above one threshold for all labels means "reached with all margins above it",
    and no child is above its parent. A threshold of a label's own (`tune="scut"`) is for its own margin, found on
    documents of its parents.

    Parameters
    ----------
    taxonomy
        The labels.
    strength, row_options, tolerance
        As of `SVM`.
    threshold, tune
        The margin above which a visited label is given (None: 0), and what tunes it.
    refit, validation_share, seed, jobs, output, progress
        As of `SVM`.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> model = TopDownSVM(taxonomy, row_options={"min_df": 1}, validation_share=0.2, output="labels")
    >>> model = model.fit(["beer bar", "food", "court law"] * 20, [["Bars"], ["Food"], ["Law"]] * 20)
    >>> model.predict(["a beer", "the food"])
    [['Food', 'Bars'], ['Food']]
    """

    kind: ClassVar[str] = "td-svm"
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
        labels = range(len(train.taxonomy))
        parents, gold = train.taxonomy.parent_matrix, train.labels.tocsc()

        def among(label: int) -> NDArray[Any] | None:
            above = parents.indices[parents.indptr[label] : parents.indptr[label + 1]]
            if not len(above):
                return None
            return np.unique(np.concatenate([gold.indices[gold.indptr[p] : gold.indptr[p + 1]] for p in above]))

        with counting("labels", len(labels), shown=self.progress) as advance:
            self.linear_ = one_vs_rest(
                self._rows(train),
                train.labels,
                labels,
                among=among,
                strength=self.strength,
                tolerance=self.tolerance,
                seed=int(self.seed),
                jobs=self.jobs,
                advance=advance,
            )

    def _ranked(self, scores: NDArray[Any]) -> NDArray[Any]:
        return visited(self.taxonomy_, scores)

    def _own(self, examples: Examples, scores: NDArray[Any]) -> NDArray[Any]:
        """Only documents of a parent count for a label, as when it is learned: the others stand below them all."""
        parents = self.taxonomy_.parent_matrix
        reach = np.asarray((examples.labels @ parents.T).toarray() > 0) | (np.diff(parents.indptr) == 0)
        lowest = np.where(reach, scores, np.inf).min(0, initial=np.inf)
        return np.where(reach, scores, np.where(np.isfinite(lowest), lowest, 0.0) - 1e-3)

    def _repaired(self, values: NDArray[Any]) -> NDArray[Any]:
        return visited(self.taxonomy_, values.astype(np.float64)).astype(values.dtype)


def visited(taxonomy: Taxonomy, margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, L) the scores of labels that are visited from the top down, ancestors given along.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"A": [], "B": ["A"], "C": ["B"]})
    >>> visited(taxonomy, np.array([[0.5, 2.0, 1.0]])).tolist()
    [[0.5, 0.5, 0.5]]
    """
    from hilap.consistent.closed_sets import along_paths, lifted

    return lifted(taxonomy, along_paths(taxonomy, margins))


__all__ = ["TopDownSVM", "visited"]
