"""The network: encoder, flat head and policy as one module, and the three losses of the paper added up (Section 3.2).

::

    O_f  = binary cross-entropy over all labels, from p = sigmoid(W e_d)                              flat_loss
    O_SL = lambda O_f + (1 - lambda) O_l                                                              supervised_loss
    O    = O_RL + alpha O_SL                                                                          training.phases

Losses are sums over labels and steps and means over documents; O_SL is divided by the number of labels, a constant that
the paper leaves to alpha, so that alpha = 1 means the same for every taxonomy.

A network has one *member* (encoder and flat head), or with cross-fitting several: each has not seen one part of the
training documents, so their scores of these are honest, and the mean of all of them scores new documents. A linear
*wide* part (`hilap.wide`) may add its logits to theirs, and of features a *kernel* part (`hilap.kernel_part`) may have
a share in their probabilities. The weights of labels may be tied to what labels are called (`hilap.label_text`) while
the network is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap.corpus import Examples
from hilap.decoding import Coherence, Condensing, Lifting
from hilap.encoders import Encoder, Prepared, evaluating
from hilap.errors import SettingError
from hilap.kernel_part import KernelPart
from hilap.label_text import Called, Tie, Way, drawn_map, gains
from hilap.policy import EXAMPLE_F1, Documents, FirstGreedy, Policy, Score, returns, sampler
from hilap.products import linear, sigmoid
from hilap.settings import PolicySettings
from hilap.taxonomy import Taxonomy
from hilap.wide import Both, BothRows, Wide

MOST_KEPT = 25_000_000  # numbers of documents that are held while biases are tried on them: 100 MB
_LOWEST = -1e9  # below every logit


class Member(nn.Module):
    """One encoder with its flat head."""

    def __init__(self, encoder: Encoder, n_labels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.dim, n_labels)
        bound = encoder.dim**-0.5
        for parameter in self.head.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        self.called: Called | None = None
        self.tie: Tie | None = None  # of the head's weight to what labels are called

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        """(B, D) embeddings and (B, L) flat logits, those of a wide part not counted in."""
        embeddings = self.encoder(batch.deep if isinstance(batch, Both) else batch)
        if self.called is not None and self.tie is not None:
            self.tie.renew(self.head, self.called(self.encoder))
        return embeddings, linear(embeddings, self.head.weight, self.head.bias)


@dataclass(frozen=True)
class Seen:
    """What the network makes of a batch before any walk: one encoding, used by every loss and every step."""

    embeddings: Tensor | None  # (B, D) e_d of the first member; None where the scores are fixed by cross-fitting
    flat: Tensor  # (B, L) flat logits of all members together
    labels: Tensor | None = None  # (L, D) label texts, encoded with the batch, where labels are tied to them
    own: Tensor | None = None  # (B, L) of one member, the flat logits before the max constraint, where there is one


class Network(nn.Module):
    """Members and a policy over a taxonomy.

    Parameters
    ----------
    taxonomy
        The labels.
    encoders
        One fitted encoder, or several for cross-fitting.
    settings
        The shape of the policy.
    generator
        Draws the weights.
    wide
        A linear part whose logits are added to the flat ones. The heads then start at zero: they learn what is left.
    kernel
        A kernel part, which has the share in flat probabilities that the settings give it.
    """

    seen_mean: Tensor
    seen_scale: Tensor
    shortfall: Tensor  # (L,) of a residual policy: see `hilap.decoding.StopBias`

    def __init__(
        self,
        taxonomy: Taxonomy,
        encoders: Sequence[Encoder],
        settings: PolicySettings,
        generator: torch.Generator,
        wide: Wide | None = None,
        kernel: KernelPart | None = None,
    ) -> None:
        super().__init__()
        if len(encoders) > 1 and settings.sees == "document":
            raise SettingError(
                "folds above 1 need sees='flat' or 'profile': several encoders have no one document vector"
            )
        self.sees, self.averaging = settings.sees, settings.averaging
        self.profile = Profile(taxonomy) if settings.sees == "profile" else None
        self.members = nn.ModuleList([Member(encoder, len(taxonomy), generator) for encoder in encoders])
        self.wide, self.kernel, self.kernel_share = wide, kernel, settings.kernel_share
        if wide is not None:
            for parameter in (weight for member in self.members for weight in member.head.parameters()):  # type: ignore[union-attr]
                nn.init.zeros_(parameter)
        self.lifting = Lifting(taxonomy) if settings.lift else None
        self.constraint = Lifting(taxonomy) if settings.max_constraint else None
        self.condensing = Condensing(taxonomy) if settings.condense else None
        self.capping = Coherence(taxonomy)  # of flat probabilities
        self.dropout = nn.Dropout(settings.state_dropout)
        width = seen_width(settings.sees, encoders[0].dim, taxonomy)
        self.policy = Policy(
            taxonomy,
            width,
            hidden=settings.hidden,
            width=settings.width,
            dag_rule=settings.dag_rule,
            label_bias=settings.label_bias,
            residual=settings.residual,
            temperature=settings.temperature,
            generator=generator,
        )
        with torch.no_grad():
            self.policy.label.mul_(settings.start_scale)
            self.policy.e_stop.mul_(settings.start_scale)
        self.register_buffer("seen_mean", torch.zeros(0 if settings.sees == "document" else width))
        self.register_buffer("seen_scale", torch.ones_like(self.seen_mean))
        self.register_buffer("shortfall", torch.zeros(len(taxonomy) if settings.residual else 0))
        self.start_scale = settings.start_scale
        self.tie: Tie | None = None  # of the policy's labels to what they are called

    @property
    def encoder(self) -> Encoder:
        """The first member's encoder: it prepares documents for all members."""
        encoder: Encoder = self.members[0].encoder  # type: ignore[assignment]
        return encoder

    def see(self, batch: Any) -> Seen:
        """Encode a batch, once."""
        seen = [member(batch) for member in self.members]
        logits = [own for _, own in seen]
        if self.wide is not None:
            beside = self.wide(batch.wide)
            logits = [own + beside for own in logits]
        if self.condensing is not None and all(torch.equal(own, logits[0]) for own in logits):
            logits = logits[:1]  # the wide part alone speaks: condensed once instead of once for each member
        called = self._members()[0].called
        flat = averaged([self.constrained(own) for own in logits], self.averaging)
        if self.kernel is not None:
            flat = self.beside_kernel(flat, [self.kernel(batch.wide)])
        own = None if self.constraint is None or len(logits) > 1 else logits[0]
        return Seen(seen[0][0], flat, None if called is None else called.latest, own)

    def constrained(self, logits: Tensor) -> Tensor:
        """(B, L) the logits of a member as they are read: with the max constraint, at least as high as all below.

        Or, with `condense`, as their isotonic regression.
        """
        if self.condensing is not None:
            return self.condensing(logits)
        return logits if self.constraint is None else self.constraint(logits)

    def beside_kernel(self, flat: Tensor, said: Sequence[Tensor]) -> Tensor:
        """(B, L) the flat logits of members, with the kernel part's share in their probabilities.

        `said` are its logits, of several machines their mean.
        """
        kernel = averaged([self.constrained(logits) for logits in said], "probabilities")
        return averaged([flat, kernel], "probabilities", [1 - self.kernel_share, self.kernel_share])

    def compared(self, logits: Tensor, gold: Tensor) -> Tensor:
        """(B, L) the logits of a member as its loss compares them with gold sets.

        With the max constraint a label that is not gold counts as the highest of itself and all below it, a gold one as
        the highest of the *gold* ones among these: one below it that is wrong must not be what it is right by.
        """
        if self.constraint is None:
            return logits
        right = gold > 0
        both = torch.cat([logits, logits.masked_fill(~right, _LOWEST)])
        plain, rightly = self.constraint(both).chunk(2)
        return torch.where(right, rightly, plain)

    def prepare(self, examples: Examples) -> Prepared:
        """A block of documents, ready to be cut into batches."""
        prepared = self.encoder.prepare(examples)
        beside = self.beside
        return prepared if beside is None else BothRows(prepared, beside.prepare(examples))

    @property
    def beside(self) -> Wide | KernelPart | None:
        """What stands beside the members: a wide part has texts, a kernel part features."""
        return self.kernel if self.wide is None else self.wide

    def documents(self, seen: Seen, bias: Tensor | None = None) -> Documents:
        """The batch ready for walking."""
        return self.biased(self.halves(seen), seen, bias)

    def halves(self, seen: Seen) -> Documents:
        """What of it no bias changes: who tries several biases computes it once, and `biased` for each."""
        if self.tie is not None:
            self.tie.renew(self.policy, self._called() if seen.labels is None else seen.labels)
        if self.sees == "document":
            state = seen.embeddings
        else:
            state = (self._of_scores(seen.flat) - self.seen_mean) / self.seen_scale
        if state is None:
            raise SettingError("a policy that sees document vectors needs them; use sees='flat' with cross-fitting")
        return self.policy.documents(self.dropout(state))

    def keeps(self, n: int) -> bool:
        """Whether what `kept` leaves of so many documents is little enough to be held while biases are tried."""
        return n * (self.policy.of_document.out_features + self.policy.n_labels) <= MOST_KEPT

    def kept(self, seen: Seen) -> tuple[Seen, Documents]:
        """What of a batch is needed to try biases on it: its halves and its flat logits."""
        return self.trimmed(seen), self.halves(seen)

    @staticmethod
    def trimmed(seen: Seen) -> Seen:
        """Without document vectors, which are wide, and which nothing asks for once there are halves."""
        return replace(seen, embeddings=None)

    def biased(self, documents: Documents, seen: Seen, bias: Tensor | None) -> Documents:
        """The batch ready for walking, from its halves."""
        flat, rest = self._lifted(seen.flat, bias)
        return replace(documents, flat=flat if self.policy.residual else None, bias=rest)

    def _lifted(self, flat: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Flat logits with parents lifted to their children, biases of labels counted in, and what is left of these."""
        own = flat.new_zeros(()) if self.policy.bias is None else self.policy.bias.detach()[: self.policy.stop]
        if bias is None or self.lifting is None:
            return flat if self.lifting is None else self.lifting(flat + own) - own, bias
        labels, stop = bias[: self.policy.stop], bias[self.policy.stop :]
        return self.lifting(flat + own + labels) - own, torch.cat([torch.zeros_like(labels), stop])

    def call_labels(self, rows: Prepared, way: Way, generator: torch.Generator) -> None:
        """Let the weights of labels start at, or be tied to, what labels are called.

        Parameters
        ----------
        rows
            The label texts, prepared by the network's encoder (`hilap.label_text.label_rows`).
        way
            `start` or `tied`. Heads beside a wide part start at zero in any case.
        generator
            Draws the map to the policy's labels.
        """
        n_labels, width = self.policy.n_labels, self.policy.label.shape[1]
        for member in self._members():
            member.called = Called(rows, member.encoder)
            member.tie = Tie(member.head, "weight", gains(member.encoder.dim, zero=self.wide is not None), n_labels)
        map_ = drawn_map(self.encoder.dim, width, scale=self.start_scale, generator=generator)
        self.tie = Tie(self.policy, "label", map_, n_labels)
        if way == "start":
            self.fold()

    def fold(self) -> None:
        """Make weights that are tied to label texts plain ones, of the same value. Nothing is left of the texts."""
        if self.tie is not None:
            self.tie.fold(self.policy, self._called())
            self.tie = None
        self.fold_members()

    def fold_members(self) -> None:
        """The same of the heads alone."""
        for member in self._members():
            if member.tie is not None and member.called is not None:
                member.tie.fold(member.head, member.called.still(member.encoder))
                member.called.forget()
            member.tie = None
            member.called = None if self.tie is None else member.called

    def _members(self) -> list[Member]:
        return [member for member in self.members if isinstance(member, Member)]

    def _called(self) -> Tensor:
        """(L, D) label texts, encoded by the first member without gradients."""
        first = self._members()[0]
        assert first.called is not None  # noqa: S101 - what is tied was called
        return first.called.still(first.encoder)

    @property
    def scaled(self) -> bool:
        """Whether what the policy sees needs no standardising (any more)."""
        return self.sees == "document" or bool(self.seen_mean.any())

    @torch.no_grad()
    def scale(self, logits: Tensor) -> None:
        """Standardise what a policy sees of flat logits: by the mean and spread over training documents."""
        seen = self._of_scores(logits)
        self.seen_mean.copy_(seen.mean(0))
        self.seen_scale.copy_(seen.std(0, unbiased=False) + 0.3)  # a label that never varies must not be blown up

    def _of_scores(self, logits: Tensor) -> Tensor:
        return logits if self.profile is None else self.profile(logits)


def averaged(each: Sequence[Tensor], way: str, shares: Sequence[float] | None = None) -> Tensor:
    """Of the logits of several members the mean, or the logit of the mean of their probabilities, by shares if given.

    Examples
    --------
    >>> sure, unsure = torch.tensor([2.0]), torch.tensor([-6.0])
    >>> averaged([sure, unsure], "logits")
    tensor([-2.])
    >>> averaged([sure, unsure], "probabilities")
    tensor([-0.2345])
    """
    if len(each) == 1:
        return each[0]
    if way == "logits":
        return torch.stack(list(each)).mean(0)
    yes, no = torch.zeros_like(each[0]), torch.zeros_like(each[0])
    for logits, share in zip(each, [1.0] * len(each) if shares is None else shares, strict=True):
        bounded = logits.clamp(-80, 80)  # beyond, a probability is too small for a number of 32 bits
        yes, no = yes + share * sigmoid(bounded), no + share * sigmoid(-bounded)
    return yes.log() - no.log()


def seen_width(sees: str, dim: int, taxonomy: Taxonomy) -> int:
    """How many numbers a policy sees of a document."""
    return {"document": dim, "flat": len(taxonomy), "profile": Profile.width(taxonomy)}[sees]


class Profile(nn.Module):
    """How sure the flat model is of a document, whichever labels it is sure of.

    Its best logits in falling order, and for each level and all together the logarithm of how many labels it expects;
    how clear-cut its probabilities are. A few dozen numbers, from which a policy can learn when to stop without
    learning documents by heart.
    """

    BEST = 48
    by_level: Tensor

    def __init__(self, taxonomy: Taxonomy) -> None:
        super().__init__()
        levels = torch.from_numpy(taxonomy.levels).long() - 1
        parts = F.one_hot(levels, self._levels(taxonomy)).T.float()
        self.register_buffer("by_level", torch.cat([parts, torch.ones(1, len(taxonomy))]), persistent=False)

    @classmethod
    def width(cls, taxonomy: Taxonomy) -> int:
        """How many numbers it is."""
        return min(cls.BEST, len(taxonomy)) + cls._levels(taxonomy) + 3

    @staticmethod
    def _levels(taxonomy: Taxonomy) -> int:
        return int(taxonomy.levels.max(initial=0))

    def forward(self, logits: Tensor) -> Tensor:
        """(B, width) from (B, L) flat logits."""
        best = logits.topk(min(self.BEST, logits.shape[1]), dim=1).values
        chances = sigmoid(logits)
        total = self.by_level[-1:]
        expected = linear(chances, self.by_level, None)
        squares = linear(chances * chances, total, None)
        entropy = linear(F.softplus(logits) - chances * logits, total, None)
        return torch.cat([best, (torch.cat([expected, squares, entropy], dim=1) + 1e-3).log()], dim=1)


def flat_loss(logits: Tensor, gold: Tensor) -> Tensor:
    """(B,) O_f."""
    return F.binary_cross_entropy_with_logits(logits, gold.to(logits.dtype), reduction="none").sum(1)


def supervised_loss(
    policy: Policy, documents: Documents, logits: Tensor, gold: Tensor, *, flat_share: float, stay: bool = False
) -> Tensor:
    """(B,) O_SL divided by the number of labels. What has no weight is not computed."""
    loss = logits.new_zeros(len(gold))
    if flat_share > 0:
        loss = loss + flat_share * flat_loss(logits, gold)
    if flat_share < 1:
        loss = loss + (1 - flat_share) * policy.local_loss(documents, gold, stay=stay)
    return loss / policy.n_labels


def reinforced_loss(
    policy: Policy,
    documents: Documents,
    gold: Tensor,
    *,
    max_steps: int,
    gamma: float,
    generator: torch.Generator,
    rollouts: int = 1,
    baseline: Literal["greedy", "leave-one-out"] = "greedy",
    scores: Sequence[Score] = (EXAMPLE_F1,),
    entropy_bonus: float = 0.0,
    standardise: bool = False,
) -> tuple[Tensor, Tensor]:
    """(B,) O_RL and (B,) what the sampled walks gained. With one rollout and `greedy` it is `self_critical_loss`.

    Parameters
    ----------
    rollouts
        Sampled walks a document; their losses are averaged.
    baseline
        What a walk's rewards are compared with: the greedy walk's, or the mean of the document's other walks.
    entropy_bonus, standardise
        Ingredients of the published code: the policy's entropy is added to the objective, divided by the number of open
        actions, as that code takes a mean over candidates; returns are standardised over all steps and documents of
        the batch.
    """
    n = len(documents)
    critic = int(baseline == "greedy")  # the greedy walks come first, in the same loop as the sampled ones
    docs = torch.arange(n, device=gold.device).repeat(critic + rollouts)
    choose = FirstGreedy(n, sampler(generator)) if critic else sampler(generator)
    walks = policy.rollout(documents, gold, choose=choose, max_steps=max_steps, docs=docs, scores=scores)
    rewards = walks.rewards.view(len(walks.rewards), critic + rollouts, n)
    if critic:
        gains = rewards[:, 1:] - rewards[:, :1]
        walks = walks.part(slice(n, None))
    else:
        gains = rewards - (rewards.sum(1, keepdim=True) - rewards) / (rollouts - 1)
    replay = policy.replay(documents, walks)
    values = returns(gains.flatten(1), gamma)[replay.step, replay.row]
    if standardise and len(values) > 1:
        values = (values - values.mean()) / (values.std() + 1e-8)
    losses = -replay.taken * values
    if entropy_bonus:
        losses = losses - entropy_bonus * replay.entropy / torch.diff(
            replay.starts
        )  # the published code's mean over actions
    total = replay.add_up(losses, rollouts * n).view(rollouts, n).mean(0)
    gained = rewards[:, critic:].sum(0).mean(0)
    return total, gained


__all__ = [
    "Member",
    "Network",
    "Profile",
    "Seen",
    "evaluating",
    "flat_loss",
    "reinforced_loss",
    "seen_width",
    "supervised_loss",
]
