"""What happened in a rollout, and the same scored again with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from hilap.pairs import segments
from hilap.walker import Walker
from hilap.worth import Score, gains


@dataclass(frozen=True)
class Episode:
    """What happened in one rollout of R walks. Steps after stop have the action stop, no reward and no gradient."""

    docs: Tensor  # (R,) the document of each walk
    actions: Tensor  # (T, R)
    rewards: Tensor  # (T, R) gains in the score
    placed: Tensor  # (R, L) bool, the predicted label sets
    row: Tensor  # (M,) the walk of each decision, where some label was open: walk after walk
    step: Tensor  # (M,) its step
    starts: Tensor  # (M + 1,) where its open actions begin
    items: Tensor  # (P,) open actions, ascending, so that stop is the last of each decision

    @property
    def going(self) -> Tensor:
        """(T, R) whether a walk had something to decide at this step."""
        going = torch.zeros_like(self.actions, dtype=torch.bool)
        going[self.step, self.row] = True
        return going

    @property
    def at(self) -> Tensor:
        """(M,) the label each decision was taken at; L for the root."""
        before = self.actions[(self.step - 1).clamp_min(0), self.row]
        return before.masked_fill(self.step == 0, self.placed.shape[1])

    def part(self, rows: slice) -> Episode:
        """Some of the walks: those between two numbers."""
        first, end, _ = rows.indices(len(self.docs))
        a, b = torch.searchsorted(self.row, torch.tensor([first, end], device=self.row.device)).tolist()
        starts = self.starts[a : b + 1]
        actions, rewards = self.actions[:, first:end], self.rewards[:, first:end]
        docs, placed, items = self.docs[first:end], self.placed[first:end], self.items[starts[0] : starts[-1]]
        return Episode(docs, actions, rewards, placed, self.row[a:b] - first, self.step[a:b], starts - starts[0], items)


@dataclass(frozen=True)
class Replay:
    """The decisions of an episode, scored with gradients: M of them, with P open actions together."""

    step: Tensor  # (M,)
    row: Tensor  # (M,)
    starts: Tensor  # (M + 1,)
    items: Tensor  # (P,) the open actions of each decision
    log_probs: Tensor  # (P,)
    actions: Tensor  # (M,) what was done

    @property
    def taken(self) -> Tensor:
        """(M,) log pi of the actions taken."""
        return self.log_probs.index_select(0, (self.items == self.actions[segments(self.starts)]).nonzero().squeeze(1))

    @property
    def entropy(self) -> Tensor:
        """(M,) the entropy of the policy at each decision."""
        open_ = self.log_probs.masked_fill(self.log_probs.isneginf(), 0)  # what has no probability adds nothing
        return -open_.new_zeros(len(self.row)).index_add(0, segments(self.starts), self.log_probs.exp() * open_)

    def add_up(self, values: Tensor, rows: int) -> Tensor:
        """(rows,) the sum of (M,) values over the decisions of each walk."""
        return values.new_zeros(rows).index_add(0, self.row, values)


def retraced(
    walker: Walker, docs: Tensor, actions: NDArray[Any], gold: Tensor | None, scores: Sequence[Score], like: Tensor
) -> Episode:
    """The episode of walks (R, T) that the kernels took."""
    row, starts, items, new_starts, new = (torch.from_numpy(x) for x in walker.retrace(actions))
    firsts = torch.searchsorted(row, row)  # where the walk of each decision begins
    step = torch.arange(len(row)) - firsts
    steps = int(step.max()) + 1 if len(step) else 0
    taken = torch.from_numpy(actions)[:, :steps].T
    which = segments(new_starts)
    rewards = _rewards(scores, gold, steps, len(docs), (step[which], row[which], new), like)
    return Episode(docs, taken, rewards, torch.from_numpy(walker.sets(actions)), row, step, starts, items)


class Record:
    """Collects the steps of walks as they are taken, on any device."""

    def __init__(self, docs: Tensor) -> None:
        self.docs = docs
        self.actions: list[Tensor] = []  # (R,) of each step
        nothing = docs.new_zeros(0, 3)
        self.open, self.new = [nothing], [nothing]  # (., 3) walk, step, and an open action or a label newly placed

    def add(self, rows: Tensor, open_: Tensor, actions: Tensor, new: Tensor) -> None:
        """One step: walks `rows` (G,) with open actions (G, A), all actions (R,), labels newly placed (R, L)."""
        which, item = open_.nonzero(as_tuple=True)
        row, label = new.nonzero(as_tuple=True)
        t = len(self.actions)
        self.open.append(torch.stack([rows[which], torch.full_like(which, t), item], dim=1))
        self.new.append(torch.stack([row, torch.full_like(row, t), label], dim=1))
        self.actions.append(actions)

    def episode(self, placed: Tensor, gold: Tensor | None, scores: Sequence[Score], like: Tensor) -> Episode:
        """What happened, decisions put in order walk after walk."""
        steps, n = len(self.actions), len(self.docs)
        pairs = torch.cat(self.open)
        key, order = torch.sort(pairs[:, 0] * max(1, steps) + pairs[:, 1], stable=True)
        decisions, lengths = torch.unique_consecutive(key, return_counts=True)
        row, step = decisions // max(1, steps), decisions % max(1, steps)
        starts = torch.cat([lengths.new_zeros(1), torch.cumsum(lengths, 0)])
        walk, when, label = torch.cat(self.new).unbind(1)
        rewards = _rewards(scores, gold, steps, n, (when, walk, label), like)
        actions = torch.stack(self.actions) if steps else self.docs.new_zeros(0, n)
        return Episode(self.docs, actions, rewards, placed, row, step, starts, pairs[order, 2])


def _rewards(
    scores: Sequence[Score],
    gold: Tensor | None,
    steps: int,
    walks: int,
    placings: tuple[Tensor, Tensor, Tensor],
    like: Tensor,
) -> Tensor:
    """(T, R) the gains; without gold sets there are none."""
    if gold is None:
        return like.new_zeros(steps, walks)
    return gains(scores, gold, steps, *placings, like)


__all__ = ["Episode", "Record", "Replay", "retraced"]
