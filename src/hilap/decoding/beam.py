"""Beam search over label *sets*: orders of the same set are one hypothesis, their probabilities added up.

The future of a walk depends on the labels placed *and* on the current label. So unfinished walks are one hypothesis
where both agree, finished ones where the sets agree: then nothing is lost or counted twice, and a beam wide enough for
all hypotheses gives the exact probability of every set.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from hilap.decoding.checks import whole
from hilap.decoding.constraints import Constraints, allow_of
from hilap.decoding.scoring import log_probs
from hilap.policy import CLOSED, Documents, Policy, Walk

ROOM = 4  # candidates looked at for each place in the beam, before the same sets are put together


@dataclass(frozen=True)
class Beams:
    """The most probable label sets found for each document, best first. W: the width of the beam."""

    sets: Tensor  # (B, W, L) bool
    log_probs: Tensor  # (B, W) float64; minus infinity where there are fewer sets

    @property
    def mass(self) -> Tensor:
        """(B,) the probability of all sets found: 1 if nothing was cut off."""
        return self.log_probs.exp().cumsum(1)[:, -1]

    @property
    def shares(self) -> Tensor:
        """(B, W) the probability of each set among those found."""
        weights = (self.log_probs - self.log_probs[:, :1]).exp()
        return weights / weights.cumsum(1)[:, -1:]


@dataclass(frozen=True)
class _Slots:
    """The hypotheses of B documents in W places each, best first."""

    walk: Walk  # R = B * W rows
    total: Tensor  # (B, W) float64 log-probability; minus infinity: an empty place
    key: Tensor  # (B, W) the sum of the placed labels' random words: the same for the same set
    done: Tensor  # (B, W) bool, stopped or empty


@torch.no_grad()
def beam(
    policy: Policy, documents: Documents, *, width: int, max_steps: int, constraints: Constraints | None = None
) -> Beams:
    """The best sets of each document with their probabilities; all hypotheses of all documents in one pass a step.

    Finished and unfinished walks compete for the same places. With width 1 this is the greedy walk.

    Parameters
    ----------
    policy, documents, max_steps, constraints
        As in `decode`. A walk that runs out of steps counts for the set it has placed.
    width
        The places W for each document. At each step the 4 W best continuations are looked at.
    """
    whole("width", width, 1)
    whole("max_steps", max_steps, 0)
    words = _words(policy)
    if constraints is None and words.device.type == "cpu":  # what follows, compiled
        walker = policy.walker()
        batch = walker.batch(documents.half, documents.flat, documents.bias)
        room = 1 if width == 1 else ROOM * width
        found = walker.beams(batch, words[: policy.n_labels].numpy(), width=width, room=room, steps=max_steps)
        return Beams(*map(torch.from_numpy, found))
    allow = allow_of(policy, constraints)
    slots = _start(policy, len(documents), width)
    docs = torch.arange(len(documents), device=words.device)  # those with a walk that goes on
    sets = slots.walk.placed.view(len(documents), width, policy.n_labels).clone()
    beams = Beams(sets, torch.full_like(slots.total, CLOSED))
    for _ in range(max_steps):
        open_ = allow(slots.walk)
        goes = ~slots.done & open_[:, : policy.stop].any(1).view(slots.done.shape)
        on = goes.any(1)
        if not bool(on.all()):
            _finish(policy, _some(slots, ~on), words, docs[~on], beams)
            docs, slots, goes, open_ = docs[on], _some(slots, on), goes[on], open_[on.repeat_interleave(width)]
        if not len(docs):
            return beams
        rows = goes.flatten().nonzero().squeeze(1)
        steps = torch.full(open_.shape, CLOSED, dtype=torch.float64, device=words.device)
        steps[:, policy.stop] = 0  # for those who are done, and those who can do nothing else
        steps[rows] = log_probs(policy, documents, docs[rows // width], slots.walk.at[rows], open_[rows]).double()
        slots = _advance(policy, slots, steps, words)
    _finish(policy, slots, words, docs, beams)
    return beams


def _words(policy: Policy) -> Tensor:
    """(L + A,) a random word for each label, then one for each place to stand at; always the same."""
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(-(2**63), 2**63 - 1, (2 * policy.n_labels + 1,), generator=generator)
    return words.to(policy.label.device)


def _start(policy: Policy, documents: int, width: int) -> _Slots:
    """One hypothesis for each document, at the root; the other places are empty."""
    walk = policy.start(documents * width)
    total = torch.full((documents, width), CLOSED, dtype=torch.float64, device=walk.at.device)
    total[:, 0] = 0
    return _Slots(walk, total, torch.zeros_like(total, dtype=torch.long), total == CLOSED)


def _advance(policy: Policy, slots: _Slots, steps: Tensor, words: Tensor) -> _Slots:
    """Take every step in every place, put equal hypotheses together, keep the best."""
    documents, width = slots.total.shape
    table = (slots.total.unsqueeze(2) + steps.view(documents, width, -1)).view(documents, -1)
    value, index = _best(table, 1 if width == 1 else min(ROOM * width, table.shape[1]))
    first = torch.arange(documents, device=words.device).unsqueeze(1) * width
    parent = index // steps.shape[1] + first  # (B, K) the row a candidate comes from
    action = (index % steps.shape[1]).masked_fill(value == CLOSED, policy.stop)
    key = slots.key.flatten()[parent] + _added(policy, slots.walk, parent, action, words)
    value, best = _merged(policy, slots.walk, parent, action, value, key, words).sort(
        dim=1, descending=True, stable=True
    )
    best = best[:, :width]
    value, action, parent, key = value[:, :width], action.gather(1, best), parent.gather(1, best), key.gather(1, best)
    rows = parent.flatten()
    walk = Walk(slots.walk.at[rows], slots.walk.placed[rows], slots.walk.open[rows])
    return _Slots(policy.step(walk, action.flatten()), value, key, (action == policy.stop) | (value == CLOSED))


def _best(table: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest entries of each row, largest first; a single one as `greedy` picks it, also among equals."""
    if count == 1:
        index = table.argmax(1, keepdim=True)
        return table.gather(1, index), index
    value, index = table.topk(count, dim=1)
    return value, index


def _added(policy: Policy, walk: Walk, parent: Tensor, action: Tensor, words: Tensor) -> Tensor:
    """(B, K) the sum of the words of the labels that an action newly places."""
    goes = (action != policy.stop).flatten().nonzero().squeeze(1)
    which, label = policy.places.of(action.flatten()[goes])
    new = words[label].masked_fill(walk.placed[parent.flatten()[goes[which]], label], 0)
    return torch.zeros_like(parent).flatten().index_add(0, goes[which], new).view(parent.shape)


def _merged(
    policy: Policy, walk: Walk, parent: Tensor, action: Tensor, value: Tensor, key: Tensor, words: Tensor
) -> Tensor:
    """(B, K) the log-probability of each distinct hypothesis at its best candidate, minus infinity at the others.

    Candidates stand in falling order. Equal ones are brought together by sorting keys, then compared label by label.
    """
    mixed, order = (key + words[policy.n_labels + action]).sort(dim=1, stable=True)
    same = mixed[:, 1:] == mixed[:, :-1]
    doc, i = same.nonzero(as_tuple=True)
    left, right = order[doc, i], order[doc, i + 1]
    equal = (_sets(policy, walk, parent, action, doc, left) == _sets(policy, walk, parent, action, doc, right)).all(1)
    same[doc, i] = equal & (action[doc, left] == action[doc, right])
    leads = F.pad(~same, (1, 0), value=True)
    leader = torch.arange(leads.shape[1], device=leads.device).where(leads, leads.new_zeros((), dtype=torch.long))
    leader = leader.cummax(1).values
    values = value.gather(1, order)
    parts = (values - values.gather(1, leader)).exp().masked_fill(values == CLOSED, 0)
    sums = values + torch.zeros_like(values).scatter_add_(1, leader, parts).log()
    return torch.empty_like(value).scatter_(1, order, sums.masked_fill(~leads, CLOSED))


def _sets(policy: Policy, walk: Walk, parent: Tensor, action: Tensor, doc: Tensor, candidate: Tensor) -> Tensor:
    """(M, L) bool: the sets that some candidates lead to."""
    placed = walk.placed[parent[doc, candidate]]
    taken = action[doc, candidate]
    goes = (taken != policy.stop).nonzero().squeeze(1)
    which, label = policy.places.of(taken[goes])
    placed[goes[which], label] = True
    return placed


def _some(slots: _Slots, docs: Tensor) -> _Slots:
    """The hypotheses of some documents, told by (B,) truths."""
    rows = docs.repeat_interleave(slots.total.shape[1])
    walk = Walk(slots.walk.at[rows], slots.walk.placed[rows], slots.walk.open[rows])
    return _Slots(walk, slots.total[docs], slots.key[docs], slots.done[docs])


def _finish(policy: Policy, slots: _Slots, words: Tensor, docs: Tensor, found: Beams) -> None:
    """All walks of these documents end here, stopped or not: equal sets are one. Writes them into `found`."""
    shape = slots.total.shape
    parent = torch.arange(shape.numel(), device=words.device).view(shape)
    action = torch.full_like(parent, policy.stop)
    merged = _merged(policy, slots.walk, parent, action, slots.total, slots.key, words)
    value, best = merged.sort(dim=1, descending=True, stable=True)
    found.log_probs[docs] = value
    found.sets[docs] = slots.walk.placed[parent.gather(1, best)] & (value > CLOSED).unsqueeze(2)
