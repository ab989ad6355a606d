"""What every baseline has in common: the scikit-learn face, thresholds chosen on validation data, a model folder.

A baseline learns a score for each document and label (`_learn`, `_scores`); everything else is here. None of them knows
HiLAP's policy, network or trainer, so that the comparison is fair (an import contract sees to it).
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError

from hilap.baselines.chances import ALWAYS, NEVER, Sigmoid
from hilap.baselines.thresholds import TUNES, scutfbr, tuned
from hilap.card import card
from hilap.corpus import Examples
from hilap.errors import HilapError, ModelError, SettingError, did_you_mean, require
from hilap.inputs import check_taxonomy, examples_of, pooled, with_validation
from hilap.metrics.counts import document_counts
from hilap.metrics.flat import example, f1_from_counts
from hilap.metrics.report import Report, report
from hilap.outputs import predictions
from hilap.prediction import Prediction
from hilap.storage import BROKEN, LOG, Stored, load_folder, save_folder
from hilap.storage.content import plain
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Self

    from hilap.levels import Levels

REPAIRS = (None, "add", "drop")
AUTO = "auto"  # tuned, unless a threshold is given: the default of those that are always tuned
DECODINGS = ("threshold", "repair", "labels")  # settings that may change after training, of those that have them
FOLDS = 3  # of the two nested cross-validations of SCutFBR
MOST_SCORES = 20_000_000  # of documents and labels that `predict` holds at a time


class NotTrainedError(HilapError, NotFittedError):  # type: ignore[misc]
    """A baseline is asked for something before `fit`."""


class Baseline(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier that scores every label and takes those above a threshold.

    A subclass declares `kind`, takes its settings as constructor arguments (among them all that are declared here),
    and says how it learns, scores and is stored. Where its sets are consistent by themselves it overrides `_repaired`
    or `_chosen`; where its scores are probabilities it sets `margins` to False.
    """

    kind: ClassVar[str]
    """Its name in `--method`, in `hilap.baselines.METHODS` and in a model folder."""
    margins: ClassVar[bool] = False
    """Scores are margins, unbounded and with the threshold 0; else probabilities with the threshold 0.5."""
    resumable: ClassVar[bool] = False
    """Whether `fit` takes `checkpoint` and `resume`."""
    tuned_for: ClassVar[str | None] = None
    """What `tune="auto"` tunes for where no threshold is given; None where there is no "auto"."""

    taxonomy: Taxonomy | None
    threshold: float | None
    tune: str | None
    repair: str | None
    refit: bool | None
    validation_share: float
    seed: int
    output: str
    progress: bool

    history_: list[dict[str, Any]]

    # -- what a subclass says -----------------------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, train: Examples, valid: Examples) -> None:
        """Learn; what is learned goes into attributes whose names end with an underscore.

        Validation documents may choose an epoch or a setting; no weight may be learned from them.
        """

    @abstractmethod
    def _scores(self, examples: Examples) -> NDArray[Any]:
        """(n, L) how much speaks for each label; a document's scores depend on that document alone, to the last bit."""

    @abstractmethod
    def _stored(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What was learned: tensors, and plain JSON values."""

    @abstractmethod
    def _open(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Take back what `_stored` gave. Both may come from a stranger's file; what does not fit is an error."""

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have; a subclass adds its own."""
        if self.taxonomy is not None and not isinstance(self.taxonomy, Taxonomy):
            raise SettingError(
                f"taxonomy must be a hilap.Taxonomy, got {self.taxonomy!r}; read one with hilap.read_taxonomy"
            )
        tunes = TUNES if self.tuned_for is None else (*TUNES, AUTO)
        require(self.tune in tunes, "tune", "one of " + ", ".join(map(repr, tunes)), self.tune)
        require(self.repair in REPAIRS, "repair", "one of " + ", ".join(map(repr, REPAIRS)), self.repair)
        require(self.output in ("indicator", "labels"), "output", "'indicator' or 'labels'", self.output)
        good = self.threshold is None or (_is_number(self.threshold) and bool(np.isfinite(self.threshold)))
        require(good, "threshold", "a number, or None", self.threshold)
        if self.threshold is not None and self._tuning is not None:
            raise SettingError(
                f"threshold={self.threshold!r} would be overwritten: tune={self.tune!r} chooses it on validation "
                "documents; leave it out, or set tune=None"
            )
        require(self.refit is None or isinstance(self.refit, bool), "refit", "True or False", self.refit)
        share = self.validation_share
        require(_is_number(share) and 0.001 <= share <= 0.9, "validation_share", "a number from 0.001 to 0.9", share)
        seed = isinstance(self.seed, (int, np.integer)) and not isinstance(self.seed, bool) and self.seed >= 0
        require(seed, "seed", "a whole number, at least 0", self.seed)
        require(isinstance(self.progress, bool), "progress", "True or False", self.progress)
        return self

    # -- learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, valid: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn from documents and their labels.

        Parameters
        ----------
        X, y
            As in `HiLAPClassifier.fit`.
        valid
            Validation documents, as `(X, y)` or as `Examples`; they choose thresholds. Without them a share of the
            training documents is held out. With `refit` they are learned from in the end, and `validation_` tells how
            well the model did on them before.
        """
        train, held_out = self._documents(X, y, valid)
        self.taxonomy_ = train.taxonomy
        self.history_ = []
        self._note_width(train)
        self._learn(train, held_out)
        self._choose(train, held_out)
        return self

    def _documents(self, X: Any, y: Any, valid: Any) -> tuple[Examples, Examples]:  # noqa: N803
        """The training and the validation documents, checked."""
        self.check()
        train = examples_of(X, y, self.taxonomy)
        check_taxonomy(train, self.taxonomy)
        return with_validation(train, valid, share=self.validation_share, seed=self.seed)

    def _choose(self, train: Examples, held_out: Examples) -> None:
        """Thresholds and the way from scores to probabilities, on validation documents; then how well it does there."""
        self._count(train)
        scores = self._scores(held_out)
        self.sigmoid_ = self._sigmoid(train, held_out, scores) if self.margins else None
        self.thresholds_ = self._thresholds(train, held_out, scores)
        found = self._chosen(scores)
        self.validation_: Report = report(
            held_out.labels, found, train.taxonomy, training=self.label_counts_, lca=False
        )
        if self._refits:
            everyone, history = pooled(train, held_out), list(self.history_)
            self._learn_anew(everyone, held_out)
            self._count(everyone)
            self.history_ = history

    def _learn_anew(self, examples: Examples, held_out: Examples) -> None:
        """Learn from training and validation documents together, as it was chosen that it learns.

        Thresholds, the way to probabilities, `history_` and `validation_` stay those of the learning before: no
        documents are left to judge by. Where `_learn` chooses something on validation documents, a subclass has its own
        way, which keeps what was chosen.
        """
        self._learn(examples, held_out)

    def _thresholds(self, train: Examples, held_out: Examples, scores: NDArray[Any]) -> NDArray[np.float64]:
        """(L,) the threshold that was given, or what is best on documents that were not learned from."""
        start = (0.0 if self.margins else 0.5) if self.threshold is None else float(self.threshold)
        if self._tuning is None:
            return np.full(len(train.taxonomy), start)
        if self._tuning == "scutfbr":
            return scutfbr(train.labels, self._cross_scores(train, held_out), FOLDS, self.seed)
        own = self._own(held_out, scores) if self._tuning == "scut" else scores
        return tuned(held_out.labels, own, self._tuning, self._repaired, start, self._seen)

    @property
    def _tuning(self) -> str | None:
        """What tunes the threshold: `tune`, or what stands behind its "auto"."""
        if self.tune != AUTO:
            return self.tune
        return self.tuned_for if self.threshold is None else None

    def _sigmoid(self, train: Examples, held_out: Examples, scores: NDArray[Any]) -> Sigmoid:
        """From margins to probabilities, by labels that have margins of their own.

        A label that no training document has, or all have, has a constant far beyond all margins, and so has one that
        follows from such labels alone (an inner label, where only leaves are learned).
        """
        ranked = self._ranked(scores)
        learned = (self.label_counts_ > 0) & (self.label_counts_ < len(train))
        learned &= ((ranked > NEVER) & (ranked < ALWAYS)).any(0)
        return Sigmoid.fitted(ranked[:, learned], held_out.labels[:, learned])

    def _count(self, learned: Examples) -> None:
        """Remember how many documents were learned from, and how many of each label."""
        self.label_counts_ = np.bincount(learned.labels.indices, minlength=len(learned.taxonomy))
        self.n_documents_ = len(learned)

    @property
    def _seen(self) -> NDArray[np.bool_]:
        """(L,) whether any document that was learned from has a label; one that none has is never given."""
        return np.asarray(self.label_counts_ > 0)

    @property
    def _refits(self) -> Any:
        """Whether it learns anew from validation documents too, after they have judged it."""
        return self.refit

    def _cross_scores(self, train: Examples, held_out: Examples) -> Callable[..., NDArray[Any]]:
        """(rows to learn from, rows to score) -> scores, by the same learner with the same settings."""

        def scores(learn: NDArray[np.int64], rate: NDArray[np.int64]) -> NDArray[Any]:
            other = clone(self).set_params(taxonomy=train.taxonomy, progress=False)  # judged as it is itself
            part = train.take(learn)
            other.taxonomy_, other.history_ = train.taxonomy, []
            other._learn(part, held_out)
            asked = train.take(rate)
            return np.asarray(other._own(asked, other._scores(asked)))

        return scores

    # -- predicting ---------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The labels of each document: a sparse indicator matrix, or with `output="labels"` lists of ids."""
        found = self._sets(self._read(X))
        return [list(labels) for labels in self.taxonomy_.decode(found)] if self.output == "labels" else found

    def predict_proba(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """(n, L) the probability of each label; of margins, by a sigmoid fitted on the validation documents."""
        return self._chances(self._scores(self._read(X)))

    def predict_labels(self, X: Any) -> list[Prediction]:  # noqa: N803
        """The labels of each document with their names and probabilities."""
        examples = self._read(X)
        return predictions(self.taxonomy_, examples.ids, *self.predict_both(examples))

    def predict_both(self, X: Any) -> tuple[sparse.csr_array, NDArray[np.float32]]:  # noqa: N803
        """(n, L) the predicted sets and (n, L) the probabilities, with every document scored once."""
        scores = self._scores(self._read(X))
        return self._chosen(scores), self._chances(scores)

    def explain(self, X: Any) -> Any:  # noqa: N803
        """Nothing: only a policy takes a walk that could be shown."""
        self._check_fitted()
        raise SettingError(f"explain needs a policy that walks; this is a model of kind {self.kind!r}")

    @property
    def classes_(self) -> NDArray[np.str_]:
        """(L,) the labels, in the order of the columns: scikit-learn's scorers look for them under this name."""
        if not hasattr(self, "taxonomy_"):
            raise AttributeError("classes_ is there after fit")
        return np.array(self.taxonomy_.labels, dtype=np.str_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
        """Example-based F1 (EBF)."""
        self._check_fitted()
        examples = examples_of(X, y, self.taxonomy_)
        check_taxonomy(examples, self.taxonomy_)
        found = self._sets(examples)
        if sample_weight is None:
            return float(example(examples.labels, found).f1)
        each = f1_from_counts(*document_counts(examples.labels, found))
        return float(np.average(each, weights=sample_weight))

    def with_decoding(self, **changes: Any) -> Self:
        """The same trained classifier with another `threshold` for all labels, or another `repair`.

        A threshold that is given takes the place of tuned ones: `tune` is None from then on.
        """
        self._check_fitted()
        known = [name for name in DECODINGS if name in self.get_params(deep=False)]
        for name in changes:
            if name not in known:
                near = did_you_mean(name, known)
                hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(known)}"
                raise SettingError(f"{name!r} is no setting that can change after training; {hint}")
        given = changes.get("threshold") is not None
        other = copy.copy(self)
        other.set_params(**changes, **({"tune": None} if given and self.tune != AUTO else {})).check()
        if given:
            other.thresholds_ = np.full(len(self.taxonomy_), float(changes["threshold"]))
        return other

    # -- saving -------------------------------------------------------------------------------------------------------

    def used(self) -> dict[str, Any]:
        """What it was trained with, by parameter: where one is None, what a preset or training put in its place.

        Of a stored model a preset is this version's; the model card has what was used when it was written.
        """
        self._check_fitted()
        given = {**self.get_params(deep=False), **self._plain_parameters()}
        instead = self._instead()
        found = {name: instead.get(name) if value is None else value for name, value in given.items()}
        return dict(plain({name: value for name, value in found.items() if name != "taxonomy"}, "parameters"))

    def _instead(self) -> dict[str, Any]:
        """What was taken for parameters that are None, as far as it is known; a subclass adds its own."""
        one = bool((self.thresholds_ == self.thresholds_[0]).all())
        return {"threshold": float(self.thresholds_[0])} if one else {}

    def save(self, folder: str | Path) -> None:
        """Write the classifier as a folder of JSON and safetensors; a model that is there is replaced."""
        self._check_fitted()
        parameters = {**self.get_params(deep=False), **self._plain_parameters()}
        parameters["taxonomy"] = None if self.taxonomy is None else True  # stored once, as what it was trained on
        parameters = plain(parameters, "parameters")
        tensors, facts = self._stored()
        training = {
            "documents": self.n_documents_,
            "label_counts": self.label_counts_.tolist(),
            "thresholds": self.thresholds_.tolist(),
            "sigmoid": None if self.sigmoid_ is None else [self.sigmoid_.slope, self.sigmoid_.intercept],
            "history": self.history_,
            "features": getattr(self, "n_features_in_", None),
        }
        save_folder(
            folder,
            kind=self.kind,
            settings={"parameters": parameters},
            taxonomy=self.taxonomy_.to_json(),
            tensors=tensors,
            extra={"training": training, "learned": facts, "validation": self.validation_.to_json(per_label=True)},
            card=card(
                f"A {self.kind} model",
                self.taxonomy_,
                documents=self.n_documents_,
                settings=self.used(),
                history=self.history_,
                validation=self.validation_,
                explain=None if hasattr(self, "n_features_in_") else "TEXT",  # there is no walk, but words
                refitted=bool(self._refits),
            ),
            beside=(*BROKEN, LOG),
        )

    def _plain_parameters(self) -> dict[str, Any]:
        """Parameters that are no plain values, as plain values; `from_stored` hands them to the constructor."""
        return {}

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A classifier that `save` wrote; everything it says is the same to the last bit."""
        return cls.from_stored(load_folder(folder, kinds=[cls.kind]))

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """The classifier in a model folder that is read already."""
        try:
            parameters = dict(stored.settings["parameters"])
            taxonomy = Taxonomy.from_json(stored.taxonomy)
            parameters["taxonomy"] = taxonomy if parameters.get("taxonomy") else None
            unknown = parameters.keys() - inspect.signature(cls).parameters.keys()
            if unknown:
                raise ModelError(f"{cls.kind} has no parameter {sorted(unknown)[0]!r}")
            made = cls(**cls._without_ignored(parameters)).check()
            made.taxonomy_ = taxonomy
            training = stored.extra["training"]
            made.n_documents_ = int(training["documents"])
            made.label_counts_ = _column(training["label_counts"], len(taxonomy), np.int64)
            made.thresholds_ = _column(training["thresholds"], len(taxonomy), np.float64)
            given = training["sigmoid"]
            made.sigmoid_ = None if given is None else Sigmoid(*map(float, given))
            made.history_ = [dict(record) for record in training["history"]]
            if training["features"] is not None:
                made.n_features_in_ = int(training["features"])
            made.validation_ = Report.from_json(stored.extra["validation"])
            made._open(stored.tensors, stored.extra["learned"])
        except KeyError as fault:
            raise ModelError(
                f"{stored.folder}: {fault.args[0]!r} is missing; the model is damaged, get it again"
            ) from None
        except (HilapError, ValueError, TypeError, AttributeError, RuntimeError, IndexError, OverflowError) as fault:
            reason = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
            raise ModelError(
                f"{stored.folder}: the parts of this model do not fit together ({reason}); {stored.remedy}"
            ) from None
        return made

    @classmethod
    def _without_ignored(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a stored model without those that earlier versions took and did not look at."""
        tuned = parameters.get("tune") not in (None, AUTO)
        return {**parameters, "threshold": None} if tuned and "threshold" in parameters else parameters

    # -- inside -------------------------------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not hasattr(self, "thresholds_"):
            raise NotTrainedError(f"this {type(self).__name__} is not trained yet; call fit first, or load a saved one")

    def _note_width(self, train: Examples) -> None:
        """`n_features_in_`, as scikit-learn wants it, where documents are features."""
        if train.features is not None:
            self.n_features_in_ = int(train.features.shape[1])
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_

    def _read(self, X: Any) -> Examples:  # noqa: N803
        self._check_fitted()
        return examples_of(X, None, self.taxonomy_)

    def _chances(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        """(n, L) probabilities from scores."""
        ranked = self._ranked(scores)
        chances = ranked if self.sigmoid_ is None else self.sigmoid_(ranked)
        return np.asarray(chances, dtype=np.float32)

    def _sets(self, examples: Examples) -> sparse.csr_array:
        """(n, L) the predicted sets, some documents at a time: sets are sparse, scores are not."""
        size = max(MOST_SCORES // len(self.taxonomy_), 1)
        if len(examples) <= size:
            return self._chosen(self._deciding(examples))
        starts = range(0, len(examples), size)
        parts = (examples.take(range(start, min(start + size, len(examples)))) for start in starts)
        return sparse.vstack([self._chosen(self._deciding(part)) for part in parts], format="csr")

    def _deciding(self, examples: Examples) -> NDArray[Any]:
        """(n, L) scores for sets alone: what is below every threshold need not be told apart."""
        return self._scores(examples)

    def _ranked(self, scores: NDArray[Any]) -> NDArray[Any]:
        """(n, L) what probabilities are made of: scores, unless a label's own does not say how good it is."""
        return scores

    def _own(self, examples: Examples, scores: NDArray[Any]) -> NDArray[Any]:
        """(n, L) what a threshold of a label's own is found on, from the scores of documents whose labels are known."""
        return scores

    def _chosen(self, scores: NDArray[Any]) -> sparse.csr_array:
        """(n, L) the predicted sets, int32."""
        return sparse.csr_array(self._repaired((scores > self.thresholds_) & self._seen).astype(np.int32))

    def _repaired(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sets, or scores, made consistent as asked; the scores above a threshold are the set repaired.

        By adding ancestors: a label has the highest score of itself and all below it. By dropping labels without all of
        theirs: it has the lowest score of itself and all above it.
        """
        if self.repair is None:
            return values
        return self._levels.highest(values) if self.repair == "add" else self._levels.lowest(values)

    @property
    def _levels(self) -> Levels:
        """The edges of the taxonomy level by level; kept, because on thousands of labels it takes milliseconds."""
        from hilap.levels import Levels

        known: tuple[Taxonomy, Levels] | None = self.__dict__.get("_known_levels")
        if known is None or known[0] is not self.taxonomy_:
            known = self._known_levels = (self.taxonomy_, Levels(self.taxonomy_))
        return known[1]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _column(values: Any, n_labels: int, dtype: Any) -> NDArray[Any]:
    column = np.asarray(values, dtype=dtype)
    if column.shape != (n_labels,):
        raise ModelError(f"a value for each of {n_labels} labels is needed, got shape {column.shape}")
    return column


__all__ = ["AUTO", "Baseline", "NotTrainedError"]
