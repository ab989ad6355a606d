"""CSSA: regressed label scores, then the best consistent label set (Bi and Kwok 2011)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.baselines.base import AUTO, Baseline
from hilap.baselines.dependency import KERNELS, Dependency, Kernel, Projection, Regression
from hilap.baselines.progress import counting
from hilap.baselines.rows import DocumentRows
from hilap.baselines.thresholds import score_sets
from hilap.baselines.values import check_choice, check_count, check_positive
from hilap.corpus import Examples
from hilap.errors import ModelError, SettingError, require
from hilap.metrics.ranking import pooled_area
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Self

RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
TUNES = (None, "example_f1", "micro_f1", "macro_f1", "mean", "balanced", AUTO)


class CSSA(Baseline):
    """Kernel dependency estimation, and condensing sort and select for consistent sets; on trees and DAGs.

    A label's score is the value of its supernode (see `hilap.consistent.condensing`), never above a parent's and, as a
    probability, cut to 0 and 1. So sets are consistent, and the best of their size for the regressed scores.

    Parameters
    ----------
    taxonomy
        The labels; a tree or a DAG.
    labels
        How many labels a document gets, to the nearest whole supernode; "tuned": the number that is best for `tune`
        on the validation documents. None: as many as are above the threshold.
    kernel, gamma
        How alike documents are: "linear", or "rbf", exp(-gamma |x - z|²). None: rbf for features, linear for texts,
        and for gamma, which the linear one has not, 1 over the number of features.
    ridge
        What large weights cost against errors. None: the one of 0.1, 1, 10, 100, 1000 and 10000 with the largest pooled
        AU(PRC) on the validation documents.
    components
        The most principal components that label vectors are projected on.
    landmarks
        The most training documents the kernel is taken with; from more, so many are drawn (Nystroem).
    row_options
        How documents become rows: see `DocumentRows`.
    threshold, tune
        Where `labels` is None, the value above which a label is given (None: 0.5), and the metric that tunes it, or
        the number of labels, on the validation documents ("auto": example F1, unless a threshold is given; None:
        nothing does). `fit` refuses a metric beside a number of labels.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> model = CSSA(taxonomy, row_options={"min_df": 1}, validation_share=0.2)
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.set_params(output="labels").predict(["a beer bar"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "cssa"
    tuned_for: ClassVar[str | None] = "example_f1"
    repair = None  # every set is consistent

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        labels: int | str | None = None,
        kernel: str | None = None,
        gamma: float | None = None,
        ridge: float | None = None,
        components: int = 200,
        landmarks: int = 2000,
        row_options: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        tune: str | None = AUTO,
        refit: bool = False,
        validation_share: float = 0.1,
        seed: int = 0,
        output: str = "indicator",
        progress: bool = False,
    ) -> None:
        self.taxonomy = taxonomy
        self.labels = labels
        self.kernel = kernel
        self.gamma = gamma
        self.ridge = ridge
        self.components = components
        self.landmarks = landmarks
        self.row_options = row_options
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
        check_choice("tune", self.tune, TUNES)  # thresholds by label would leave sets inconsistent
        check_choice("kernel", self.kernel, (None, *KERNELS))
        check_count("components", self.components)
        check_count("landmarks", self.landmarks)
        for name in ("gamma", "ridge"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if self.labels is not None and self.labels != "tuned":
            good = isinstance(self.labels, (int, np.integer)) and not isinstance(self.labels, bool)
            require(good and self.labels >= 1, "labels", "a whole number above 0, 'tuned' or None", self.labels)  # type: ignore[operator]
        if self.labels is not None and self.threshold is not None:
            raise SettingError(
                f"threshold={self.threshold!r} is not looked at where labels={self.labels!r} says how many there are; "
                "give one of them, and None (on the command line null) for the other"
            )
        if self.kernel == "linear" and self.gamma is not None:
            raise self._without_gamma()
        if self.labels == "tuned" and self._tuning is None:
            raise SettingError("labels='tuned' needs a metric to tune for; set tune, for example to 'example_f1'")
        DocumentRows(self.row_options).check()
        return self

    # -- learning -----------------------------------------------------------------------------------------------------

    def _documents(self, X: Any, y: Any, valid: Any) -> tuple[Examples, Examples]:  # noqa: N803
        # Not in `check`, which `with_decoding` and `load` call too: a model that was tuned may be given a number of
        # labels later, and reads the threshold it has chosen when the number is taken away again.
        if self.labels not in (None, "tuned") and self.tune not in (None, AUTO):
            raise SettingError(
                f"tune={self.tune!r} has nothing to tune where labels={self.labels!r} says how many there are; leave "
                "tune out, or set labels='tuned' or None (on the command line null)"
            )
        return super()._documents(X, y, valid)

    def _learn(self, train: Examples, valid: Examples) -> None:
        self._count(train)
        made = self._regressed(train)
        tried = RIDGES if self.ridge is None else (float(self.ridge),)
        rows, areas = self.rows_.matrix(valid), []
        with counting("ridges", len(tried), shown=self.progress) as advance:
            for ridge in tried:  # one at a time, the best made again: each has a weight for every word and component
                scores = made(ridge).scores(rows)
                areas.append(float(np.nan_to_num(pooled_area(valid.labels, scores))))
                advance()
        self.dependency_ = made(tried[int(np.argmax(areas))])
        self.history_ = [
            {"phase": "ridge", "epoch": i + 1, "select": area, "ridge": ridge}
            for i, (area, ridge) in enumerate(zip(areas, tried, strict=True))
        ]
        self.size_ = self._size(valid)

    def _learn_anew(self, examples: Examples, held_out: Examples) -> None:
        self.dependency_ = self._regressed(examples)(self._best_ridge())

    def _best_ridge(self) -> float:
        """The ridge that was chosen on validation documents."""
        best = max(self.history_, key=lambda record: float(record["select"]))  # the first of equals, as `_learn` does
        return float(best["ridge"])

    def _regressed(self, train: Examples) -> Callable[[float], Dependency]:
        """Ridge -> the regression of labels on these documents with it; how rows are made is remembered."""
        self.rows_ = DocumentRows(self.row_options).fit(train)
        rng = np.random.default_rng([int(self.seed), 43])
        rows = self.rows_.matrix(train)
        kernel = self._kernel(train, rows.shape[1])
        projection = Projection.fitted(train.labels, int(self.components), rng)
        regression = Regression.fitted(rows, projection(train.labels), kernel, int(self.landmarks), rng)
        return lambda ridge: Dependency.of(kernel, regression, ridge, projection)

    def _kernel(self, train: Examples, n_features: int) -> Kernel:
        name = self.kernel or ("linear" if train.features is None else "rbf")
        if name == "linear" and self.gamma is not None:
            raise self._without_gamma()
        return Kernel(name, float(self.gamma) if self.gamma is not None else 1 / n_features)

    def _without_gamma(self) -> SettingError:
        return SettingError(
            f"gamma={self.gamma!r} is of the kernel 'rbf', but the kernel is 'linear', as it is for texts where none "
            "is named; leave gamma out, or set kernel='rbf'"
        )

    def _size(self, valid: Examples) -> int | None:
        """How many labels a document gets, where that is given or to be found."""
        if self.labels is None or self.labels != "tuned":
            return None if self.labels is None else int(self.labels)
        scores = self._condensed(valid, -np.inf)
        gold = np.diff(valid.labels.indptr)
        most = min(len(valid.taxonomy), max(1, 2 * int(gold.max(initial=1))))
        sets = (self._of_size(scores, size) for size in range(1, most + 1))
        return int(np.argmax([score_sets(valid.labels, one, str(self._tuning)) for one in sets])) + 1

    def _thresholds(self, train: Examples, held_out: Examples, scores: NDArray[Any]) -> NDArray[np.float64]:
        return super()._thresholds(train, held_out, np.maximum(scores, 0.0))  # as they are where a threshold decides

    # -- predicting ---------------------------------------------------------------------------------------------------

    def _scores(self, examples: Examples) -> NDArray[Any]:
        # To a threshold a score below 0 says no more than 0 does; a number of labels may reach further down.
        return self._condensed(examples, 0.0 if self.size_ is None else -np.inf)

    def _condensed(self, examples: Examples, floor: float) -> NDArray[Any]:
        from hilap.consistent.condensing import condensed

        regressed = self.dependency_.scores(self.rows_.matrix(examples))
        if floor < 0 and not self._seen.all():  # labels that no document has score 0, above what is below it
            regressed[:, ~self._seen] = regressed.min(1, keepdims=True) - 1
        return condensed(regressed, self.taxonomy_, floor)

    def _chances(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(np.clip(scores, 0, 1), dtype=np.float32)

    def _chosen(self, scores: NDArray[Any]) -> sparse.csr_array:
        if self.size_ is None:
            return super()._chosen(scores)
        return sparse.csr_array(self._of_size(scores, self.size_).astype(np.int32))

    def _of_size(self, scores: NDArray[Any], size: int) -> NDArray[np.bool_]:
        return of_size(scores, size) & self._seen

    def with_decoding(self, **changes: Any) -> Self:
        """The same trained classifier with another `threshold`, or another number of `labels`."""
        if changes.get("labels") == "tuned" and self.labels != "tuned":
            raise SettingError("labels='tuned' is found by fit; give a number, or train again")
        other = super().with_decoding(**changes)
        if "labels" in changes and changes["labels"] != "tuned":
            other.size_ = None if changes["labels"] is None else int(changes["labels"])
        return other

    # -- saving -------------------------------------------------------------------------------------------------------

    def _instead(self) -> dict[str, Any]:
        kernel = self.dependency_.kernel
        threshold = super()._instead() if self.size_ is None else {}  # a number of labels is given without one
        gamma = {"gamma": kernel.gamma} if kernel.name == "rbf" else {}
        return {**threshold, **gamma, "kernel": kernel.name, "ridge": self._best_ridge()}

    @classmethod
    def _without_ignored(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        found = dict(super()._without_ignored(parameters))
        if found.get("labels") is not None:
            found["threshold"] = None
        if found.get("kernel") == "linear":
            found["gamma"] = None
        return found

    def _stored(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, rows = self.rows_.stored()
        more, facts = self.dependency_.stored()
        return {**tensors, **more}, {"rows": rows, "dependency": facts, "size": self.size_}

    def _open(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        self.rows_ = DocumentRows.opened(tensors, facts["rows"])
        width = len(tensors["rows.idf"] if "rows.idf" in tensors else tensors["rows.mean"])
        self.dependency_ = Dependency.opened(tensors, facts["dependency"], width, len(self.taxonomy_))
        size = facts["size"]
        if size is not None and (type(size) is not int or size < 1):
            raise ModelError(f"'size' must be a whole number above 0, got {size!r}")
        self.size_ = size


def of_size(values: NDArray[Any], size: int) -> NDArray[np.bool_]:
    """(n, L) the sets of about `size` labels: all of the highest values, as many as come nearest to it.

    Labels of one value belong together. Those that fit only in part are taken where at least half of them fit.

    Examples
    --------
    >>> of_size(np.array([[0.75, 0.5, 0.5, 0.5, 0.25]]), 2).astype(int).tolist()
    [[1, 0, 0, 0, 0]]
    >>> of_size(np.array([[0.75, 0.5, 0.5, 0.5, 0.25]]), 3).astype(int).tolist()
    [[1, 1, 1, 1, 0]]
    """
    n_labels = values.shape[1]
    if size >= n_labels:
        return np.ones(values.shape, dtype=bool)
    last = -np.partition(-values, size - 1, axis=1)[:, size - 1, None]
    above, at_least = values > last, values >= last
    sure = above.sum(1, keepdims=True)
    fits = 2 * (size - sure) >= at_least.sum(1, keepdims=True) - sure
    return np.asarray(np.where(fits, at_least, above))


__all__ = ["CSSA", "RIDGES", "of_size"]
