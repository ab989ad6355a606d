"""The straightforward batched method, as the reference that `speed.py` compares with.

The same mathematics as `hilap.policy` and `hilap.network`, written the plain way: the document is encoded once for each
loss, the first layer is computed on the concatenation `[e_d ; l_t]`, every label is scored at every step and at every
place, walks that have stopped stay in the batch to the last step, whole sets are compared for the rewards. It borrows
the weights of a `Policy`, an encoder and a flat head, so both do the same work. What a good batched implementation
does is done here too: walks are taken without gradients and all their steps are scored again in one pass, logits are
one product with the label matrix, each (document, gold label) is visited once by the local loss, and weights are put
side by side once for all steps of a walk.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from hilap.metrics.flat import f1_from_counts
from hilap.policy import Policy
from hilap.taxonomy import Taxonomy

Encode = Callable[[Tensor], tuple[Tensor, Tensor]]
"""(B, features) -> (B, D) embeddings and (B, L) flat logits."""


class PlainPolicy:
    """A plain implementation over dense masks; its policy is residual, or adds a constant bias to its actions."""

    def __init__(self, policy: Policy, taxonomy: Taxonomy, encode: Encode, bias: Tensor | None = None) -> None:
        self.policy, self.encode, self.bias = policy, encode, bias
        labels = len(taxonomy)
        self.stop = labels
        below, closure = taxonomy.child_matrix, taxonomy.closure
        nothing = torch.zeros(1, labels, dtype=torch.bool)
        opens = (closure.astype("float32") @ below.astype("float32")).toarray() > 0
        self.places = torch.cat([torch.from_numpy(closure.toarray().astype(bool)), nothing])
        self.opens = torch.cat([torch.from_numpy(opens), nothing])
        self.top = torch.zeros(labels, dtype=torch.bool)
        self.top[[taxonomy.index(label) for label in taxonomy.top_labels]] = True
        self.children = torch.cat([torch.from_numpy(below.toarray().astype(bool)), self.top.unsqueeze(0)])

    def tables(self) -> tuple[Tensor, Tensor]:
        """The first layer over the concatenation (H, D + C), and the embeddings of all actions (A, C)."""
        policy = self.policy
        actions = torch.cat([policy.label[: self.stop], policy.e_stop.unsqueeze(0)])
        return torch.cat([policy.of_document.weight, policy.of_label.weight], dim=1), actions

    def scores(self, tables: tuple[Tensor, Tensor], embeddings: Tensor, flat: Tensor | None, at: Tensor) -> Tensor:
        """(B, A) with everything scored, from the concatenated input."""
        policy, (weight, actions) = self.policy, tables
        hidden = F.relu(F.linear(torch.cat([embeddings, policy.label[at]], dim=1), weight, policy.of_document.bias))
        scores = F.relu(policy.second(hidden)) @ actions.T
        if flat is not None:
            scores = scores + F.pad(flat, (0, 1))
        for bias in (policy.bias, self.bias):
            scores = scores if bias is None else scores + bias
        return scores

    def log_probs(
        self, tables: tuple[Tensor, Tensor], embeddings: Tensor, flat: Tensor | None, at: Tensor, open_: Tensor
    ) -> Tensor:
        """(B, A) log pi."""
        return torch.log_softmax(self.scores(tables, embeddings, flat, at).masked_fill(~open_, float("-inf")), dim=1)

    def walk(
        self, features: Tensor, gold: Tensor | None, steps: int, generator: torch.Generator | None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor, Tensor]], Tensor]:
        """All walks to the last step, sampled with a generator and greedy without one."""
        with torch.no_grad():
            embeddings, logits = self.encode(features)
            flat, tables = logits if self.policy.residual else None, self.tables()
            n = len(features)
            placed = torch.zeros(n, self.stop, dtype=torch.bool)
            open_ = torch.cat([self.top.expand(n, -1), torch.ones(n, 1, dtype=torch.bool)], dim=1)
            at = torch.full((n,), self.stop)
            history, rewards = [], []
            before = _f1(placed, gold) if gold is not None else torch.zeros(n)
            for _ in range(steps):
                log_probs = self.log_probs(tables, embeddings, flat, at, open_)
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

    def reinforced(self, features: Tensor, gold: Tensor, steps: int, generator: torch.Generator) -> Tensor:
        """(B,) the self-critical loss, gamma 0.9."""
        _, history, rewards = self.walk(features, gold, steps, generator)
        _, _, baseline = self.walk(features, gold, steps, None)
        values, future = torch.empty_like(rewards), torch.zeros(len(features))
        for t in reversed(range(steps)):
            future = rewards[t] - baseline[t] + 0.9 * future
            values[t] = future
        at, open_, action = (torch.cat(column) for column in zip(*history, strict=True))
        embeddings, logits = self.encode(features)
        flat = logits.repeat(steps, 1) if self.policy.residual else None
        log_probs = self.log_probs(self.tables(), embeddings.repeat(steps, 1), flat, at, open_)
        taken = log_probs.gather(1, action.unsqueeze(1)).squeeze(1)
        return -(taken * values.flatten()).view(steps, -1).sum(0)

    def local(self, features: Tensor, gold: Tensor) -> Tensor:
        """(B,) binary cross-entropy over the children of the root and of every gold label."""
        embeddings, logits = self.encode(features)
        docs, at = F.pad(gold, (0, 1), value=True).nonzero(as_tuple=True)
        flat = logits[docs] if self.policy.residual else None
        scores = self.scores(self.tables(), embeddings[docs], flat, at)[:, : self.stop]
        losses = F.binary_cross_entropy_with_logits(scores, gold[docs].float(), reduction="none")
        return torch.zeros(len(gold)).index_add(0, docs, (losses * self.children[at]).sum(1))

    def loss(self, features: Tensor, gold: Tensor, steps: int, generator: torch.Generator) -> Tensor:
        """(B,) O = O_RL + O_SL, with lambda 0.5 and alpha 1."""
        flat = F.binary_cross_entropy_with_logits(self.encode(features)[1], gold.float(), reduction="none").sum(1)
        supervised = 0.5 * flat + 0.5 * self.local(features, gold)
        return self.reinforced(features, gold, steps, generator) + supervised / self.stop


def _f1(placed: Tensor, gold: Tensor) -> Tensor:
    hits = (placed & gold).sum(1).float()
    f1: Tensor = f1_from_counts(hits, placed.sum(1).float(), gold.sum(1).float())
    return f1
