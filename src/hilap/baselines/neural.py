"""What the neural baselines have in common: an encoder, a head, a course of training, a model folder.

A subclass says how its head is built; the head says its loss and its probabilities.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hilap.baselines.base import Baseline
from hilap.baselines.heads import Head, Network, Outputs, described, draw, made, restored
from hilap.baselines.judging import SELECTS, Judge
from hilap.baselines.learning import Course, Learning, fingerprint, seeded
from hilap.baselines.progress import counting
from hilap.baselines.values import check_choice, check_count, check_from_zero, check_positive
from hilap.corpus import Examples
from hilap.encoders import Encoder, Prepared, evaluating
from hilap.errors import HilapError, ModelError, SettingError, require
from hilap.products import ROWS
from hilap.storage import Stored, check_checkpoint
from hilap.storage.content import plain
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from typing_extensions import Self

BLOCK = 256  # documents scored at a time
SHARED: dict[str, Any] = {
    "epochs": 50,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "weight_decay": 1e-6,
    "clip": None,
    "patience": None,
    "select": "example_f1",
    "refit": False,
    "features": ("mlp", {}),
    "texts": ("tfidf", {}),
}
"""What a preset need not say. `features` and `texts` are the encoders of such documents, with their options; a preset
that is made for features alone has None for `texts`."""
_ABOUT_ANSWERS = ("taxonomy", "encoder", "encoder_options", "output", "progress")  # no part of a run's identity


class NeuralBaseline(Baseline):
    """An encoder with a head, trained by Adam; the epoch that is best on validation documents is kept.

    Parameters
    ----------
    taxonomy
        The labels.
    encoder, encoder_options
        The name of an encoder with its settings, or an encoder; `rows` are feature rows without any layer. None takes
        the preset's. To the settings of the preset's encoder, taken or named, the options are added.
    epochs, batch_size, learning_rate, weight_decay, clip, patience
        The course of training. None takes the preset's: see `PRESETS`, and `SHARED` for what a preset does not say.
        `patience` is after how many epochs without a better one training ends, `clip` the most that the norm of a
        gradient may be.
    select
        What chooses the epoch: one of `hilap.baselines.judging.SELECTS`, at the threshold the classifier will have.
    refit
        When epoch and thresholds are chosen, train anew, for as many epochs, on training and validation documents
        together. Thresholds stay as they were chosen. None takes the preset's.
    threshold, tune, repair
        The probability above which a label is given (None: 0.5), what tunes it, and what is done to inconsistent sets.
    validation_share, seed, output, progress
        As of every baseline.
    """

    resumable: ClassVar[bool] = True
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {"default": {}}
    preset: str = "default"

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        encoder: str | Encoder | None = None,
        encoder_options: Mapping[str, Any] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        clip: float | None = None,
        patience: int | None = None,
        select: str | None = None,
        refit: bool | None = None,
        threshold: float | None = None,
        tune: str | None = None,
        repair: str | None = None,
        validation_share: float = 0.1,
        seed: int = 0,
        output: str = "indicator",
        progress: bool = False,
    ) -> None:
        self.taxonomy = taxonomy
        self.encoder = encoder
        self.encoder_options = encoder_options
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip = clip
        self.patience = patience
        self.select = select
        self.refit = refit
        self.threshold = threshold
        self.tune = tune
        self.repair = repair
        self.validation_share = validation_share
        self.seed = seed
        self.output = output
        self.progress = progress

    # -- what a subclass says -----------------------------------------------------------------------------------------

    @abstractmethod
    def _head(self, dim: int, taxonomy: Taxonomy) -> Head:
        """A head on document vectors of this width; its weights are drawn, or loaded, afterwards."""

    def setting(self, name: str) -> Any:
        """The value of a parameter: its own, or the preset's where it is None.

        Examples
        --------
        >>> from hilap.baselines.flat import Flat
        >>> Flat(epochs=3).setting("epochs"), Flat(epochs=3).setting("batch_size")
        (3, 32)
        """
        own = getattr(self, name)
        found = self._preset_has(name) if own is None else own
        return found.item() if isinstance(found, np.generic) else found

    def _preset_has(self, name: str) -> Any:
        return {**SHARED, **self.PRESETS[self.preset]}[name]

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have."""
        super().check()
        check_choice("preset", self.preset, tuple(self.PRESETS))
        for name in ("epochs", "batch_size"):
            check_count(name, self.setting(name))
        check_positive("learning_rate", self.setting("learning_rate"))
        check_from_zero("weight_decay", self.setting("weight_decay"))
        if self.setting("clip") is not None:
            check_positive("clip", self.setting("clip"))
        if self.setting("patience") is not None:
            check_count("patience", self.setting("patience"))
        check_choice("select", self.setting("select"), SELECTS)
        self._check_encoder()
        return self

    def _check_encoder(self) -> None:
        options = self.encoder_options
        good = options is None or (isinstance(options, Mapping) and all(isinstance(name, str) for name in options))
        require(good, "encoder_options", "names with values", options)
        faults: list[SettingError] = []
        kinds = ("features", "texts") if self.encoder is None else ("texts",)  # which of them, documents decide later
        for kind in kinds:
            try:
                self._encoder(kind)
            except SettingError as fault:
                faults.append(fault)
        if len(faults) == len(kinds):
            raise faults[0]

    def _encoder(self, documents: str) -> Encoder:
        """The encoder for `features` or `texts`, not fitted: the preset's, unless another is asked for."""
        options = dict(self.encoder_options or {})
        found: tuple[str | None, dict[str, Any]] = self._preset_has(documents) or (None, {})
        name, usual = found
        if self.encoder is not None and self.encoder != name:
            return made(self.encoder, options)
        if name is None:
            raise self._for_features()
        return made(name, {**usual, **options})

    def _for_features(self) -> SettingError:
        return SettingError(
            f"preset={self.preset!r} of {self.kind} is made for features, but these documents are texts; take "
            "preset='default', and give beside it what you want of the other, such as epochs or learning_rate"
        )

    # -- learning -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,  # noqa: N803 - scikit-learn's name
        y: Any = None,
        *,
        valid: Any = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from documents and their labels.

        Parameters
        ----------
        X, y
            As in `HiLAPClassifier.fit`.
        valid
            Validation documents, as `(X, y)` or as `Examples`; they choose the epoch and thresholds. Without them a
            share of the training documents is held out. With `refit` they are learned from in the end, and
            `validation_` tells how well the model did on them before.
        checkpoint
            A file to write after every epoch. One that is there already is refused without `resume`.
        resume
            Go on from the checkpoint, if it is there; the result is that of a run that was never broken off.
        """
        train, held_out = self._documents(X, y, valid)
        check_checkpoint(None if checkpoint is None else Path(checkpoint), resume=resume)
        self.taxonomy_ = train.taxonomy
        self.history_ = []
        self._note_width(train)
        self._learn(train, held_out, checkpoint=checkpoint, resume=resume)
        self._choose(train, held_out)
        return self

    def _documents(self, X: Any, y: Any, valid: Any) -> tuple[Examples, Examples]:  # noqa: N803
        train, held_out = super()._documents(X, y, valid)
        if train.features is None and self._preset_has("texts") is None:
            raise self._for_features()
        return train, held_out

    @property
    def _refits(self) -> Any:
        return self.setting("refit")

    def _learn_anew(self, examples: Examples, held_out: Examples) -> None:
        """Train on all documents, for as many epochs as the best one on validation documents had behind it."""
        best = max(self.history_, key=lambda record: (record["select"], -record["validation_loss"]))
        course = replace(self._course(), epochs=best["epoch"], patience=None)
        network = self._network(examples)
        prepared = network.encoder.prepare(examples)
        rising = count()

        def loss(rows: NDArray[np.int64]) -> Tensor:
            return network.head.loss(network(prepared.batch(rows)), _dense(examples, rows))

        def judge() -> dict[str, float]:  # nothing is held out any more: the last epoch is the one to keep
            return {"select": next(rising), "validation_loss": 0.0}

        learning = Learning(network, course, phase=f"{self.kind} anew", documents=len(examples), loss=loss, judge=judge)
        with counting("epochs on all documents", course.epochs, shown=self.progress) as advance:
            learning.run(advance=advance)
        self.network_ = network.eval()

    def _learn(
        self, train: Examples, valid: Examples, *, checkpoint: str | Path | None = None, resume: bool = False
    ) -> None:
        network = self._network(train)
        prepared, held_out = (network.encoder.prepare(part) for part in (train, valid))

        def loss(rows: NDArray[np.int64]) -> Tensor:
            return network.head.loss(network(prepared.batch(rows)), _dense(train, rows))

        judge = self._judge(train, valid)

        def judged() -> dict[str, float]:
            return judge(*self._validated(network, held_out, valid))

        learning = Learning(
            network,
            self._course(),
            phase=self.kind,
            documents=len(train),
            loss=loss,
            judge=judged,
            checkpoint=None if checkpoint is None else Path(checkpoint),
            identity=self._identity(network, train, valid),
        )
        with counting("epochs", learning.course.epochs, shown=self.progress) as advance:
            self.history_ = learning.run(resume=resume, advance=advance)
        self.network_ = network.eval()

    def _network(self, train: Examples) -> Network:
        """Encoder and head with weights drawn from the seed."""
        generator = torch.Generator().manual_seed(seeded(int(self.seed), 0))
        with torch.random.fork_rng(devices=[]):  # layers draw when made; they are drawn again from the generator
            encoder = copy.deepcopy(self._encoder("texts" if train.features is None else "features"))
            encoder.fit(train, generator=generator)
            head = self._head(encoder.dim, train.taxonomy)
        draw(head, generator)
        head.begin(train)
        return Network(encoder, head)

    def _course(self) -> Course:
        names = ("epochs", "batch_size", "learning_rate", "weight_decay", "clip", "patience")
        return Course(**{name: self.setting(name) for name in names}, seed=int(self.seed))

    def _judge(self, train: Examples, valid: Examples) -> Judge:
        return Judge(
            gold=valid.labels,
            tune=self._tuning,
            select=self.setting("select"),
            start=0.5 if self.threshold is None else float(self.threshold),
            repair=self._repaired,
            seen=np.asarray(train.labels.sum(0)).ravel() > 0,
        )

    def _identity(self, network: Network, train: Examples, valid: Examples) -> dict[str, Any]:
        """What a checkpoint must agree with to be resumed."""
        course = {name: self.setting(name) for name in SHARED if hasattr(self, name)}
        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in _ABOUT_ANSWERS}
        return {
            "method": self.kind,
            "settings": {**settings, **course},
            "encoder": {"name": network.encoder.name, **network.encoder.settings()},
            "taxonomy": train.taxonomy.fingerprint,
            "training data": fingerprint(train),
            "validation data": fingerprint(valid),
        }

    # -- scoring ------------------------------------------------------------------------------------------------------

    def _scores(self, examples: Examples) -> NDArray[np.float32]:
        found = [np.zeros((0, len(self.taxonomy_)), dtype=np.float32)]
        with evaluating(self.network_) as network:
            for start in range(0, len(examples), BLOCK):
                part = examples.take(np.arange(start, min(start + BLOCK, len(examples))))
                for outputs, rows in _blocks(network, network.encoder.prepare(part), len(part)):
                    found.append(network.head.chances(outputs)[: len(rows)].numpy())
        return np.concatenate(found)

    def _validated(self, network: Network, prepared: Prepared, valid: Examples) -> tuple[NDArray[np.float32], float]:
        """(n, L) probabilities of the validation documents, and their loss."""
        found, total = [], 0.0
        with evaluating(network):
            for outputs, rows in _blocks(network, prepared, len(valid)):
                found.append(network.head.chances(outputs)[: len(rows)].numpy())
                total += float(network.head.loss(_first(outputs, len(rows)), _dense(valid, rows))) * len(rows)
        return np.concatenate(found), total / len(valid)

    # -- saving -------------------------------------------------------------------------------------------------------

    def used(self) -> dict[str, Any]:
        """What it was trained with, by parameter; of an encoder that was named, all its options."""
        found = super().used()
        if not isinstance(self.encoder, Encoder):
            found["encoder_options"] = plain(self.network_.encoder.settings(), "encoder_options")
        return found

    def _instead(self) -> dict[str, Any]:
        preset = {**SHARED, **self.PRESETS[self.preset]}
        return {**super()._instead(), **preset, "encoder": self.network_.encoder.name}

    def _plain_parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if isinstance(self.encoder, Encoder):
            found["encoder"] = {"name": self.encoder.name, "settings": self.encoder.settings()}
        if self.encoder_options is not None:  # what the encoder does not keep is about this machine, such as a cache
            kept = self.network_.encoder.settings()
            there = {name: value for name, value in self.encoder_options.items() if name in kept}
            found["encoder_options"] = plain(there, "encoder_options")
        return found

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """The classifier in a model folder that is read already."""
        parameters = stored.settings.get("parameters")
        encoder = parameters.get("encoder") if isinstance(parameters, dict) else None
        if isinstance(parameters, dict) and isinstance(encoder, dict):  # it was trained with an encoder, not a name
            try:
                ready = made(str(encoder["name"]), encoder["settings"])
            except (HilapError, KeyError, TypeError, ValueError) as fault:
                raise ModelError(f"{stored.folder}: its encoder cannot be made ({fault}); get it again") from None
            stored = replace(stored, settings={**stored.settings, "parameters": {**parameters, "encoder": ready}})
        return super().from_stored(stored)

    def _stored(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return dict(self.network_.state_dict()), {"encoder": described(self.network_.encoder)}

    def _open(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        with torch.random.fork_rng(devices=[]):
            encoder = restored(facts["encoder"])
            with torch.device("meta"):  # shapes without memory: the file must have them before any is taken
                wanted = self._head(encoder.dim, self.taxonomy_).state_dict()
            _check_fit({f"head.{name}": value for name, value in wanted.items()}, tensors)
            network = Network(encoder, self._head(encoder.dim, self.taxonomy_))
        _check_fit(network.state_dict(), tensors)
        network.load_state_dict(dict(tensors))
        self.network_ = network.eval()


def _dense(examples: Examples, rows: NDArray[np.int64]) -> Tensor:
    """(B, L) float gold sets of some documents."""
    return torch.from_numpy(examples.labels[rows].toarray().astype(np.float32))


def _blocks(network: Network, prepared: Prepared, n: int) -> Iterator[tuple[Outputs, NDArray[np.int64]]]:
    """What the network makes of blocks of documents, and which they are.

    A block is filled up with documents to a multiple of 8 rows: so a document's bits do not depend on its company.
    """
    for start in range(0, n, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n))
        yield network(prepared.batch(np.resize(rows, len(rows) + -len(rows) % ROWS))), rows


def _first(outputs: Outputs, n: int) -> Outputs:
    return tuple(part[:n] for part in outputs) if isinstance(outputs, tuple) else outputs[:n]


def _check_fit(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Require that a file has these tensors, of these shapes and types."""
    for name, value in wanted.items():
        if name not in given:
            raise ModelError(f"tensor {name!r} is missing")
        if given[name].shape != value.shape or given[name].dtype != value.dtype:
            raise ModelError(
                f"tensor {name!r} is {given[name].dtype} of shape {tuple(given[name].shape)}, "
                f"needed is {value.dtype} of shape {tuple(value.shape)}"
            )


__all__ = ["BLOCK", "SHARED", "NeuralBaseline"]
