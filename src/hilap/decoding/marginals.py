"""How probable each label is: the policy's own marginals."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from hilap.decoding.beam import beam
from hilap.decoding.checks import one_of, whole
from hilap.decoding.constraints import Constraints
from hilap.decoding.walking import sampled
from hilap.policy import Documents, Policy

Method = Literal["beam", "samples"]


@torch.no_grad()
def marginals(
    policy: Policy,
    documents: Documents,
    *,
    max_steps: int,
    method: Method = "beam",
    width: int = 16,
    samples: int = 64,
    generator: torch.Generator | None = None,
    constraints: Constraints | None = None,
) -> Tensor:
    """(B, L) float64: the probability that a label is in the set the policy ends with.

    A child is never above its parent, to the last bit, where sets are closed upward (on a tree, and with the DAG rule
    `ancestors`): a parent's sum has all the terms of its child's and perhaps more, in the same order, and rounding
    never turns two numbers round. With the rule `any` sets need not be closed, so these need not be either.

    Parameters
    ----------
    policy, documents, max_steps, constraints
        As in `decode`.
    method
        `beam`: the sum over the best sets found that hold the label, divided by the sum over all sets found (the rest
        of the probability is taken to be shared out alike); exact if the beam is wide enough for all sets. `samples`:
        the share of sampled walks that place the label; right on average, with steps of 1 / samples.
    width
        Of the beam.
    samples, generator
        For `sampled`.
    """
    one_of("method", method, ("beam", "samples"))
    if method == "samples":
        sets = sampled(
            policy,
            documents,
            samples=samples,
            max_steps=max_steps,
            generator=generator,
            constraints=constraints,
        )
        return sets.sum(1).double() / samples
    whole("width", width, 1)
    beams = beam(policy, documents, width=width, max_steps=max_steps, constraints=constraints)
    weights = (beams.log_probs - beams.log_probs[:, :1]).exp()
    total = weights.new_zeros(len(documents), policy.n_labels + 1)
    for place in range(width):  # one set of every document after the other: sums in one order, no (B, W, L) floats
        total[:, :-1] += weights[:, place, None] * beams.sets[:, place]
        total[:, -1] += weights[:, place]
    return total[:, :-1] / total[:, -1:]
