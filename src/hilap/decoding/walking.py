"""One walk at a time: greedy, sampled, and a greedy walk explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from hilap.decoding.checks import whole
from hilap.decoding.constraints import Constraints, allow_of
from hilap.decoding.scoring import log_probs
from hilap.errors import require
from hilap.policy import Allow, Documents, Policy, Walk

Pick = Callable[[Tensor, Tensor, int], Tensor]
"""(G, A) log-probabilities, (G,) which walks, the number of the step -> (G,) actions."""


@dataclass(frozen=True)
class Decoded:
    """The walks of a batch of documents and the sets they end with."""

    placed: Tensor  # (B, L) bool, the predicted label sets
    actions: Tensor  # (T, B) labels, or stop; stop behind the end of a walk
    log_prob: Tensor  # (B,) float64, of the whole walk


@dataclass(frozen=True)
class Decision:
    """One step of a walk: where the document stood, what it could do and what it did. Index L: the root, or stop."""

    at: int
    action: int
    actions: Tensor  # (N,) all actions that were open, the most probable first
    probabilities: Tensor  # (N,)


@torch.no_grad()
def decode(policy: Policy, documents: Documents, *, max_steps: int, constraints: Constraints | None = None) -> Decoded:
    """The most probable action at every step, for each document.

    A walk that runs out of steps, or of labels that may be placed, ends without stop and at no further cost.
    """
    whole("max_steps", max_steps, 0)
    docs = torch.arange(len(documents), device=documents.half.device)
    if constraints is None and docs.device.type == "cpu":
        return _compiled(policy, documents, docs, torch.full((1, 1), -1.0, dtype=torch.float64), max_steps)
    return _walk(
        policy, documents, docs, lambda step, rows, t: step.argmax(1), max_steps, allow_of(policy, constraints)
    )


@torch.no_grad()
def sampled(
    policy: Policy,
    documents: Documents,
    *,
    samples: int,
    max_steps: int,
    generator: torch.Generator | None = None,
    constraints: Constraints | None = None,
) -> Tensor:
    """(B, S, L) bool: the sets of `samples` walks of each document, drawn from the policy.

    The walks of one document are independent of each other. All documents of a batch meet the same random numbers, so
    that a document's walks depend on the state of the generator but not on its batch.

    Parameters
    ----------
    policy, documents, max_steps, constraints
        As in `decode`.
    samples
        Walks of each document.
    generator
        Where the random numbers come from. Without one, always the same numbers; give one in the same state with
        every batch for results that do not depend on how documents were put into batches.
    """
    whole("samples", samples, 1)
    whole("max_steps", max_steps, 0)
    device = documents.half.device
    source = torch.Generator(device).manual_seed(0) if generator is None else generator

    draws = torch.rand((max_steps, samples), generator=source, device=device, dtype=torch.float64)
    docs = torch.arange(len(documents), device=device).repeat_interleave(samples)
    if constraints is None and device.type == "cpu":
        decoded = _compiled(policy, documents, docs, draws.repeat(1, len(documents)), max_steps)
    else:

        def choose(step: Tensor, rows: Tensor, t: int) -> Tensor:
            """The action at which the sum of the probabilities exceeds the number drawn."""
            sums = step.double().exp().cumsum(1)
            return (sums <= draws[t, rows % samples].unsqueeze(1) * sums[:, -1:]).sum(1).clamp_max(policy.stop)

        decoded = _walk(policy, documents, docs, choose, max_steps, allow_of(policy, constraints))
    return decoded.placed.view(len(documents), samples, policy.n_labels)


@torch.no_grad()
def explain(
    policy: Policy, documents: Documents, doc: int, *, max_steps: int, constraints: Constraints | None = None
) -> list[Decision]:
    """The greedy walk of one document, each step with the probabilities of all actions that were open."""
    whole("max_steps", max_steps, 0)
    good = isinstance(doc, int) and not isinstance(doc, bool) and 0 <= doc < len(documents)
    require(good, "doc", f"the number of a document, from 0 to {len(documents) - 1}", doc)
    docs = torch.tensor([doc], device=documents.half.device)
    allow = allow_of(policy, constraints)
    walk, decisions = policy.start(1), []
    for _ in range(max_steps):
        open_ = allow(walk)
        if not open_[0, : policy.stop].any():
            break
        step = log_probs(policy, documents, docs, walk.at, open_)
        ranked, order = step[0].sort(descending=True, stable=True)
        action, count = step.argmax(1), int(open_.sum())
        decisions.append(Decision(int(walk.at), int(action), order[:count], ranked[:count].exp()))
        walk = policy.step(walk, action)
    return decisions


def _compiled(policy: Policy, documents: Documents, docs: Tensor, draws: Tensor, max_steps: int) -> Decoded:
    """Whole walks in the compiled kernels; `draws` (T, R) as in `Walker.walk`."""
    walker = policy.walker()
    batch = walker.batch(documents.half, documents.flat, documents.bias)
    actions, log_prob = walker.walk(batch, docs.numpy(), steps=max_steps, uniform=draws.numpy())
    return Decoded(*(torch.from_numpy(x) for x in (walker.sets(actions), actions.T, log_prob)))


def _walk(policy: Policy, documents: Documents, docs: Tensor, choose: Pick, max_steps: int, allow: Allow) -> Decoded:
    """Walk until every walk has stopped or taken `max_steps` steps; those that have stopped leave the batch."""
    walk = policy.start(len(docs))
    placed, history = walk.placed.clone(), []
    total = torch.zeros(len(docs), dtype=torch.float64, device=docs.device)
    rows = torch.arange(len(docs), device=docs.device)  # the walks that go on
    for t in range(max_steps):
        open_ = allow(walk)
        going = open_[:, : policy.stop].any(1)
        rows, walk, open_ = rows[going], _some(walk, going), open_[going]
        if not len(rows):
            break
        step = log_probs(policy, documents, docs[rows], walk.at, open_)
        action = choose(step, rows, t)
        total[rows] += step.gather(1, action.unsqueeze(1)).squeeze(1)
        history.append(torch.full_like(docs, policy.stop).index_copy_(0, rows, action))
        on = action != policy.stop
        rows, walk = rows[on], policy.step(_some(walk, on), action[on])
        placed[rows] = walk.placed
    actions = torch.stack(history) if history else docs.new_zeros((0, len(docs)))
    return Decoded(placed, actions, total)


def _some(walk: Walk, keep: Tensor) -> Walk:
    """The walks to keep; no copy if these are all."""
    return walk if bool(keep.all()) else Walk(walk.at[keep], walk.placed[keep], walk.open[keep])
