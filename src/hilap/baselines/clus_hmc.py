"""Clus-HMC: predictive clustering trees for label sets, one tree or a bagged forest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilap.baselines.base import AUTO, Baseline
from hilap.baselines.clus_forest import Forest
from hilap.baselines.clus_tree import Growing, GrownTree, label_weights
from hilap.baselines.progress import counting
from hilap.baselines.rows import DocumentRows
from hilap.baselines.values import check_count, check_jobs
from hilap.corpus import Examples
from hilap.errors import require
from hilap.metrics.ranking import pooled_area
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Self

SIGNIFICANCES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.125)  # those that Vens et al. choose from


class ClusHMC(Baseline):
    """A tree whose tests part documents into groups with similar label sets (Vens et al. 2008), or a bagged forest.

    A leaf says of each label what share of its training documents has it, so a label is never more probable than
    the labels above it, and the sets of one threshold for all labels are consistent by themselves.

    Parameters
    ----------
    taxonomy
        The labels; a tree or a DAG.
    trees
        1 for a single tree from all documents; more for a forest, each tree from a bootstrap of the documents
        (Schietgat et al. 2010, who take 50).
    features
        What each test is chosen from: "all" features, "sqrt" of their number or a share of them, drawn for each test.
    weight_decay
        What a label counts against its parents when distances are taken (w0 of the paper).
    significance
        How probable the gain of a test may be by accident (F-test); 1 keeps every gain. None: the one of
        0.001, 0.005, 0.01, 0.05, 0.1 and 0.125 with the largest pooled AU(PRC) on the validation documents.
    min_leaf
        The fewest documents of a leaf.
    refit
        When significance and thresholds are chosen, grow anew on training and validation documents together, as the
        paper does as far as we remember. Thresholds stay, and `validation_` tells how well the model did before.
    row_options
        How documents become rows: see `DocumentRows`. Trees need no standardised features, so they are not.
    threshold, tune, repair
        The probability above which a label is given (None: 0.5), what tunes it ("auto": example F1, unless a threshold
        is given; None: nothing), and what is done to sets that thresholds by label (`tune="scut"`) leave inconsistent.
    jobs
        How many cores grow a forest; -1 for all.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> model = ClusHMC(taxonomy, row_options={"min_df": 1}, validation_share=0.2)
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.set_params(output="labels").predict(["a beer bar"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "clus-hmc"
    tuned_for: ClassVar[str | None] = "example_f1"

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        trees: int = 1,
        features: str | float = "all",
        weight_decay: float = 0.75,
        significance: float | None = None,
        min_leaf: int = 5,
        refit: bool = False,
        row_options: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        tune: str | None = AUTO,
        repair: str | None = None,
        validation_share: float = 0.1,
        seed: int = 0,
        jobs: int = -1,
        output: str = "indicator",
        progress: bool = False,
    ) -> None:
        self.taxonomy = taxonomy
        self.trees = trees
        self.features = features
        self.weight_decay = weight_decay
        self.significance = significance
        self.min_leaf = min_leaf
        self.refit = refit
        self.row_options = row_options
        self.threshold = threshold
        self.tune = tune
        self.repair = repair
        self.validation_share = validation_share
        self.seed = seed
        self.jobs = jobs
        self.output = output
        self.progress = progress

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have."""
        super().check()
        check_count("trees", self.trees)
        check_count("min_leaf", self.min_leaf)
        check_jobs("jobs", self.jobs)
        _check_share("weight_decay", self.weight_decay)
        if self.significance is not None:
            _check_share("significance", self.significance)
        if self.features not in ("all", "sqrt"):
            good = isinstance(self.features, float) and 0 < self.features <= 1
            require(good, "features", "'all', 'sqrt' or a share above 0 and up to 1.0", self.features)
        DocumentRows(self.row_options).check()
        return self

    def _learn(self, train: Examples, valid: Examples) -> None:
        tried = SIGNIFICANCES if self.significance is None else (float(self.significance),)
        grown = self._grown(train, max(tried))
        rows = self.rows_.matrix(valid)
        self.history_ = []
        for i, level in enumerate(tried):
            forest = _cut(grown, level)
            record = {"phase": "F-test", "epoch": i + 1, "select": _area(valid, forest.scores(rows))}
            self.history_.append({**record, "significance": level, "leaves": forest.n_leaves})
        self.significance_ = tried[int(np.argmax([record["select"] for record in self.history_]))]
        self.forest_ = _cut(grown, self.significance_)

    def _learn_anew(self, examples: Examples, held_out: Examples) -> None:
        self.forest_ = _cut(self._grown(examples, self.significance_), self.significance_)

    def _grown(self, train: Examples, significance: float) -> list[GrownTree]:
        """Every tree, down to this significance; how rows are made is remembered."""
        from joblib import Parallel, delayed

        self.rows_ = DocumentRows(self._row_options(train)).fit(train)
        rows = self.rows_.matrix(train)
        rows.sort_indices()
        growing = Growing(
            rows,
            train.labels,
            label_weights(train.taxonomy, self.weight_decay),
            int(self.min_leaf),
            significance,
            self._features_of_a_test(rows.shape[1]),
        )
        with counting("trees", int(self.trees), shown=self.progress) as advance:

            def grow(k: int) -> GrownTree:
                rng = np.random.default_rng([int(self.seed), 41, k])
                n = len(train)
                times = np.bincount(rng.integers(n, size=n), minlength=n) if self.trees > 1 else np.ones(n)
                made = growing.grow(times.astype(np.float64), rng)
                advance()
                return made

            return list(Parallel(n_jobs=self.jobs, prefer="threads")(delayed(grow)(k) for k in range(self.trees)))

    def _features_of_a_test(self, n_features: int) -> int:
        if self.features == "all":
            return n_features
        many = math.sqrt(n_features) if self.features == "sqrt" else float(self.features) * n_features
        return max(1, math.ceil(many))

    def _row_options(self, examples: Examples) -> Mapping[str, Any]:
        """Thresholds of features stay in the features' own units unless standardising is asked for."""
        plain = {} if examples.features is None else {"standardise": False}
        return {**plain, **(self.row_options or {})}

    def _scores(self, examples: Examples) -> NDArray[Any]:
        return self.forest_.scores(self.rows_.matrix(examples))

    def _stored(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, rows = self.rows_.stored()
        return {**tensors, **self.forest_.stored()}, {"rows": rows, "significance": self.significance_}

    def _instead(self) -> dict[str, Any]:
        return {**super()._instead(), "significance": self.significance_}

    def _open(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        self.rows_ = DocumentRows.opened(tensors, facts["rows"])
        width = len(tensors["rows.idf"] if "rows.idf" in tensors else tensors["rows.mean"])
        self.forest_ = Forest.opened(tensors, width, len(self.taxonomy_))
        self.significance_ = float(facts["significance"])


def _cut(grown: list[GrownTree], significance: float) -> Forest:
    return Forest.of([tree.cut(significance) for tree in grown])


def _area(examples: Examples, scores: NDArray[Any]) -> float:
    """Pooled AU(PRC) with the interpolation of the paper; 0 where no document has a label."""
    return float(np.nan_to_num(pooled_area(examples.labels, scores, "interpolated")))


def _check_share(name: str, value: object) -> None:
    good = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    require(good and 0 < float(value) <= 1, name, "a number above 0, up to 1", value)  # type: ignore[arg-type]


__all__ = ["SIGNIFICANCES", "ClusHMC"]
