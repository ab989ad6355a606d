"""Every walk of a tiny taxonomy, by brute force: the oracle of the exact tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from hilap.policy import Documents, Policy, Walk


@dataclass(frozen=True)
class Route:
    """One whole walk of one document."""

    actions: tuple[int, ...]
    log_prob: Tensor  # with gradients
    placed: Tensor  # (L,) bool


def every_walk(policy: Policy, documents: Documents, *, max_steps: int, doc: int = 0) -> Iterator[Route]:
    """All walks that document `doc` can take, each with its probability, one action at a time."""
    docs = torch.tensor([doc])

    def go(walk: Walk, actions: tuple[int, ...], log_prob: Tensor) -> Iterator[Route]:
        finished = bool(actions) and actions[-1] == policy.stop
        if finished or len(actions) == max_steps or not walk.open[0, : policy.stop].any():
            yield Route(actions, log_prob, walk.placed[0])
            return
        steps = policy.log_probs(documents, docs, walk.at, walk.open)[0]
        for action in walk.open[0].nonzero().flatten().tolist():
            yield from go(policy.step(walk, torch.tensor([action])), (*actions, action), log_prob + steps[action])

    yield from go(policy.start(1), (), torch.zeros((), dtype=documents.half.dtype))
