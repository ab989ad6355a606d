"""The scikit-learn face of the method: `fit`, `predict`, `predict_proba`, `explain`, `score`, `save`, `load`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from hilap import decoding, saving
from hilap.card import phases
from hilap.chosen import BIASES, check_used, chosen_settings, options_of
from hilap.corpus import Examples
from hilap.encoders import Encoder, TfIdf, make
from hilap.encoders.base import checked_options
from hilap.errors import HilapError, ModelError, SettingError, did_you_mean
from hilap.inputs import check_streamed, check_taxonomy, examples_of, pooled, with_validation
from hilap.kernel_part import KernelPart
from hilap.label_text import check_encoder, label_rows
from hilap.metrics.counts import document_counts
from hilap.metrics.flat import example, f1_from_counts
from hilap.metrics.report import report
from hilap.network import Network, Seen, evaluating
from hilap.outputs import predictions
from hilap.policy import Documents
from hilap.prediction import Prediction, Step
from hilap.products import ROWS, sigmoid
from hilap.settings import CHOSEN, DecodeSettings, PolicySettings, TrainSettings
from hilap.storage import Stored, anew, check_checkpoint, load_folder
from hilap.taxonomy import Taxonomy
from hilap.training import Trainer, TrainingData, plan
from hilap.training.callbacks import Callback, ProgressBar
from hilap.training.phases import Run
from hilap.training.scoring import THRESHOLDS, best_threshold, score_sets
from hilap.wide import Wide, pretrained

if TYPE_CHECKING:
    from typing_extensions import Self

BLOCK = 256  # documents decoded at a time
Ready = tuple[Seen, Documents, int]
DEFAULT_ENCODERS = {"features": "mlp", "texts": "tfidf"}


class NotTrainedError(HilapError, NotFittedError):  # type: ignore[misc]
    """The classifier is asked for something before `fit`."""


class HiLAPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns where in a taxonomy documents belong.

    Every parameter that is None takes the value of the preset; `hilap.settings` says what each means. `"off"` switches
    off what a preset switches on, where a setting can be none at all: `tune`, `clip`, `patience`, `max_steps`, ...
    Settings of a phase that a variant leaves out (`gamma` for `variant="sl"`) lie idle, so that one set of them serves
    all variants.

    Parameters
    ----------
    taxonomy
        The labels.
    encoder
        The name of an encoder, or an encoder; None takes `mlp` for features and `tfidf` for texts, or, where there is a
        wide part (`preset="recommended"` on texts), that alone.
    encoder_options
        The encoder's own settings, if it is given by name. Without any the preset may have some
        (`hilap.settings.OPTIONS_FOR_DENSE_FEATURES`).
    preset
        `paper`, `original` (the published code's ingredients), or ours: `recommended`, and `residual`, which lacks what
        was added to that later (docs/decisions/0016).
    wide_options
        Settings of the TF-IDF rows of the wide part, as for the encoder `tfidf` (`max_words`, `bigrams`, ...).
    wide_vectors, wide_vector_options
        `static` or `transformer`: an encoder whose vectors, as they are before any training, stand beside the words in
        the wide part; and its settings.
    kernel_share, kernel_width, kernel_ridge
        Of documents with dense features: the share that a kernel part (kernel ridge regression on documents that are
        alike) has in flat probabilities, how far apart documents are alike, and how smooth it is.
    label_text
        What labels are called (their names, and those above them). True: words that a document shares with it speak for
        the label, in the wide part. `start`: the label embeddings of the policy and the label weights of the flat head
        start at what the encoder makes of it. `tied`: they stay tied to that while all of it learns. For labels with
        few training documents, or none; `start` and `tied` need an encoder that reads texts.
    output
        What `predict` returns: an `indicator` matrix, or `labels`.
    progress
        Whether to show a progress bar.
    refit
        When epochs and biases or thresholds are chosen, train anew, for as many epochs, on training and validation
        documents together. Biases and thresholds stay as they were chosen.
    """

    history_: list[dict[str, Any]]
    label_counts_: NDArray[np.int64]

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        encoder: str | Encoder | None = None,
        encoder_options: Mapping[str, Any] | None = None,
        preset: str = "paper",
        output: str = "indicator",
        progress: bool = False,
        hidden: int | None = None,
        width: int | None = None,
        dag_rule: str | None = None,
        label_bias: bool | None = None,
        residual: bool | None = None,
        lift: bool | None = None,
        sees: str | None = None,
        temperature: float | None = None,
        state_dropout: float | None = None,
        start_scale: float | None = None,
        averaging: str | None = None,
        max_constraint: bool | None = None,
        condense: bool | None = None,
        kernel_share: float | None = None,
        kernel_width: float | None = None,
        kernel_ridge: float | None = None,
        variant: str | None = None,
        flat_epochs: int | None = None,
        supervised_epochs: int | None = None,
        imitation_epochs: int | None = None,
        reinforced_epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        reinforced_learning_rate: float | None = None,
        weight_decay: float | None = None,
        schedule: str | None = None,
        clip: float | str | None = None,
        patience: int | str | None = None,
        flat_share: float | None = None,
        reinforced_flat_share: float | None = None,
        supervised_weight: float | None = None,
        gamma: float | None = None,
        rollouts: int | None = None,
        baseline: str | None = None,
        reward: Mapping[str, float] | str | None = None,
        reward_beta: float | None = None,
        reward_power: float | None = None,
        biased_walks: bool | None = None,
        entropy_bonus: float | None = None,
        standardise_returns: bool | None = None,
        stay: bool | None = None,
        folds: int | None = None,
        repeats: int | None = None,
        pool_validation: bool | None = None,
        refit: bool | None = None,
        wide: bool | None = None,
        wide_loss: str | None = None,
        wide_strength: float | None = None,
        wide_options: Mapping[str, Any] | None = None,
        wide_vectors: str | None = None,
        wide_vector_options: Mapping[str, Any] | None = None,
        label_text: bool | str | None = None,
        max_steps: int | str | None = None,
        select: str | None = None,
        validation_share: float | None = None,
        seed: int | None = None,
        threshold: float | None = None,
        tune: str | None = None,
        stop_bias: float | None = None,
        prior_bias: float | None = None,
        level_bias: float | None = None,
        count_bias: float | None = None,
        min_labels: int | None = None,
        max_labels: int | str | None = None,
        single_path: bool | None = None,
        must_reach_leaf: bool | None = None,
        probabilities: str | None = None,
        beam_width: int | None = None,
        samples: int | None = None,
    ) -> None:
        self.taxonomy = taxonomy
        self.encoder = encoder
        self.encoder_options = encoder_options
        self.preset = preset
        self.output = output
        self.progress = progress
        self.hidden = hidden
        self.width = width
        self.dag_rule = dag_rule
        self.label_bias = label_bias
        self.residual = residual
        self.lift = lift
        self.sees = sees
        self.temperature = temperature
        self.state_dropout = state_dropout
        self.start_scale = start_scale
        self.averaging = averaging
        self.max_constraint = max_constraint
        self.condense = condense
        self.kernel_share = kernel_share
        self.kernel_width = kernel_width
        self.kernel_ridge = kernel_ridge
        self.variant = variant
        self.flat_epochs = flat_epochs
        self.supervised_epochs = supervised_epochs
        self.imitation_epochs = imitation_epochs
        self.reinforced_epochs = reinforced_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.reinforced_learning_rate = reinforced_learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.clip = clip
        self.patience = patience
        self.flat_share = flat_share
        self.reinforced_flat_share = reinforced_flat_share
        self.supervised_weight = supervised_weight
        self.gamma = gamma
        self.rollouts = rollouts
        self.baseline = baseline
        self.reward = reward
        self.reward_beta = reward_beta
        self.reward_power = reward_power
        self.biased_walks = biased_walks
        self.entropy_bonus = entropy_bonus
        self.standardise_returns = standardise_returns
        self.stay = stay
        self.folds = folds
        self.repeats = repeats
        self.pool_validation = pool_validation
        self.refit = refit
        self.wide = wide
        self.wide_loss = wide_loss
        self.wide_strength = wide_strength
        self.wide_options = wide_options
        self.wide_vectors = wide_vectors
        self.wide_vector_options = wide_vector_options
        self.label_text = label_text
        self.max_steps = max_steps
        self.select = select
        self.validation_share = validation_share
        self.seed = seed
        self.threshold = threshold
        self.tune = tune
        self.stop_bias = stop_bias
        self.prior_bias = prior_bias
        self.level_bias = level_bias
        self.count_bias = count_bias
        self.min_labels = min_labels
        self.max_labels = max_labels
        self.single_path = single_path
        self.must_reach_leaf = must_reach_leaf
        self.probabilities = probabilities
        self.beam_width = beam_width
        self.samples = samples

    # -- learning ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,  # noqa: N803 - scikit-learn's name
        y: Any = None,
        *,
        valid: Any = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        callbacks: Sequence[Callback] = (),
        members: HiLAPClassifier | None = None,
    ) -> Self:
        """Learn from documents and their labels.

        Parameters
        ----------
        X
            Texts, a feature matrix (dense with NaN where a value is missing, or sparse), `Examples` or a `Corpus`. A
            corpus of texts that is too large for memory comes as `corpus.load(memory="500MB")`.
        y
            A collection of labels for each document, or an indicator matrix. None where X brings its labels.
        valid
            Validation documents, as `(X, y)` or as `Examples`; they choose the epoch and the stop bias. Without them
            a share of the training documents is held out. With `refit` they are learned from in the end, and
            `validation_` tells how well the model did on them before.
        checkpoint
            A file to write after every epoch; `refit` writes a second one, called `anew-` with its name. One that is
            there already is refused without `resume`.
        resume
            Go on from the checkpoint, if it is there; the result is that of a run that was never broken off.
        callbacks
            Listeners beside the progress bar.
        members
            A classifier trained on the same documents with the same seed, whose flat models are taken over instead of
            being trained anew; the result is that of training them, if `select`, `patience`, `clip` and `schedule` were
            the same. For trying other settings of what comes after.
        """
        try:
            return self._fit(X, y, valid, checkpoint, resume, callbacks, members)
        finally:
            for listener in callbacks:
                listener.close()

    def _fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        valid: Any,
        checkpoint: str | Path | None,
        resume: bool,
        callbacks: Sequence[Callback],
        members: HiLAPClassifier | None,
    ) -> Self:
        self.check()
        train = examples_of(X, y, self.taxonomy)
        check_taxonomy(train, self.taxonomy)
        policy, settings, decode = self._settings(text=train.features is None, dense=self._dense(train))
        check_streamed(train, policy, settings)
        train, held_out = with_validation(train, valid, share=settings.validation_share, seed=settings.seed)
        check_streamed(held_out, policy, settings)
        place = None if checkpoint is None else Path(checkpoint)
        if settings.refit:
            if members is not None:
                raise SettingError("refit trains flat models anew, and members spare that; give one of them")
            if place is not None:  # not when the first training has ended
                check_checkpoint(anew(place), resume=resume)
                if anew(place).exists() and not place.exists():
                    raise ModelError(
                        f"{anew(place)}: this is the second checkpoint of a run whose first, {place.name}, is gone; "
                        "remove it to train anew"
                    )
        walks = settings.variant == "hilap"
        fixed = None if walks or decode.tune is not None else decode.threshold
        run = self._learn(
            *(train, held_out, policy, settings),
            threshold=fixed,
            tune=decode.tune if walks else None,
            bias=_bias_of(decode),
            checkpoint=place,
            resume=resume,
            callbacks=callbacks,
            members=members,
        )
        self.decode_ = decode
        if decode.tune is not None:
            self.decode_ = self._tuned(held_out, decode, *run.tuning())
        found = self._sets(held_out, run.honest_valid)
        self.validation_ = report(held_out.labels, found, train.taxonomy, training=self.label_counts_, lca=False)
        if settings.refit:
            history, max_steps = self.history_, run.max_steps
            del run  # documents as the first encoder has prepared them
            self._learn(
                *(pooled(train, held_out), held_out, policy, settings.but(max_steps=max_steps)),
                threshold=self.decode_.threshold,
                tune=None,
                bias=_bias_of(self.decode_),
                checkpoint=None if place is None else anew(place),
                resume=resume,
                callbacks=callbacks,
                kept={phase["name"]: phase["best_epoch"] for phase in phases(history)},
            )
            self.history_, self.train_settings_ = history, settings
        return self

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have. `fit` does it too, before it reads anything."""
        if self.taxonomy is not None and not isinstance(self.taxonomy, Taxonomy):
            raise SettingError(
                f"taxonomy must be a hilap.Taxonomy, got {self.taxonomy!r}; read one with hilap.read_taxonomy"
            )
        options = self.encoder_options
        for name in ("encoder_options", "wide_options", "wide_vector_options"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, Mapping) and all(isinstance(k, str) for k in given)):
                raise SettingError(f"{name} must be names with values, got {given!r}")
        kinds = list(DEFAULT_ENCODERS.values()) if self.encoder is None else [self.encoder]  # documents decide later
        faults = []
        for kind in kinds:
            try:
                make(kind, **(options or {}))
            except SettingError as fault:
                faults.append(fault)
        if len(faults) == len(kinds):
            raise faults[-1]
        _, settings, _ = self._settings_of_some_documents()
        if settings.wide_vectors is not None:
            pretrained(settings.wide_vectors, self.wide_vector_options)
        if self.encoder is not None and not isinstance(settings.label_text, bool):
            check_encoder(make(self.encoder, **(options or {})), settings.label_text)
        return self

    def _learn(
        self,
        train: Examples,
        valid: Examples,
        policy: PolicySettings,
        settings: TrainSettings,
        *,
        threshold: float | None,
        tune: str | None,
        bias: decoding.StopBias,
        checkpoint: Path | None,
        resume: bool,
        callbacks: Sequence[Callback],
        members: HiLAPClassifier | None = None,
        kept: Mapping[str, int] | None = None,
    ) -> Run:
        """Train a network; `kept` has the best epoch of each phase, where all are learned anew up to there."""
        if members is not None and settings.wide and settings.wide_loss == CHOSEN:
            members._check_fitted()  # what they learned beside is what they have to stand beside again
            policy, settings = members._same_part(policy, settings)
        generator = torch.Generator().manual_seed(settings.seed)
        default = DEFAULT_ENCODERS["texts" if train.features is None else "features"]
        encoder = self.encoder or ("none" if settings.wide else default)
        made = make(encoder, **options_of(self.preset, encoder, self.encoder_options, dense=self._dense(train)))
        if not isinstance(settings.label_text, bool):
            check_encoder(made, settings.label_text)
        first = copy.deepcopy(made).fit(train, generator=generator)
        encoders = [first, *(first.sibling(train, generator=generator) for _ in range(settings.members - 1))]
        with torch.random.fork_rng(
            devices=[]
        ):  # layers draw weights when made; they are drawn again from the generator
            wide = self._wide(train, settings.wide_vectors) if settings.wide else None
            pool = len(train) + (len(valid) if settings.pool_validation else 0)
            kernel = KernelPart.scaled(train, pool) if policy.kernel_share else None
            network = Network(train.taxonomy, encoders, policy, generator, wide, kernel)
        if not isinstance(settings.label_text, bool):
            rows = label_rows(train.taxonomy, network.encoder, train.features)
            network.call_labels(rows, settings.label_text, generator)
        data, held_out = (TrainingData(part, network) for part in (train, valid))
        judged: dict[str, Any] = {"threshold": threshold, "tune": tune, "bias": bias, "kept": kept}
        run = plan(train.taxonomy, network, data, held_out, settings, **judged)
        if members is not None:
            members._lend(run, settings)
        bars = [ProgressBar()] if self.progress else []
        trainer = Trainer(
            settings,
            callbacks=[*callbacks, *bars],
            checkpoint=checkpoint,
            identity={
                "settings": _plain(
                    {
                        **policy.to_dict(),
                        **run.settings.to_dict(),
                        "condense": network.condensing is not None,
                        **judged,
                        "bias": asdict(bias),
                    }
                ),
                "encoder": _plain({"name": network.encoder.name, **network.encoder.settings()}),
                "wide part": None if wide is None else _plain(wide.described()),
                "taxonomy": train.taxonomy.fingerprint,
                "training documents": data.fingerprint,
                "validation documents": held_out.fingerprint,
            },
        )
        try:
            self.history_ = trainer.run(network, run.phases, resume=resume)
        finally:
            for bar in bars:
                bar.close()
        network.fold()
        self.network_, self.taxonomy_ = network, train.taxonomy
        self._note_width()
        self.policy_settings_ = policy.but(condense=network.condensing is not None)
        self.train_settings_ = run.settings.but(refit=kept is not None)
        self.label_counts_, self.n_documents_ = data.label_counts(), len(data)
        self.fingerprints_ = (data.fingerprint, held_out.fingerprint)
        self.max_steps_ = run.max_steps
        run.score_honestly()
        return run

    def _same_part(self, policy: PolicySettings, settings: TrainSettings) -> tuple[PolicySettings, TrainSettings]:
        """Settings of a run that borrows members, with the linear part that this classifier has, if it has one."""
        had = self.train_settings_
        if not had.wide:
            return policy, settings
        part = {"wide_loss": had.wide_loss, "wide_strength": had.wide_strength}
        return policy.but(condense=self.policy_settings_.condense), settings.but(**part)

    def _lend(self, run: Run, settings: TrainSettings) -> None:
        """Give the members of this classifier to a run, which then need not train them."""
        self._check_fitted()
        alike = (
            "flat_epochs",
            "folds",
            "repeats",
            "pool_validation",
            "batch_size",
            "learning_rate",
            "weight_decay",
            "refit",
        )
        # Beside a wide part members learn what is left, so it must be the same too.
        wide = ("wide", "wide_loss", "wide_strength", "wide_vectors") if settings.flat_epochs else ()
        asked = {name: getattr(settings, name) for name in (*alike, *wide, "label_text", "seed")}
        had = self.train_settings_.to_dict()
        for name, part in (("max_constraint", "constraint"), ("condense", "condensing")):
            if settings.flat_epochs:
                asked[name], had[name] = (getattr(one, part) is not None for one in (run.network, self.network_))
        for name, theirs in asked.items():
            ours = had[name]
            if ours != theirs:
                raise SettingError(
                    f"members were trained with {name} {ours!r}, but this run has {theirs!r}; let them agree"
                )
        if self.fingerprints_ != (run.train.fingerprint, run.valid.fingerprint) or self.taxonomy_ != run.taxonomy:
            raise SettingError("members were trained on other documents or labels; give the same")
        if settings.label_text == "tied" and settings.folds == 1:
            raise SettingError(
                "members tied to label texts go on learning with the policy unless folds is above 1; train them anew"
            )
        run.network.fold_members()  # theirs have no label texts any more
        try:
            for mine, theirs in zip(run.network.members, self.network_.members, strict=True):
                for part in ("encoder", "head"):
                    getattr(mine, part).load_state_dict(getattr(theirs, part).state_dict())
        except RuntimeError:
            raise SettingError("members have other encoders; give the same encoder and encoder_options") from None
        for phase in run.phases:
            if phase.name.startswith("flat"):
                phase.epochs = 0  # they keep their place: what comes after draws the same random numbers

    def _wide(self, train: Examples, vectors: str | None) -> Wide:
        terms = TfIdf(**checked_options(TfIdf, {**(self.wide_options or {}), "hidden": (1,)}))
        beside = None if vectors is None else pretrained(vectors, self.wide_vector_options)
        for part in (terms, beside):
            if part is not None:
                part.fit(train, generator=torch.Generator().manual_seed(0))
        return Wide(terms, len(train.taxonomy), beside)

    def _dense(self, examples: Examples) -> bool:
        """Whether documents are dense features, and what is to learn from them reads these."""
        if examples.features is None or sparse.issparse(examples.features) or self.wide:
            return False
        return "features" in self._reads()

    def _reads(self) -> tuple[str, ...]:
        """What the encoder needs of a document; of one that is not given, what documents may have."""
        if self.encoder is None or self.encoder == "none":
            return ("texts", "features")
        made = make(self.encoder, **(self.encoder_options or {})) if isinstance(self.encoder, str) else self.encoder
        return tuple(made.reads)

    def _settings_of_some_documents(self) -> tuple[PolicySettings, TrainSettings, DecodeSettings]:
        """The settings for texts, or if these cannot be had, for dense or sparse features: which, is known in `fit`."""
        kinds = [(True, False)] if "texts" in self._reads() else []
        features = [(False, True), (False, False)]  # dense ones, which who asks for a kernel part must have
        asks = any((self.kernel_share, self.kernel_width, self.kernel_ridge))
        faults = []
        for text, dense in [*features, *kinds] if asks else [*kinds, *features]:
            try:
                return self._settings(text=text, dense=dense)
            except SettingError as fault:
                faults.append(fault)
        raise faults[0]

    def _settings(self, *, text: bool, dense: bool = False) -> tuple[PolicySettings, TrainSettings, DecodeSettings]:
        if self.output not in ("indicator", "labels"):
            raise SettingError(f"output must be 'indicator' or 'labels', got {self.output!r}")
        return chosen_settings(self.get_params(deep=False), text=text, dense=dense)

    # -- predicting -------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The labels of each document: a sparse indicator matrix, or with `output="labels"` lists of ids."""
        found = self._sets(self._read(X))
        return [list(labels) for labels in self.taxonomy_.decode(found)] if self.output == "labels" else found

    def predict_proba(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """(n, L) the probability of each label. With walks a child is never above its parent."""
        return self._marginals(self._read(X))

    def predict_labels(self, X: Any) -> list[Prediction]:  # noqa: N803
        """The labels of each document with their names and probabilities."""
        examples = self._read(X)
        return predictions(self.taxonomy_, examples.ids, *self.predict_both(examples))

    def predict_both(self, X: Any) -> tuple[sparse.csr_array, NDArray[np.float32]]:  # noqa: N803
        """(n, L) the predicted sets and (n, L) the probabilities, with every document encoded once."""
        found, chances = [], []
        for seen, documents, n in self.documents(self._read(X)):
            found.append(self._placed(seen, documents)[:n])
            chances.append(self._chances(seen, documents, n))
        return _indicator(found, len(self.taxonomy_)), _stacked(chances, len(self.taxonomy_))

    def explain(self, X: Any) -> list[tuple[Step, ...]]:  # noqa: N803
        """The walk of each document: at every step, the probabilities of all open actions and the one taken."""
        self._check_walks("explain")
        walks: list[tuple[Step, ...]] = []
        for _, documents, n in self.documents(self._read(X)):
            for doc in range(n):
                steps = decoding.explain(
                    self.network_.policy,
                    documents,
                    doc,
                    max_steps=self.max_steps_,
                    constraints=self.constraints(self.decode_),
                )
                walks.append(tuple(self._named(step) for step in steps))
        return walks

    @property
    def classes_(self) -> NDArray[np.str_]:
        """(L,) the labels, in the order of the columns: scikit-learn's scorers look for them under this name."""
        if not hasattr(self, "taxonomy_"):
            raise AttributeError("classes_ is there after fit")
        return np.array(self.taxonomy_.labels, dtype=np.str_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
        """Example-based F1 (EBF): the measure the policy is rewarded by."""
        self._check_fitted()
        examples = examples_of(X, y, self.taxonomy_)
        check_taxonomy(examples, self.taxonomy_)
        found = self._sets(examples)
        if sample_weight is None:
            return float(example(examples.labels, found).f1)
        each = f1_from_counts(*document_counts(examples.labels, found))
        return float(np.average(each, weights=sample_weight))

    def with_decoding(self, **changes: Any) -> Self:
        """The same trained classifier, but labels are read off with some of `DecodeSettings` changed.

        Parameters
        ----------
        changes
            Such as `stop_bias=1.0` or `single_path=True`; for variants `flat` and `sl`, `threshold`.
        """
        self._check_fitted()
        known = [field.name for field in fields(DecodeSettings) if field.name != "tune"]
        for name in changes:
            if name not in known:
                near = did_you_mean(name, known)
                hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(known)}"
                raise SettingError(f"{name!r} is no setting that can change after training; {hint}")
        decode = self.decode_.but(**changes)
        check_used(self.train_settings_.variant, self.policy_settings_, decode, changes)
        other = copy.copy(self)
        other.decode_ = decode
        return other

    # -- saving -----------------------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the classifier as a folder of JSON and safetensors; a model that is there is replaced."""
        self._check_fitted()
        parameters = {name: value for name, value in self.get_params(deep=False).items() if value is not None}
        if isinstance(self.encoder, Encoder):
            parameters["encoder"] = {"name": self.encoder.name, "settings": self.encoder.settings()}
        wide = self.network_.wide
        beside = None if wide is None else wide.vectors
        for name, encoder in (("encoder_options", self.network_.encoder), ("wide_vector_options", beside)):
            if encoder is not None and name in parameters:  # what it does not keep is about this machine, as a cache
                kept = encoder.settings()
                parameters[name] = {k: v for k, v in parameters[name].items() if k in kept}
        if self.taxonomy is not None:
            parameters["taxonomy"] = True  # it is stored once, as what the classifier was trained on
        trained = saving.Trained(
            taxonomy=self.taxonomy_,
            network=self.network_,
            policy=self.policy_settings_,
            train=self.train_settings_,
            decode=self.decode_,
            label_counts=self.label_counts_,
            n_documents=self.n_documents_,
            fingerprints=self.fingerprints_,
            max_steps=self.max_steps_,
            history=self.history_,
            validation=self.validation_,
        )
        saving.save(folder, parameters, trained)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A classifier that `save` wrote; everything it says is the same to the last bit."""
        return cls.from_stored(load_folder(folder, kinds=[saving.KIND]))

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """The classifier in a model folder that is read already."""
        parameters, trained = saving.restored(stored)
        if "taxonomy" in parameters:
            parameters["taxonomy"] = trained.taxonomy
        encoder = parameters.get("encoder")
        try:
            if isinstance(encoder, dict):
                parameters["encoder"] = make(encoder["name"], **encoder["settings"])
            classifier = cls(**parameters)
        except (TypeError, KeyError, SettingError) as fault:
            raise ModelError(f"{stored.folder}: the model's parameters are not ours ({fault}); update hilap") from None
        classifier.taxonomy_, classifier.network_ = trained.taxonomy, trained.network
        classifier._note_width()
        classifier.policy_settings_, classifier.train_settings_ = trained.policy, trained.train
        classifier.decode_, classifier.max_steps_ = trained.decode, trained.max_steps
        classifier.label_counts_, classifier.n_documents_ = trained.label_counts, trained.n_documents
        classifier.history_, classifier.validation_ = trained.history, trained.validation
        classifier.fingerprints_ = trained.fingerprints
        return classifier

    # -- inside -----------------------------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise NotTrainedError("this HiLAPClassifier is not trained yet; call fit first, or load a saved one")

    def _note_width(self) -> None:
        """`n_features_in_`, as scikit-learn wants it, where documents are features."""
        width = self.network_.encoder.learned().get("features")
        if width is not None:
            self.n_features_in_ = width
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_

    def _check_walks(self, what: str) -> None:
        self._check_fitted()
        if self.train_settings_.variant != "hilap":
            raise SettingError(f"{what} needs a policy that walks; this is variant {self.train_settings_.variant!r}")

    def _read(self, X: Any) -> Examples:  # noqa: N803
        self._check_fitted()
        return examples_of(X, None, self.taxonomy_)

    def documents(
        self, examples: Examples, honest: torch.Tensor | None = None, ready: Iterable[Ready] | None = None
    ) -> Iterator[Ready]:
        """Blocks of documents as the network sees them, ready for walking, and how many of the rows are real.

        `honest` (n, L) are flat logits to take instead of the network's of `examples`, where it has learned from the
        documents. `ready` are the blocks without a bias, where they are known already.
        """
        self._check_fitted()
        bias = self._bias(self.decode_)
        with evaluating(self.network_) as network:
            for seen, halves, n in self._ready(examples, honest) if ready is None else ready:
                yield seen, network.biased(halves, seen, bias), n

    def _ready(self, examples: Examples, honest: torch.Tensor | None) -> Iterator[Ready]:
        """The same blocks without a bias; in evaluation mode, which the caller sees to."""
        network = self.network_
        n = len(examples) if honest is None else len(honest)
        for start in range(0, n, BLOCK):
            rows = np.arange(start, min(start + BLOCK, n))
            filled = np.resize(np.arange(len(rows)), len(rows) + -len(rows) % ROWS)
            if honest is None:
                seen = network.see(network.prepare(examples.take(rows)).batch(filled))
            else:
                whole = len(filled) == len(rows)  # then no copy is made
                seen = Seen(None, honest[start : start + BLOCK] if whole else honest[rows[filled]])
            yield seen, network.halves(seen), len(rows)

    def _kept(self, examples: Examples, honest: torch.Tensor | None) -> list[Ready] | None:
        """Blocks to try several biases or thresholds on; None where they would be too many to keep."""
        if not self.network_.keeps(len(examples) if honest is None else len(honest)):
            return None
        with evaluating(self.network_) as network:
            ready = self._ready(examples, honest)
            return [(network.trimmed(seen), halves, n) for seen, halves, n in ready]

    def _sets(
        self, examples: Examples, honest: torch.Tensor | None = None, ready: Iterable[Ready] | None = None
    ) -> sparse.csr_array:
        """(n, L) the predicted sets."""
        blocks = (self._placed(seen, documents)[:n] for seen, documents, n in self.documents(examples, honest, ready))
        return _indicator(blocks, len(self.taxonomy_))

    def _placed(self, seen: Any, documents: Any) -> torch.Tensor:
        variant, decode = self.train_settings_.variant, self.decode_
        if variant == "flat":
            return sigmoid(seen.flat) > decode.threshold
        if variant == "sl":
            policy = self.network_.policy
            return policy.top_down(documents, threshold=decode.threshold, scores=decoding.steady_scores(policy))
        return decoding.decode(
            self.network_.policy, documents, max_steps=self.max_steps_, constraints=self.constraints(decode)
        ).placed

    def _chances(self, seen: Seen, documents: Documents, n: int) -> NDArray[np.float32]:
        """(n, L) the probabilities of the first n documents of a block."""
        decode, variant, policy = self.decode_, self.train_settings_.variant, self.network_.policy
        if variant == "flat":
            found = sigmoid(seen.flat)[:n]
        elif variant == "sl":
            found = policy.local_marginals(documents, scores=decoding.steady_scores(policy))[:n]
        elif decode.probabilities == "flat":
            found = torch.from_numpy(self.network_.capping(sigmoid(seen.flat[:n]).numpy()))
        else:
            found = decoding.marginals(
                policy,
                documents,
                method=decode.probabilities,
                width=decode.beam_width,
                samples=decode.samples,
                max_steps=self.max_steps_,
                generator=torch.Generator().manual_seed(self.train_settings_.seed),  # the same in every batch
                constraints=self.constraints(decode),
            )[:n].float()
        return found.numpy()

    def _marginals(self, examples: Examples, honest: torch.Tensor | None = None) -> NDArray[np.float32]:
        blocks = [self._chances(seen, documents, n) for seen, documents, n in self.documents(examples, honest)]
        return _stacked(blocks, len(self.taxonomy_))

    def _bias(self, decode: DecodeSettings) -> torch.Tensor | None:
        bias = _bias_of(decode)
        if self.train_settings_.variant != "hilap" or bias == decoding.StopBias():
            return None
        return bias.vector(self.taxonomy_, self.label_counts_, self.n_documents_, self.network_.shortfall.numpy())

    @staticmethod
    def constraints(decode: DecodeSettings) -> decoding.Constraints | None:
        """What every walk has to keep to; None where nothing is asked."""
        given = decoding.Constraints(
            min_labels=decode.min_labels,
            max_labels=decode.max_labels,
            single_path=decode.single_path,
            must_reach_leaf=decode.must_reach_leaf,
        )
        return None if given == decoding.Constraints() else given

    def _tuned(
        self, valid: Examples, decode: DecodeSettings, labels: sparse.csr_array, honest: torch.Tensor | None
    ) -> DecodeSettings:
        """Thresholds or stop bias that are best on the validation documents, or those with these labels and logits."""
        metric = decode.tune or "example_f1"
        if self.train_settings_.variant == "flat":
            return decode.but(threshold=best_threshold(labels, self._marginals(valid, honest), metric)[0])
        if self.train_settings_.variant == "sl":
            scores, kept = {}, self._kept(valid, honest)
            for threshold in THRESHOLDS:
                self.decode_ = decode.but(threshold=threshold)
                scores[threshold] = score_sets(labels, self._sets(valid, honest, kept), metric)["select"]
            return decode.but(threshold=max(scores, key=scores.__getitem__))

        def biased(bias: decoding.StopBias) -> DecodeSettings:
            values = (bias.constant, bias.prior, bias.level, bias.count)
            return decode.but(**dict(zip(BIASES, values, strict=True)))

        kept = self._kept(valid, honest)

        def sets(bias: decoding.StopBias) -> sparse.csr_array:
            self.decode_ = biased(bias)
            return self._sets(valid, honest, kept)

        without = () if self.policy_settings_.residual else ("count",)
        grids = {part: values for part, values in decoding.COARSE.items() if part not in without}
        return biased(decoding.tune_stop_bias(sets, labels, metric=metric, grids=grids, start=self._rough_bias()).bias)

    def _rough_bias(self) -> decoding.StopBias:
        """The stop bias with which the epoch that was kept won."""
        judged = [record for record in self.history_ if "stop_bias" in record and "select" in record]
        last = [record for record in judged if record["phase"] == judged[-1]["phase"]]
        if not last:
            return decoding.StopBias()
        kept = max(last, key=lambda record: record["select"])
        return decoding.StopBias(constant=kept["stop_bias"], prior=kept["prior_bias"], count=kept["count_bias"])

    def _named(self, decision: decoding.Decision) -> Step:
        name = [*self.taxonomy_.labels, "stop"]
        at = "root" if decision.at == len(self.taxonomy_) else name[decision.at]
        chances = dict(zip(decision.actions.tolist(), decision.probabilities.tolist(), strict=True))
        options = tuple((name[action], chance) for action, chance in chances.items())
        return Step(at, name[decision.action], chances[decision.action], options)


def _indicator(blocks: Iterable[torch.Tensor], n_labels: int) -> sparse.csr_array:
    """(n, L) the sets of all blocks; never all of them as one dense matrix, which may be larger than memory."""
    rows = [sparse.csr_array(block.numpy().astype(np.int32)) for block in blocks]
    return sparse.vstack(rows, format="csr") if rows else sparse.csr_array((0, n_labels), dtype=np.int32)


def _stacked(blocks: Sequence[NDArray[np.float32]], n_labels: int) -> NDArray[np.float32]:
    return np.concatenate(blocks) if blocks else np.zeros((0, n_labels), dtype=np.float32)


def _bias_of(decode: DecodeSettings) -> decoding.StopBias:
    return decoding.StopBias(
        constant=decode.stop_bias, prior=decode.prior_bias, level=decode.level_bias, count=decode.count_bias
    )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON gives it back: tuples as lists."""
    return {k: list(v) if isinstance(v, tuple) else dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}
