"""What the published program or the paper's letter has and hilap has no setting for: `effects.py` measures it.

We know that program by what reading it taught (docs/details.md says where it differs); these are our own words for its
habits. Each is a context: inside it, training does as that program does. None of them is a thing to want: most are
faults, and a setting for a fault would be one more way to go wrong. The paper's equations have one too: `no_biases`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import run
import torch

import hilap.policy
from hilap.corpus import Examples
from hilap.encoders.mlp import MLP
from hilap.episodes import Episode, retraced
from hilap.metrics.flat import f1_from_counts
from hilap.policy import Policy


@contextmanager
def _put(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Another attribute for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def with_stop_placed(episode: Episode, gold: torch.Tensor) -> torch.Tensor:
    """(T, R) rewards where stop counts as one more placed label, which is never right: it takes what it costs."""
    rewards = episode.rewards.clone()
    labels = episode.placed.shape[1]
    stopped = (episode.actions == labels) & episode.going  # the step at which a walk decides to stop, and none after it
    hits, placed, size = (
        sets.sum(1).to(rewards.dtype) for sets in (episode.placed & gold, episode.placed, gold.bool())
    )
    cost = f1_from_counts(hits, placed + 1, size) - f1_from_counts(hits, placed, size)
    punished: torch.Tensor = rewards + stopped * cost
    return punished


def stop_in_the_reward() -> AbstractContextManager[None]:
    """Stop enters the set whose example F1 is the reward, and is punished there (point 1)."""

    def punished(walker: Any, docs: Any, actions: Any, gold: Any, *rest: Any) -> Episode:
        episode = retraced(walker, docs, actions, gold, *rest)
        return episode if gold is None else replace(episode, rewards=with_stop_placed(episode, gold))

    return _put(hilap.policy, "retraced", punished)


def dropout_ends() -> AbstractContextManager[None]:
    """Once it has been evaluated, the network stays as it is for evaluation (point 11)."""
    train = MLP.train

    def trained(self: MLP, mode: bool = True) -> MLP:
        ended = getattr(self, "evaluated", False) or not mode
        object.__setattr__(self, "evaluated", ended)
        train(self, mode and not ended)
        return self

    return _put(MLP, "train", trained)


def batches_in_order() -> AbstractContextManager[None]:
    """Batches are the same in every epoch, and come in the same order (point 12)."""
    return _put(torch, "randperm", lambda n, **_: torch.arange(n))


def means_of_each_split() -> AbstractContextManager[None]:
    """A missing value becomes the mean of its own split, which may be the test's (point 13)."""
    parts_of = run.parts_of

    def filled(name: str, folder: Any) -> dict[str, Examples]:
        return {
            part: replace(examples, features=with_means(examples.features))
            for part, examples in parts_of(name, folder).items()
        }

    return _put(run, "parts_of", filled)


def with_means(features: np.ndarray) -> np.ndarray:
    """(n, F) features with the mean of what is there for what is missing; 0 where nothing is there."""
    missing = np.isnan(features)
    known = np.maximum((~missing).sum(0), 1)
    means = np.where(missing, 0, features).sum(0, dtype=np.float64) / known
    return np.where(missing, means, features).astype(features.dtype)


def no_biases() -> AbstractContextManager[None]:
    """The state network's layers have no biases, as the paper's equations show none (point 4)."""
    reset = Policy.reset

    def without(self: Policy, generator: torch.Generator | None = None) -> None:
        reset(self, generator)
        for layer in (self.of_document, self.second):
            layer.bias.requires_grad_(False).zero_()

    return _put(Policy, "reset", without)


HABITS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    habit.__name__: habit
    for habit in (stop_in_the_reward, dropout_ends, batches_in_order, means_of_each_split, no_biases)
}
