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
from hilap.errors import SettingError, warn_unsolved
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_WEIGHTS = 500_000_000
"""Every weight can change at every step, so they are kept dense while learning: 4 GB. What is kept of them takes up to
as much again, 8 bytes for each that is not zero."""
BLOCK = 1_000_000  # weights that are looked through at once


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
    refit, validation_share, seed, output, progress
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
        refit: bool = False,
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
        self.refit = refit
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
        self.linear_ = LinearModels(_sparse(weight[:-1]), weight[-1].astype(np.float32))

    def _descended(self, rows: sparse.csr_matrix, train: Examples, advance: Any) -> NDArray[np.float64]:
        """(F + 1, L) the weights; how far they are from the optimum goes into `history_`."""
        from hilap.consistent.structured import Objectives, solve

        start = perf_counter()

        def passed(known: Objectives | None) -> None:
            nonlocal start
            advance()
            if known is not None:
                record = {"phase": "passes", "epoch": known.passes, "primal": known.primal, "dual": known.dual}
                self.history_.append({**record, "seconds": perf_counter() - start})
                start = perf_counter()

        weight, known = solve(
            rows,
            train.labels,
            train.taxonomy,
            cost=self.strength,
            tolerance=self.tolerance,
            passes=self.passes,
            seed=int(self.seed),
            passed=passed,
        )
        if known.gap > self.tolerance:
            warn_unsolved(
                f"hsvm: after {self.passes} passes the objective may be {known.gap:.1%} above its optimum, and "
                f"tolerance asks for {self.tolerance:.1%}; give more passes, a smaller strength or a larger tolerance"
            )
        return weight

    def _deciding(self, examples: Examples) -> NDArray[Any]:
        # Scores below every threshold take most of the time.
        return self._consistent(super()._scores(examples), float(self.thresholds_.min(initial=np.inf)))

    def _scores(self, examples: Examples) -> NDArray[Any]:
        return self._consistent(super()._scores(examples))

    def _consistent(self, margins: NDArray[Any], floor: float = -np.inf) -> NDArray[Any]:
        from hilap.consistent.condensing import condensed

        return condensed(margins, self.taxonomy_, floor)

    def _repaired(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._levels.lowest(values)


def _sparse(weight: NDArray[np.float64]) -> sparse.csr_matrix:
    """(F, L) float32, block after block: at once, scipy would take four times the memory of the dense weights."""
    n_features, n_labels = weight.shape
    rows = max(1, BLOCK // max(1, n_labels))
    blocks = range(0, n_features, rows)
    starts = np.zeros(n_features + 1, dtype=np.int64)
    for start in blocks:
        starts[start + 1 : start + rows + 1] = np.count_nonzero(weight[start : start + rows].astype(np.float32), axis=1)
    np.cumsum(starts, out=starts)
    values, columns = np.empty(starts[-1], dtype=np.float32), np.empty(starts[-1], dtype=np.int32)
    for start in blocks:
        part = weight[start : start + rows].astype(np.float32)
        there = part != 0
        here = slice(starts[start], starts[min(start + rows, n_features)])
        values[here], columns[here] = part[there], np.nonzero(there)[1]
    return sparse.csr_matrix((values, columns, starts), shape=weight.shape)


__all__ = ["HSVM"]
