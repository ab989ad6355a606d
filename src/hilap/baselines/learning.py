"""The training loop of the neural baselines: epochs of shuffled batches, the best epoch kept, checkpoints, resuming.

Everything random in an epoch is seeded by (seed, epoch), so that a run that was broken off and goes on from its last
epoch ends at the same weights as an unbroken one.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from hilap.adam import Adam, clip, gradients_by_rows
from hilap.corpus import Examples
from hilap.encoders import parameter_rates
from hilap.errors import ModelError
from hilap.storage import read_checkpoint, write_checkpoint
from hilap.storage.content import plain

MOMENTS = {"step", "exp_avg", "exp_avg_sq"}  # what Adam remembers of a weight


@dataclass(frozen=True)
class Course:
    """How long and how fast it is learned."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    clip: float | None  # the most that the norm of a gradient may be
    patience: int | None  # epochs without a better one before training ends
    seed: int


@dataclass
class Standing:
    """How far a run is: what a checkpoint holds beside tensors."""

    epochs_done: int = 0
    best_score: float | None = None
    best_epoch: int = 0  # the first with that score: patience counts from here
    kept_loss: float = math.inf  # of the epoch whose weights are kept: of equals, the one that is surest
    history: list[dict[str, Any]] = field(default_factory=list)

    def takes(self, score: float, loss: float) -> bool:
        """Whether the weights of the epoch that has just ended are the best so far; if so, they are noted as such.

        With few validation documents an F1 is soon as high as it can be, long before the network has learned: among
        epochs of one score, the one with the lowest loss is kept.
        """
        better = self.best_score is None or score > self.best_score
        if better:
            self.best_score, self.best_epoch = score, self.epochs_done
        elif score != self.best_score or not loss < self.kept_loss:
            return False
        self.kept_loss = loss
        return True


@dataclass
class Learning:
    """A network on its course.

    Parameters
    ----------
    network
        What learns.
    course
        How.
    phase
        The name of the phase in the history.
    documents
        How many there are to learn from.
    loss
        Rows of documents -> the loss of this batch.
    judge
        Scores of the network as it is: `select` chooses the epoch, the higher the better; of equals, the lower
        `validation_loss`.
    checkpoint
        The file to write after every epoch; None writes none.
    identity
        What a checkpoint must agree with to be resumed.
    """

    network: nn.Module
    course: Course
    phase: str
    documents: int
    loss: Callable[[NDArray[np.int64]], Tensor]
    judge: Callable[[], dict[str, float]]
    checkpoint: Path | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)

    def run(self, *, resume: bool = False, advance: Callable[[], None] = lambda: None) -> list[dict[str, Any]]:
        """Train; the network ends with the weights of its best epoch. Returns one record an epoch.

        Parameters
        ----------
        resume
            Go on from the checkpoint, if there is one.
        advance
            Called after each epoch, also for those that a checkpoint has behind it.
        """
        optimizer = self._optimizer()
        standing, best = Standing(), _copy(self.network)
        if resume and self.checkpoint is not None and self.checkpoint.exists():
            standing, best = self._resumed(optimizer)
        for _ in range(standing.epochs_done):
            advance()
        while standing.epochs_done < self.course.epochs and not self._patience_is_out(standing):
            record = self._epoch(standing.epochs_done, optimizer)
            scores = self.judge()
            standing.epochs_done += 1
            if standing.takes(scores["select"], scores["validation_loss"]):
                best = _copy(self.network)
            standing.history.append(record | scores)
            self._write(standing, best, optimizer)
            advance()
        self.network.load_state_dict(best)
        return standing.history

    def _optimizer(self) -> torch.optim.Optimizer:
        shares = parameter_rates(self.network)
        by_share: dict[float, list[nn.Parameter]] = {}
        for parameter in self.network.parameters():
            if parameter.requires_grad:
                by_share.setdefault(shares.get(parameter, 1.0), []).append(parameter)
        groups = [{"params": some, "lr": self.course.learning_rate * share} for share, some in by_share.items()]
        return Adam(groups, weight_decay=self.course.weight_decay)

    def _epoch(self, number: int, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        seed = seeded(self.course.seed, number + 1)
        order = torch.randperm(self.documents, generator=torch.Generator().manual_seed(seed)).numpy()
        batches = np.array_split(order, math.ceil(self.documents / self.course.batch_size))
        total, began = 0.0, time.perf_counter()
        self.network.train()
        with torch.random.fork_rng(devices=[]), gradients_by_rows():
            torch.manual_seed(seed)  # dropout draws from the global generator; it is put back afterwards
            for rows in batches:
                total += self._update(rows, number, optimizer) * len(rows)
        self.network.eval()
        seconds = time.perf_counter() - began
        return {"phase": self.phase, "epoch": number + 1, "loss": total / self.documents, "seconds": seconds}

    def _update(self, rows: NDArray[np.int64], number: int, optimizer: torch.optim.Optimizer) -> float:
        loss = self.loss(rows)
        value = float(loss.item())
        if not math.isfinite(value):
            raise ModelError(
                f"in epoch {number + 1} the loss is no longer a number; "
                f"take a lower learning_rate than {self.course.learning_rate}, or set clip"
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.course.clip is not None:
            clip(self.network.parameters(), self.course.clip)
        optimizer.step()
        return value

    def _patience_is_out(self, standing: Standing) -> bool:
        patience = self.course.patience
        return patience is not None and standing.epochs_done - standing.best_epoch >= patience

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def _write(self, standing: Standing, best: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> None:
        if self.checkpoint is None:
            return
        tensors = {f"weights/{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in best.items()}
        for number, moments in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{number}/{name}": value for name, value in moments.items()}
        write_checkpoint(self.checkpoint, tensors, {"standing": vars(standing), "identity": dict(self.identity)})

    def _resumed(self, optimizer: torch.optim.Optimizer) -> tuple[Standing, dict[str, Tensor]]:
        """Where the run was broken off; network and optimizer are as they were there."""
        tensors, state = read_checkpoint(Path(self.checkpoint or ""))
        foreign = ModelError(f"{self.checkpoint}: this is no checkpoint of such a run; train anew")
        written = state.get("identity")
        if not isinstance(written, dict):
            raise foreign
        for name, value in self.identity.items():
            if written.get(name) != plain(value, name):
                raise ModelError(
                    f"{self.checkpoint}: it was written with another {name}; resume with the same, or train anew"
                )
        try:
            best = _part(tensors, "best")
            self.network.load_state_dict(best)  # to see that they fit, before any epoch is spent
            self.network.load_state_dict(_part(tensors, "weights"))
            _remember(optimizer, _part(tensors, "optimizer"))
            return _standing(state["standing"]), best
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise foreign from None


def seeded(*numbers: int) -> int:
    """A seed for torch, made of whole numbers of any size."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def fingerprint(examples: Examples) -> str:
    """A hash of documents, their labels and the order of all labels: a run that goes on must have the same."""
    digest = hashlib.sha256(json.dumps(examples.taxonomy.labels).encode())
    _add(digest, examples.labels.indptr, np.int64)
    _add(digest, examples.labels.indices, np.int64)
    for text in examples.texts or ():
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    if sparse.issparse(examples.features):
        rows = sparse.csr_array(examples.features)
        _add(digest, rows.indptr, np.int64)
        _add(digest, rows.indices, np.int64)
        _add(digest, rows.data, np.float32)
    elif examples.features is not None:
        _add(digest, examples.features, np.float32)
    return digest.hexdigest()


def _add(digest: Any, array: Any, dtype: Any) -> None:
    values = np.ascontiguousarray(array, dtype=dtype)
    digest.update(repr(values.shape).encode() + values.tobytes())


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _part(tensors: Mapping[str, Tensor], start: str) -> dict[str, Tensor]:
    return {name.removeprefix(f"{start}/"): value for name, value in tensors.items() if name.startswith(f"{start}/")}


def _standing(given: Mapping[str, Any]) -> Standing:
    standing = Standing(**given)
    good = (
        type(standing.epochs_done) is int
        and type(standing.best_epoch) is int
        and 0 <= standing.best_epoch <= standing.epochs_done == len(standing.history)
        and all(isinstance(record, dict) for record in standing.history)
        and (standing.best_score is None or isinstance(standing.best_score, float))
        and isinstance(standing.kept_loss, float)
    )
    if not good:
        raise ValueError("a standing that no run has written")
    return standing


def _remember(optimizer: torch.optim.Optimizer, moments: Mapping[str, Tensor]) -> None:
    """Give an optimizer back what it remembered of each weight; what does not fit the weights is an error."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in moments.items():
        number, _, key = name.partition("/")
        shape = () if key == "step" else weights[int(number)].shape if 0 <= int(number) < len(weights) else None
        if key not in MOMENTS or value.shape != shape or value.dtype != torch.float32:
            raise ValueError(f"{name} fits no weight")
        state.setdefault(int(number), {})[key] = value
    if any(set(kept) != MOMENTS or not 0 <= number < len(weights) for number, kept in state.items()):
        raise ValueError("moments are missing")
    whole = optimizer.state_dict()
    whole["state"] = state
    optimizer.load_state_dict(whole)


__all__ = ["Course", "Learning", "Standing", "fingerprint", "seeded"]
