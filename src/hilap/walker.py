"""Whole walks on the CPU: hands the numbers of a policy to the compiled kernels.

A policy in evaluation mode keeps what is derived from its weights (the second layer turned round, the halves of the
labels visited so far) from one call to the next. It is thrown away when the mode changes, when a weight is written to
(torch counts that, but not what fused optimizers do, so their steps are counted here) and when one is replaced; only
writing through `.data` in evaluation mode goes unseen.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from hilap.pairs import array
from hilap.rows import Rows

if TYPE_CHECKING:
    from hilap.kernels.walking import Edges, Weights

FEWEST_WALKS = 16  # for each thread: fewer are not worth starting one

_updates = count()
_latest = [next(_updates)]  # the number of steps that optimizers have taken in this process
register_optimizer_step_post_hook(lambda *_: _latest.__setitem__(0, next(_updates)))


class Walking(Protocol):
    """What is needed of a policy."""

    training: bool
    n_labels: int
    temperature: float
    label: nn.Parameter
    e_stop: nn.Parameter
    bias: nn.Parameter | None
    of_label: nn.Linear
    second: nn.Linear
    below: Rows
    places: Rows


@dataclass(frozen=True)
class Batch:
    """Documents as the kernels read them."""

    half: NDArray[Any]  # (B, H)
    flat: NDArray[Any]  # (B, L), or empty
    bias: NDArray[Any] | None  # (A,)


class Walker:
    """A policy as the kernels read it, with its documents.

    Parameters
    ----------
    policy
        On the CPU.
    """

    def __init__(self, policy: Walking) -> None:
        from hilap.kernels import walking

        label, hidden = array(policy.label), policy.second.in_features
        self.stop = policy.n_labels
        self.sign = sign_of(policy)
        self.lasting = not policy.training  # kept for later calls
        self.weights: Weights = walking.Weights(
            label=label,
            stop=array(policy.e_stop),
            of_label=array(policy.of_label.weight),
            halves=np.empty((len(label), hidden), label.dtype),
            known=np.zeros(len(label), bool),
            into_state=array(policy.second.weight.T),
            state_bias=array(policy.second.bias),
            bias=np.zeros(len(label), label.dtype) if policy.bias is None else array(policy.bias),
            temperature=np.array([policy.temperature], label.dtype),
        )
        tables = (policy.below.starts, policy.below.items, policy.places.starts, policy.places.items)
        self.edges: Edges = walking.Edges(*(array(table) for table in tables))

    def batch(self, half: Tensor, flat: Tensor | None, bias: Tensor | None) -> Batch:
        """Documents for the methods below: (B, H) halves, (B, L) flat logits, (A,) biases beside the policy's own."""
        like = self.weights.label
        given = np.empty((0, 0), like.dtype) if flat is None else array(flat.to(half.dtype))
        return Batch(array(half), given, None if bias is None else array(bias.to(half.dtype)))

    def walk(
        self,
        batch: Batch,
        docs: NDArray[np.int64],
        *,
        steps: int,
        uniform: NDArray[np.float64],
        follow: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(R, T) the actions of walks of documents `docs` (R,), stop behind their end, and (R,) log-probabilities.

        T is the number of steps at which some walk had a choice.

        Parameters
        ----------
        batch, docs
            The documents, and which one each walk is for.
        steps
            The most steps.
        uniform
            (steps, R), either length may be 1: a number between 0 and 1 decides each draw; negative: the best action.
        follow
            (R, L) sets whose oracle actions alone are taken.
        """
        from hilap.kernels import walking

        n = len(docs)
        actions, log_prob = np.full((n, steps), self.stop), np.zeros(n)
        weights = self._with(batch.bias)
        order = np.argsort(docs, kind="stable")  # walks of one document side by side
        draws = np.broadcast_to(uniform, (len(uniform), n))[:, order] if uniform.shape[1] > 1 else uniform
        sets = np.empty((0, 0), bool) if follow is None else follow[order]

        def part(rows: slice, weights: Weights) -> int:
            mine = np.ascontiguousarray(draws[:, rows]) if draws.shape[1] > 1 else draws
            args = (docs[order[rows]], batch.flat, sets[rows], mine, actions[rows], log_prob[rows])
            return walking.walk(weights, self.edges, batch.half, *args)

        threads = max(1, min(torch.get_num_threads(), n // FEWEST_WALKS))
        ends = np.linspace(0, n, threads + 1).astype(int).tolist()
        parts = [slice(a, b) for a, b in pairwise(ends)]
        if threads == 1:
            taken = part(parts[0], weights)
        else:
            with ThreadPoolExecutor(threads) as pool:
                taken = max(pool.map(part, parts, self._shares(weights, threads)))
        back = np.argsort(order)
        return np.ascontiguousarray(actions[back, :taken]), log_prob[back]

    def beams(
        self, batch: Batch, words: NDArray[np.int64], *, width: int, room: int, steps: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """(B, W, L) the most probable sets of every document and (B, W) their log-probabilities, best first.

        Parameters
        ----------
        batch
            The documents.
        words
            (L,) a random word for each label, by which equal sets are found.
        width, room, steps
            The places W, how many continuations are looked at in a step, and the most steps.
        """
        from hilap.kernels import beams

        n, weights = len(batch.half), self._with(batch.bias)
        sets = np.zeros((n, width, self.stop), bool)
        log_probs = np.full((n, width), -np.inf)
        threads = max(1, min(torch.get_num_threads(), n // FEWEST_WALKS))
        parts = [slice(a, b) for a, b in pairwise(np.linspace(0, n, threads + 1).astype(int).tolist())]

        def part(rows: slice, weights: Weights) -> None:
            flat = batch.flat[rows] if len(batch.flat) else batch.flat
            beams.search(weights, self.edges, batch.half[rows], flat, words, room, steps, sets[rows], log_probs[rows])

        if threads == 1:
            part(parts[0], weights)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(part, parts, self._shares(weights, threads)))
        return sets, log_probs

    def sets(self, actions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(R, L) what the walks (R, T) place."""
        from hilap.kernels import walking

        placed = np.zeros((len(actions), self.stop), bool)
        walking.mark(self.edges, actions, placed)
        return placed

    def retrace(self, actions: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """What could be chosen and what was placed at each decision of walks (R, T): see `kernels.walking.retrace`."""
        from hilap.kernels import walking

        return walking.retrace(self.edges, actions)

    def log_probs(
        self, batch: Batch, docs: NDArray[np.int64], at: NDArray[np.int64], open_: NDArray[np.bool_]
    ) -> NDArray[Any]:
        """(R, A) log pi of documents `docs` (R,) standing at `at` (R,), where `open_` (R, A) are open."""
        from hilap.kernels import walking

        weights, dtype = self._with(batch.bias), self.weights.label.dtype
        states = np.empty((len(docs), len(weights.stop)), dtype)
        walking.states_of(weights, batch.half, docs, at, len(docs), states, 0)
        found = np.full(open_.shape, -np.inf, dtype)
        walking.log_probs_of(weights, states, docs, open_, batch.flat, found)
        return found

    def _shares(self, weights: Weights, threads: int) -> list[Weights]:
        """The weights for each thread, so that none writes what another reads.

        What is kept for later calls is completed first; for a single call each thread projects the labels it visits.
        """
        from hilap.kernels import walking

        if self.lasting:
            walking.project(weights, np.arange(self.stop + 1), self.stop + 1)
            return [weights] * threads
        fresh = [(np.empty_like(weights.halves), np.zeros_like(weights.known)) for _ in range(threads)]
        return [weights._replace(halves=halves, known=known) for halves, known in fresh]

    def _with(self, bias: NDArray[Any] | None) -> Weights:
        return self.weights if bias is None else self.weights._replace(bias=self.weights.bias + bias)


def sign_of(policy: Walking) -> tuple[Any, ...]:
    """Changes whenever a weight is written to or replaced."""
    weights = (policy.label, policy.e_stop, policy.of_label.weight, policy.second.weight, policy.second.bias)
    given = [*weights, *([] if policy.bias is None else [policy.bias])]
    return _latest[0], policy.temperature, *((x.data_ptr(), x._version, x.dtype) for x in given)


__all__ = ["Batch", "Walker", "Walking", "sign_of"]
