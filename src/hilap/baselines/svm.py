"""One-vs-rest linear SVMs on TF-IDF or features: every label on its own, the taxonomy unknown to all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hilap.baselines.linear import LinearBaseline, one_vs_rest
from hilap.baselines.progress import counting
from hilap.corpus import Examples
from hilap.taxonomy import Taxonomy


class SVM(LinearBaseline):
    """One linear SVM (squared hinge loss) for each label.

    Parameters
    ----------
    taxonomy
        The labels.
    strength
        What an error costs against large weights (liblinear's C).
    row_options
        How documents become rows: see `DocumentRows`.
    tolerance
        When the solver stops (liblinear's).
    threshold, tune, repair
        The margin above which a label is given (None: 0), what tunes it, and what is done to inconsistent sets.
    refit
        When thresholds are chosen, learn anew from training and validation documents together. Thresholds stay as they
        were chosen.
    validation_share, seed
        The share of the training documents that `fit` holds out where no validation documents are given; what parts
        them, and the order in which the solver takes documents.
    jobs
        How many cores; -1 for all.
    output, progress
        What `predict` gives ("indicator" or "labels"); whether a bar is shown.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> model = SVM(taxonomy, row_options={"min_df": 1}, validation_share=0.2)
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.set_params(output="labels").predict(["a beer"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "svm"

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        strength: float = 1.0,
        row_options: Mapping[str, Any] | None = None,
        tolerance: float = 1e-4,
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
        self.strength = strength
        self.row_options = row_options
        self.tolerance = tolerance
        self.threshold = threshold
        self.tune = tune
        self.repair = repair
        self.refit = refit
        self.validation_share = validation_share
        self.seed = seed
        self.jobs = jobs
        self.output = output
        self.progress = progress

    def _learn(self, train: Examples, valid: Examples) -> None:
        labels = range(len(train.taxonomy))
        with counting("labels", len(labels), shown=self.progress) as advance:
            self.linear_ = one_vs_rest(
                self._rows(train),
                train.labels,
                labels,
                strength=self.strength,
                tolerance=self.tolerance,
                seed=int(self.seed),
                jobs=self.jobs,
                advance=advance,
            )


__all__ = ["SVM"]
