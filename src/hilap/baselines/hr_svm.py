"""HR-SVM and HR-LR: linear models regularised towards their parents' (Gopal and Yang 2013).

Siddharth Gopal and Yiming Yang, "Recursive regularization for large-scale classification with hierarchical and
graphical dependencies", KDD 2013.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilap.baselines.leaf_svm import from_leaves, leaves_of
from hilap.baselines.linear import LinearBaseline
from hilap.baselines.progress import counting
from hilap.baselines.values import check_choice, check_count, check_from_zero
from hilap.corpus import Examples
from hilap.errors import require
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from typing_extensions import Self

LOSSES = ("hinge", "squared_hinge", "logistic")
TRAINED = ("all", "leaves")


class HRSVM(LinearBaseline):
    """A linear model for each label, drawn towards the models of its parents.

    Parameters
    ----------
    taxonomy
        The labels.
    loss
        "hinge" (HR-SVM), "logistic" (HR-LR), or "squared_hinge" (the loss of `SVM`).
    coupling
        From 0 (every label for itself) to 1 (recursive regularisation as published).
    trained
        Which labels have a loss of their own: "all", since documents end at inner labels too; or "leaves" as published,
        where inner labels are means of their neighbours and a document is given the ancestors of its leaves.
    strength
        What an error costs against the regulariser.
    row_options
        As of `SVM`.
    tolerance
        Of a label's solver (the largest violation of optimality), and the share of the objective that it may be above
        its optimum, or that a round must gain for another to follow.
    rounds
        Over all labels, at most; before them the joint dual is swept over (see `hilap.baselines.sweeps`).
    threshold, tune, repair
        The margin above which a label is given (None: 0), what tunes it, and what is done to inconsistent sets; with
        `trained="leaves"` there are none.
    refit, validation_share, seed, jobs, output, progress
        As of `SVM`.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> model = HRSVM(taxonomy, row_options={"min_df": 1}, validation_share=0.2, output="labels")
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.predict(["a beer"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "hr-svm"

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        loss: str = "hinge",
        coupling: float = 1.0,
        trained: str = "all",
        strength: float = 1.0,
        row_options: Mapping[str, Any] | None = None,
        tolerance: float = 1e-3,
        rounds: int = 50,
        threshold: float | None = None,
        tune: str | None = None,
        repair: str | None = None,
        refit: bool = False,
        validation_share: float = 0.1,
        seed: int = 0,
        jobs: int = -1,
        output: str = "indicator",
        progress: bool = False,
    ) -> None:
        self.taxonomy = taxonomy
        self.loss = loss
        self.coupling = coupling
        self.trained = trained
        self.strength = strength
        self.row_options = row_options
        self.tolerance = tolerance
        self.rounds = rounds
        self.threshold = threshold
        self.tune = tune
        self.repair = repair
        self.refit = refit
        self.validation_share = validation_share
        self.seed = seed
        self.jobs = jobs
        self.output = output
        self.progress = progress

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have."""
        super().check()
        check_choice("loss", self.loss, LOSSES)
        check_choice("trained", self.trained, TRAINED)
        check_count("rounds", self.rounds)
        check_from_zero("coupling", self.coupling)
        require(self.coupling <= 1, "coupling", "a number from 0 to 1", self.coupling)
        plain = self.trained == "all" or self.repair is None
        require(plain, "repair", "None where only leaves are trained: their ancestors are always added", self.repair)
        return self

    def _learn(self, train: Examples, valid: Examples) -> None:
        from hilap.baselines.coupled import Coupled, solve_coupled
        from hilap.baselines.sweeps import swept_families

        trained = np.ones(len(train.taxonomy), dtype=bool)
        if self.trained == "leaves":
            trained[:] = False
            trained[leaves_of(train.taxonomy)] = True
        problem = Coupled(
            rows=self._rows(train),
            gold=train.labels.tocsc(),
            taxonomy=train.taxonomy,
            trained=trained,
            loss=self.loss,
            strength=float(self.strength),
            coupling=float(self.coupling),
            tolerance=float(self.tolerance),
            seed=int(self.seed),
        )
        steps = len(swept_families(problem)) + int(self.rounds)
        with counting("families, rounds", steps, shown=self.progress) as advance:
            self.linear_, history = solve_coupled(problem, rounds=int(self.rounds), jobs=self.jobs, advance=advance)
        self.history_ += history

    def _scores(self, examples: Examples) -> NDArray[Any]:
        margins = super()._scores(examples)
        return from_leaves(self.taxonomy_, margins) if self.trained == "leaves" else margins

    def _repaired(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.trained != "leaves":
            return super()._repaired(values)
        return from_leaves(self.taxonomy_, values.astype(np.float64)).astype(values.dtype)


__all__ = ["HRSVM"]
