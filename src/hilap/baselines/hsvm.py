"""HSVM: a large-margin classifier whose answers are consistent label sets.

Lijuan Cai and Thomas Hofmann, "Hierarchical document categorization with support vector machines", CIKM 2004; Ioannis
Tsochantaridis et al., "Large margin methods for structured and interdependent output variables", JMLR 6, 2005.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.baselines.linear import LinearBaseline, LinearModels
from hilap.baselines.progress import counting
from hilap.baselines.values import check_count
from hilap.corpus import Examples
from hilap.errors import SettingError
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_WEIGHTS = 500_000_000  # 4 GB while learning: every weight can change at every step, so they are kept dense
CHECK_EVERY = 5  # passes


class HSVM(LinearBaseline):
    """A structured SVM: the predicted set is the consistent one with the highest sum of margins.

    Learning asks that each document's own set beats every other consistent set by as many labels as the two differ in.
    The scores are the margins made consistent (isotonic regression), of which a threshold t gives exactly the best set
    for margins minus t.

    Parameters
    ----------
    taxonomy
        The labels.
    strength
        What an error costs against large weights.
    row_options
        As of `SVM`.
    tolerance
        Learning stops when the objective is at most this share above its optimum, which is known from the dual.
    passes
        Over the training documents, at most.
    threshold, tune
        What is taken from every margin before the best set is sought (None: 0), and what tunes it. With thresholds of
        labels' own (`scut`, `scutfbr`), labels that lack an ancestor are left out.
    validation_share, seed, output, progress
        As of `SVM`.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> model = HSVM(taxonomy, row_options={"min_df": 1}, validation_share=0.2, output="labels")
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.predict(["a beer"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "hsvm"
    repair = None
    jobs = 1  # a step needs the one before it

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        strength: float = 1.0,
        row_options: Mapping[str, Any] | None = None,
        tolerance: float = 0.01,
        passes: int = 50,
        threshold: float | None = None,
        tune: str | None = None,
        validation_share: float = 0.1,
        seed: int = 0,
        output: str = "indicator",
        progress: bool = False,
    ) -> None:
        self.taxonomy = taxonomy
        self.strength = strength
        self.row_options = row_options
        self.tolerance = tolerance
        self.passes = passes
        self.threshold = threshold
        self.tune = tune
        self.validation_share = validation_share
        self.seed = seed
        self.output = output
        self.progress = progress

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have."""
        super().check()
        check_count("passes", self.passes)
        return self

    def _learn(self, train: Examples, valid: Examples) -> None:
        rows = self._rows(train)
        size = (rows.shape[1] + 1) * len(train.taxonomy)
        if size > MOST_WEIGHTS:
            raise SettingError(
                f"hsvm keeps all weights at hand, at most {MOST_WEIGHTS:,}; {rows.shape[1]:,} features x "
                f"{len(train.taxonomy):,} labels are {size:,}: take fewer features (row_options), or hr-svm"
            )
        with counting("passes", self.passes, shown=self.progress) as advance:
            weight = self._descended(rows, train, advance)
        offset = weight[-1].astype(np.float32)
        self.linear_ = LinearModels(sparse.csr_matrix(weight[:-1].astype(np.float32)), offset)

    def _descended(self, rows: sparse.csr_matrix, train: Examples, advance: Any) -> NDArray[np.float64]:
        """(F + 1, L) the weights; how far they are from the optimum goes into `history_`."""
        from hilap.baselines.closed_sets import children_of, graph_of, room_for
        from hilap.baselines.structured import Documents, objectives, one_pass
        from hilap.descent import lengths

        gold = train.labels
        norms = lengths(rows.data, rows.indptr)
        documents = Documents(rows.data, rows.indices, rows.indptr, norms, gold.indices, gold.indptr)
        graph = graph_of(train.taxonomy)
        means = gold.toarray().astype(np.float32)
        weight = np.zeros((rows.shape[1] + 1, len(train.taxonomy)))
        problem = (documents, graph, room_for(graph), children_of(graph), float(self.strength), means, weight)
        order = np.arange(len(train))
        start = perf_counter()
        for step in range(1, self.passes + 1):
            one_pass(*problem, order, (int(self.seed) + step) % 2**31)
            advance()
            if step % CHECK_EVERY and step < self.passes:
                continue  # a look at the objectives costs about as much as a pass
            primal, dual = objectives(*problem)
            record = {"phase": "passes", "epoch": step, "primal": primal, "dual": dual}
            self.history_.append({**record, "seconds": perf_counter() - start})
            start = perf_counter()
            if primal - dual <= self.tolerance * primal:
                break
        return weight

    def _scores(self, examples: Examples) -> NDArray[Any]:
        from hilap.baselines.closed_sets import consistent

        return consistent(self.taxonomy_, super()._scores(examples))

    def _repaired(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._levels.lowest(values)


__all__ = ["HSVM"]
