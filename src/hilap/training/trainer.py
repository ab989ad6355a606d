"""The trainer: runs phases of epochs, keeps the best weights of each, writes checkpoints, resumes.

It knows nothing of labels or walks. Everything random in an epoch is seeded by (seed, phase, epoch), so a run that was
killed and resumed from the end of its last epoch ends at the same weights as an unbroken one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hilap.adam import Adam, clip, gradients_by_rows
from hilap.errors import ModelError
from hilap.settings import TrainSettings
from hilap.storage import check_checkpoint, read_checkpoint, write_checkpoint
from hilap.training.callbacks import Callback

MOST_SHOWN, MOST_LETTERS = 3, 60  # differing settings named in a message, and letters of a value there


@dataclass
class Phase:
    """One stretch of training: which weights learn from which documents by which loss, and how they are judged."""

    name: str
    epochs: int
    learning_rate: float
    parameters: list[nn.Parameter]
    rows: NDArray[np.int64]
    loss: Callable[[NDArray[np.int64], torch.Generator, int], tuple[Tensor, dict[str, float]]]
    """Documents' rows, a generator, the number of updates so far -> the loss of this batch, and figures to report."""
    validate: Callable[[], dict[str, float]] | None
    """Scores on the validation documents; the one called `select` chooses the epoch. None: the last one is kept."""
    begin: Callable[[torch.Generator], None] = lambda generator: None
    """Before the first epoch, once: may change weights."""
    setup: Callable[[], None] = lambda: None
    """Before the first epoch, and again when a run is resumed: must not change weights."""
    keep_start: bool = False
    """Whether the weights at the start may turn out to be the best."""
    shares: Mapping[nn.Parameter, float] = field(default_factory=dict)
    """Parameters that learn with a share of the learning rate only, such as a pretrained encoder's."""
    last: int | None = None
    """The epoch it ends after, of those that the schedule of the learning rate is for; None: after all of them."""

    @property
    def length(self) -> int:
        """How many epochs are run, unless patience ends it."""
        return self.epochs if self.last is None else min(self.last, self.epochs)

    def groups(self) -> list[dict[str, Any]]:
        """The parameters by the share of the learning rate they learn with, for an optimizer."""
        by_share: dict[float, list[nn.Parameter]] = {}
        for parameter in self.parameters:
            by_share.setdefault(self.shares.get(parameter, 1.0), []).append(parameter)
        return [{"params": some, "share": share} for share, some in by_share.items()]


@dataclass
class Progress:
    """How far a run is: what a checkpoint holds besides tensors."""

    phase: int = 0
    epochs_done: int = 0
    best_score: float | None = None
    best_epoch: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)


class Trainer:
    """Runs phases.

    Parameters
    ----------
    settings
        Batch size, schedule, patience, clipping, seed.
    callbacks
        Told of everything that happens.
    checkpoint
        The file to write after every epoch; None writes none.
    identity
        What a checkpoint must agree with to be resumed, such as settings and a hash of the data.
    """

    def __init__(
        self,
        settings: TrainSettings,
        *,
        callbacks: Sequence[Callback] = (),
        checkpoint: Path | None = None,
        identity: dict[str, Any] | None = None,
    ) -> None:
        self.settings = settings
        self.callbacks = list(callbacks)
        self.checkpoint = checkpoint
        self.identity = identity or {}

    def run(self, network: nn.Module, phases: Sequence[Phase], *, resume: bool = False) -> list[dict[str, Any]]:
        """Train; the network ends with the best weights of the last phase. Returns one record an epoch."""
        check_checkpoint(self.checkpoint, resume=resume)
        progress = Progress()
        best: dict[str, Tensor] = {}
        moments: dict[str, Tensor] | None = None
        if resume and self.checkpoint is not None and self.checkpoint.exists():
            progress, best, moments = self._resume(self.checkpoint, network)
            for callback in self.callbacks:
                callback.on_resume(progress.history)
        for number in range(progress.phase, len(phases)):
            phase = phases[number]
            if progress.phase != number:
                progress = Progress(phase=number, history=progress.history)
                best, moments = {}, None
            best = self._run_phase(network, phase, progress, best, moments)
            moments = None
            network.load_state_dict(best)
        for callback in self.callbacks:
            callback.on_end(progress.history)
        return progress.history

    def _run_phase(
        self, network: nn.Module, phase: Phase, progress: Progress, best: dict[str, Tensor], moments: Any
    ) -> dict[str, Tensor]:
        if progress.epochs_done == 0:
            phase.begin(torch.Generator().manual_seed(self._seed(progress.phase, -1)))
        phase.setup()
        for callback in self.callbacks:
            callback.on_phase(phase.name, phase.length, len(phase.rows), progress.epochs_done)
        if progress.epochs_done == 0:
            best = _copy(network)
            if phase.keep_start and phase.validate is not None:
                scores = phase.validate()
                progress.best_score = scores["select"]
                progress.history.append({"phase": phase.name, "epoch": 0, **scores})
                for callback in self.callbacks:
                    callback.on_epoch(progress.history[-1])
        optimizer = Adam(phase.groups(), lr=phase.learning_rate, weight_decay=self.settings.weight_decay)
        if moments is not None:
            _load_optimizer(optimizer, moments)
        while progress.epochs_done < phase.length and not self._patience_is_out(progress):
            record = self._epoch(phase, progress, optimizer)
            scores = {} if phase.validate is None else phase.validate()
            progress.epochs_done += 1
            score = scores.get("select")
            if score is None or progress.best_score is None or score > progress.best_score:
                progress.best_score, progress.best_epoch = score, progress.epochs_done
                best = _copy(network)
            record |= scores
            progress.history.append(record)
            self._write(network, progress, best, optimizer)
            for callback in self.callbacks:
                callback.on_epoch(record)
        return best

    def _epoch(self, phase: Phase, progress: Progress, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        seed = self._seed(progress.phase, progress.epochs_done)
        generator = torch.Generator().manual_seed(seed)
        order = phase.rows[torch.randperm(len(phase.rows), generator=generator).numpy()]
        batches = np.array_split(order, max(1, math.ceil(len(order) / self.settings.batch_size)))
        totals: dict[str, float] = {}
        began = time.perf_counter()
        with torch.random.fork_rng(devices=[]), gradients_by_rows():
            torch.manual_seed(seed)  # dropout draws from the global generator; it is put back afterwards
            for number, rows in enumerate(batches):
                factor = _schedule(
                    self.settings.schedule, (progress.epochs_done + number / len(batches)) / phase.epochs
                )
                for group in optimizer.param_groups:
                    group["lr"] = phase.learning_rate * factor * group["share"]
                loss, figures = phase.loss(rows, generator, progress.epochs_done * len(batches) + number)
                optimizer.zero_grad(set_to_none=True)
                if loss.requires_grad:
                    loss.backward()  # type: ignore[no-untyped-call]
                    if self.settings.clip is not None:
                        clip(phase.parameters, self.settings.clip)
                    optimizer.step()
                for name, value in {"loss": loss.item(), **figures}.items():
                    totals[name] = totals.get(name, 0.0) + value * len(rows)
                for callback in self.callbacks:
                    callback.on_batch(len(rows), loss.item())
        seconds = time.perf_counter() - began
        means = {name: total / len(order) for name, total in totals.items()}
        return {"phase": phase.name, "epoch": progress.epochs_done + 1, **means, "seconds": seconds}

    def _patience_is_out(self, progress: Progress) -> bool:
        patience = self.settings.patience
        return patience is not None and progress.epochs_done - progress.best_epoch >= patience

    def _seed(self, phase: int, epoch: int) -> int:
        return int(np.random.SeedSequence([self.settings.seed, phase, epoch + 1]).generate_state(1)[0])

    # -- checkpoints ------------------------------------------------------------------------------------------------

    def _write(
        self, network: nn.Module, progress: Progress, best: dict[str, Tensor], optimizer: torch.optim.Optimizer
    ) -> None:
        if self.checkpoint is None:
            return
        tensors = {f"weights/{name}": value for name, value in network.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in best.items()}
        for number, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{number}/{key}": value for key, value in state.items()}
        write_checkpoint(self.checkpoint, tensors, {"progress": vars(progress), "identity": self.identity})

    def _resume(self, checkpoint: Path, network: nn.Module) -> tuple[Progress, dict[str, Tensor], dict[str, Tensor]]:
        tensors, state = read_checkpoint(checkpoint)
        foreign = ModelError(f"{checkpoint}: this is no checkpoint of such a run; train anew")
        written = state.get("identity")
        if not isinstance(written, dict):
            raise foreign
        for name, value in self.identity.items():
            if written.get(name) != value:
                what = _difference(name, written.get(name), value)
                raise ModelError(f"{checkpoint}: it was written with {what}; resume with the same, or train anew")
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "best": {}, "optimizer": {}}
        try:
            for name, value in tensors.items():
                kind, _, rest = name.partition("/")
                parts[kind][rest] = value
            network.load_state_dict(parts["weights"])
            return Progress(**state["progress"]), parts["best"], parts["optimizer"]
        except (KeyError, TypeError, RuntimeError):
            raise foreign from None


def _difference(name: str, written: Any, given: Any) -> str:
    """What a checkpoint was written with, where it is not what is given."""
    what = f"other {name}" if name.endswith("s") else f"another {name}"
    if not isinstance(written, dict) or not isinstance(given, dict):  # hashes, which tell a reader nothing
        return what
    old, new = ({key: _brief(value) for key, value in values.items()} for values in (written, given))
    differ = [key for key in {**new, **old} if key not in old or key not in new or written[key] != given[key]]
    pairs = [f"{key} {old.get(key, 'unset')} instead of {new.get(key, 'unset')}" for key in differ[:MOST_SHOWN]]
    if len(differ) > MOST_SHOWN:
        pairs.append(f"{len(differ) - MOST_SHOWN} more")
    return f"{what} ({', '.join(pairs)})"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _load_optimizer(optimizer: torch.optim.Optimizer, moments: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in moments.items():
        number, _, key = name.partition("/")
        state.setdefault(int(number), {})[key] = value
    whole = optimizer.state_dict()
    whole["state"] = state
    optimizer.load_state_dict(whole)


def _schedule(kind: str, progress: float) -> float:
    """The share of the learning rate after this share of a phase."""
    if kind == "linear":
        return 1 - progress
    if kind == "cosine":
        return 0.5 * (1 + math.cos(math.pi * progress))
    return 1.0
