"""The straightforward batched policy, as the reference that `speed.py` compares with.

The same mathematics as `hilap.policy`, written the plain way: the first layer on the concatenation `[e_d ; l_t]`, every
label scored at every step, walks that have stopped kept in the batch, the greedy baseline in a loop of its own, whole
sets compared for the rewards. It borrows the weights of a `Policy`, so both do the same work.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from hilap.metrics.flat import f1_from_counts
from hilap.policy import Policy
from hilap.taxonomy import Taxonomy


class PlainPolicy:
    """A plain implementation over dense masks."""

    def __init__(self, policy: Policy, taxonomy: Taxonomy) -> None:
        self.policy = policy
        labels = len(taxonomy)
        self.stop = labels
        self.places = torch.zeros(labels + 1, labels, dtype=torch.bool)
        self.places[:labels] = torch.from_numpy(taxonomy.closure.toarray())
        below = torch.from_numpy(taxonomy.child_matrix.toarray())
        opens = (self.places[:labels].float() @ below.float()) > 0
        self.opens = torch.cat([opens, torch.zeros(1, labels, dtype=torch.bool)])
        self.top = torch.zeros(labels, dtype=torch.bool)
        self.top[[taxonomy.index(label) for label in taxonomy.top_labels]] = True

    def log_probs(self, embeddings: Tensor, at: Tensor, open_: Tensor) -> Tensor:
        """(B, A) with everything scored, from the concatenated input."""
        policy = self.policy
        weight = torch.cat([policy.of_document.weight, policy.of_label.weight], dim=1)
        hidden = F.relu(torch.cat([embeddings, policy.label[at]], dim=1) @ weight.T + policy.of_document.bias)
        states = F.relu(policy.second(hidden))
        actions = torch.cat([policy.label[: self.stop], policy.e_stop.unsqueeze(0)])
        return torch.log_softmax((states @ actions.T).masked_fill(~open_, float("-inf")), dim=1)

    def walk(
        self, embeddings: Tensor, gold: Tensor | None, steps: int, generator: torch.Generator | None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor, Tensor]], Tensor]:
        """All walks to the last step, sampled with a generator and greedy without one."""
        n = len(embeddings)
        placed = torch.zeros(n, self.stop, dtype=torch.bool)
        open_ = torch.cat([self.top.expand(n, -1), torch.ones(n, 1, dtype=torch.bool)], dim=1)
        at = torch.full((n,), self.stop)
        history, rewards = [], []
        before = _f1(placed, gold) if gold is not None else torch.zeros(n)
        with torch.no_grad():
            for _ in range(steps):
                log_probs = self.log_probs(embeddings, at, open_)
                if generator is None:
                    action = log_probs.argmax(1)
                else:
                    action = torch.multinomial(log_probs.exp(), 1, generator=generator).squeeze(1)
                history.append((at, open_, action))
                placed = placed | self.places[action]
                below = (open_[:, : self.stop] | self.opens[action]) & ~placed & (action != self.stop).unsqueeze(1)
                open_ = torch.cat([below, open_[:, self.stop :]], dim=1)
                at = torch.where(action == self.stop, at, action)
                after = _f1(placed, gold) if gold is not None else before
                rewards.append(after - before)
                before = after
        return placed, history, torch.stack(rewards)

    def loss(self, embeddings: Tensor, gold: Tensor, steps: int, gamma: float, generator: torch.Generator) -> Tensor:
        """The self-critical loss."""
        _, history, rewards = self.walk(embeddings, gold, steps, generator)
        _, _, baseline = self.walk(embeddings, gold, steps, None)
        values, future = torch.empty_like(rewards), torch.zeros(len(embeddings))
        for t in reversed(range(steps)):
            future = rewards[t] - baseline[t] + gamma * future
            values[t] = future
        at, open_, action = (torch.cat(column) for column in zip(*history, strict=True))
        log_probs = self.log_probs(embeddings.repeat(steps, 1), at, open_)
        taken = log_probs.gather(1, action.unsqueeze(1)).squeeze(1)
        return -(taken * values.flatten()).view(steps, -1).sum(0)


def _f1(placed: Tensor, gold: Tensor) -> Tensor:
    hits = (placed & gold).sum(1).float()
    f1: Tensor = f1_from_counts(hits, placed.sum(1).float(), gold.sum(1).float())
    return f1
