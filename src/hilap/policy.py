"""The method: a label assignment policy (Mao, Tian, Han, Ren, EMNLP 2019), to be read beside the paper.

::

    state    s_t = ReLU(W1 ReLU(W2 [e_d ; l_t]))          document embedding and current label     Policy.states
    actions  A_t = unvisited children of placed labels, and stop                                   Policy.step
    policy   pi(a | s_t) = softmax(A_t s_t)                                                        Policy.log_probs
    reward   r_t = F1_t - F1_{t-1}                         stop earns nothing                      worth.gains
    loss     O_g = - sum_t log pi(a_t) v_t                                                         self_critical_loss
             v_j = sum_{t>=j} gamma^{t-j} (r_t - r_t of the greedy rollout)                        returns
    local    O_l = binary cross-entropy over the children of the root and of every gold label      Policy.local_loss

One set of letters: B documents, R rows (walks; several may belong to one document), L labels, A = L + 1 actions (the
last is stop), T steps, D width of a document, H hidden width, C width of a label. Index L stands for *stop* among the
actions and for *the root* among the places where a document can be.

What keeps a step small: the first layer is split, `W2 [e_d ; l_t] = W_d e_d + W_l l_t`, so the document's half is
computed once. The state depends on nothing but the document and the current label, so walks are taken without gradients
and their M decisions are scored again in one pass with them, candidates only (`hilap.pairs`). Walks that have stopped
cost nothing: after stop only stop is open, its log-probability is 0, and it adds nothing to any loss. On the CPU the
walks themselves run in compiled kernels (`hilap.walker`); the loop in `Policy.rollout` says what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap.choosing import Choose, FirstGreedy, Sampler, greedy, sampler, uniform_of
from hilap.episodes import Episode, Record, Replay, retraced
from hilap.known import KnownStates
from hilap.pairs import log_softmax, log_sum_exp, products, segments
from hilap.products import linear, sigmoid
from hilap.rows import Rows
from hilap.taxonomy import Taxonomy
from hilap.walker import Walker, sign_of
from hilap.worth import EXAMPLE_F1, Score

DagRule = Literal["ancestors", "any"]

CLOSED = float("-inf")


@dataclass(frozen=True)
class Documents:
    """A batch of documents, ready for walking: everything that is computed once for all steps and losses."""

    half: Tensor  # (B, H) W_d e_d, the document's half of the first layer
    flat: Tensor | None = None  # (B, L) flat logits, added to the action scores by a residual policy
    bias: Tensor | None = None  # (A,) added to the action scores when decoding, such as a stop bias
    known: KnownStates | None = None  # states that several losses of one update share

    def __len__(self) -> int:
        return len(self.half)

    def sharing(self) -> Documents:
        """The same batch for losses that are added up: a state that two of them ask for is computed once."""
        return replace(self, known=KnownStates())


ScoresOf = Callable[[Documents, Tensor, Tensor, Tensor], Tensor]
"""A batch, (R,) documents, (R,) places, (N,) labels -> (R, N + 1) their scores and that of stop: `Policy.scores`."""


@dataclass(frozen=True)
class Walk:
    """Where R walks stand."""

    at: Tensor  # (R,) current label l_t; L for the root
    placed: Tensor  # (R, L) bool
    open: Tensor  # (R, A) bool, the action space A_t; after stop, stop alone


Allow = Callable[[Walk], Tensor]
"""A walk -> (R, A) the actions that may be taken, among the open ones; stop must be one where nothing else is."""


class Policy(nn.Module):
    """The policy network over a taxonomy.

    Parameters
    ----------
    taxonomy
        The labels and their edges.
    dim
        The width D of a document embedding.
    hidden, width
        The sizes H of the first layer and C of states and labels (paper: 500 and 50 for text, 1,000 for features).
    dag_rule
        `ancestors`: placing a label places all its ancestors too, so that every set is closed upward. `any`: the letter
        of the paper, a child needs one placed parent. On a tree the two are the same.
    label_bias
        A learned bias for each action, as in the published code; not in the paper.
    residual
        Action score = flat logit of the label + A_t s_t + a bias; stop's bias is the logit of a threshold. So the walk
        starts as the thresholded flat model, made consistent. Not in the paper.
    temperature
        Of the softmax. Below 1 the sampled walks stay nearer to the greedy one. The paper has none.
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        dim: int,
        *,
        hidden: int = 500,
        width: int = 50,
        dag_rule: DagRule = "ancestors",
        label_bias: bool = False,
        residual: bool = False,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_labels = self.stop = self.root = len(taxonomy)
        self.residual = residual
        self.temperature = temperature
        self.of_document = nn.Linear(dim, hidden)  # W_d and the layer's bias
        self.of_label = nn.Linear(width, hidden, bias=False)  # W_l
        self.second = nn.Linear(hidden, width)  # W1
        self.label = nn.Parameter(torch.empty(len(taxonomy) + 1, width))  # l; the last row is the root's
        self.e_stop = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.zeros(len(taxonomy) + 1)) if label_bias or residual else None
        self._walker: Walker | None = None
        self._build_tables(taxonomy, dag_rule)
        self.reset(generator)

    def _build_tables(self, taxonomy: Taxonomy, dag_rule: DagRule) -> None:
        """Which labels an action places, and which children a label opens; the root's are the top labels."""
        children = taxonomy.child_matrix.sorted_indices()
        top = sorted(taxonomy.index(label) for label in taxonomy.top_labels)
        starts = torch.cat([torch.from_numpy(children.indptr).long(), torch.tensor([children.nnz + len(top)])])
        self.below = Rows(starts, torch.cat([torch.from_numpy(children.indices).long(), torch.tensor(top).long()]))
        if dag_rule == "ancestors":
            places = taxonomy.closure
            self.places = Rows(torch.from_numpy(places.indptr), torch.from_numpy(places.indices))
        else:
            self.places = Rows(torch.arange(self.n_labels + 1), torch.arange(self.n_labels))

    def reset(self, generator: torch.Generator | None = None) -> None:
        """Draw all weights anew."""
        for layer in (self.of_document, self.of_label, self.second):
            bound = layer.in_features**-0.5
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            if layer.bias is not None:
                nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
        nn.init.normal_(self.label, std=self.label.shape[1] ** -0.5, generator=generator)
        self.reset_stop(generator)

    def reset_stop(self, generator: torch.Generator | None = None, scale: float = 1.0) -> None:
        """Draw the stop embedding anew: HiLAP takes all of HiLAP-SL but this (Section 3.1)."""
        nn.init.normal_(self.e_stop, std=scale * self.label.shape[1] ** -0.5, generator=generator)

    # -- states and action scores -----------------------------------------------------------------------------------

    def documents(self, embeddings: Tensor, flat: Tensor | None = None, bias: Tensor | None = None) -> Documents:
        """The batch's half of the first layer, from (B, D) embeddings; a residual policy needs (B, L) flat logits."""
        half = linear(embeddings, self.of_document.weight, self.of_document.bias)
        return Documents(half, flat if self.residual else None, bias)

    def states(self, documents: Documents, docs: Tensor, at: Tensor) -> Tensor:
        """(R, C) s_t of documents `docs` (R,) standing at labels `at` (R,).

        Each distinct label is projected once, and each distinct pair of document and label computed once.
        """
        pairs, which = torch.unique(docs * len(self.label) + at, return_inverse=True)

        def compute(pairs: Tensor) -> Tensor:
            places, place = torch.unique(pairs % len(self.label), return_inverse=True)
            halves = self.of_label(self.label.index_select(0, places)).index_select(0, place)
            hidden = documents.half.index_select(0, pairs // len(self.label)) + halves
            return F.relu(self.second(F.relu(hidden)))

        known = documents.known if torch.is_grad_enabled() else None
        states = compute(pairs) if known is None else known.of(pairs, compute)
        return states.index_select(0, which)

    def scores(self, documents: Documents, docs: Tensor, at: Tensor, labels: Tensor | None = None) -> Tensor:
        """(R, A) A_t s_t, or (R, len(labels) + 1) for some labels only; the last column is stop."""
        states = self.states(documents, docs, at)
        embeddings = self.label[: self.n_labels] if labels is None else self.label[labels]
        scores = torch.cat([states @ embeddings.T, (states @ self.e_stop).unsqueeze(1)], dim=1)
        if documents.flat is not None:
            flat = documents.flat[docs] if labels is None else documents.flat[docs.unsqueeze(1), labels]
            scores = scores + F.pad(flat, (0, 1))
        for bias in (self.bias, documents.bias):
            if bias is not None:
                scores = scores + (bias if labels is None else torch.cat([bias[labels], bias[self.stop :]]))
        return scores

    def pair_scores(self, documents: Documents, docs: Tensor, at: Tensor, starts: Tensor, items: Tensor) -> Tensor:
        """(P,) the same for some actions of each row: those of row r are items[starts[r] : starts[r + 1]]."""
        states = self.states(documents, docs, at)
        scores = products(states, self.label, self.e_stop, starts, items)
        if documents.flat is not None:
            flat = F.pad(documents.flat, (0, 1)).flatten()
            scores = scores + flat.index_select(0, docs[segments(starts)] * (self.n_labels + 1) + items)
        for bias in (self.bias, documents.bias):
            if bias is not None:
                scores = scores + bias.index_select(0, items)
        return scores

    def log_probs(self, documents: Documents, docs: Tensor, at: Tensor, open_: Tensor) -> Tensor:
        """(R, A) log pi(a | s_t); minus infinity where an action is not open."""
        labels = open_[:, : self.stop].any(0).nonzero().squeeze(1)
        columns = torch.cat([labels, labels.new_tensor([self.stop])])
        scores = self.scores(documents, docs, at, labels) / self.temperature
        found = torch.log_softmax(scores.masked_fill(~open_[:, columns], CLOSED), dim=1)
        return found.new_full(open_.shape, CLOSED).index_copy(1, columns, found)

    # -- the decision process ---------------------------------------------------------------------------------------

    def start(self, rows: int) -> Walk:
        """Walks at the root: the top labels are open, and stop."""
        device = self.label.device
        open_ = torch.zeros(rows, self.n_labels + 1, dtype=torch.bool, device=device)
        open_[:, self.below.of(torch.tensor([self.root], device=device))[1]] = True
        open_[:, self.stop] = True
        at = torch.full((rows,), self.root, device=device)
        return Walk(at, torch.zeros(rows, self.n_labels, dtype=torch.bool, device=device), open_)

    def step(self, walk: Walk, action: Tensor) -> Walk:
        """Take one action per walk. What was placed is never open again; after stop, stop is all that is left."""
        at, placed, open_ = walk.at.clone(), walk.placed.clone(), walk.open.clone()
        open_[action == self.stop, : self.stop] = False
        rows = (action != self.stop).nonzero().squeeze(1)
        at[rows] = action[rows]
        which, label = self.places.of(action[rows])
        row = rows[which]
        placed[row, label] = True
        which, child = self.below.of(label)
        open_[row[which], child] = True
        open_[:, : self.stop] &= ~placed
        return Walk(at, placed, open_)

    @torch.no_grad()
    def rollout(
        self,
        documents: Documents,
        gold: Tensor | None,
        *,
        choose: Choose,
        max_steps: int,
        docs: Tensor | None = None,
        scores: Sequence[Score] = (EXAMPLE_F1,),
        allow: Allow | None = None,
        follow: Tensor | None = None,
    ) -> Episode:
        """Walk until every walk has stopped or taken `max_steps` steps.

        Parameters
        ----------
        documents, docs
            The batch, and which document each walk is for (default: one walk each).
        gold
            (B, L) gold sets, for the rewards; without them there are none.
        choose
            Picks the actions: `greedy`, or a `sampler`.
        scores
            The rewards are the gains in the sum of these.
        allow
            Closes actions that are open by the rules of the taxonomy: constraints of a user.
        follow
            (R, L) sets whose `oracle` actions are the only ones that are taken.
        """
        docs = torch.arange(len(documents), device=documents.half.device) if docs is None else docs
        truth = None if gold is None else gold[docs].bool()
        draws = uniform_of(choose, max_steps, len(docs)) if allow is None and docs.device.type == "cpu" else None
        if draws is not None:  # what follows, compiled
            walker = self.walker()
            batch = walker.batch(documents.half, documents.flat, documents.bias)
            sets = None if follow is None else follow.numpy()
            actions, _ = walker.walk(batch, docs.numpy(), steps=max_steps, uniform=draws, follow=sets)
            return retraced(walker, docs, actions, truth, scores, documents.half)
        walk, record = self.start(len(docs)), Record(docs)
        everything = torch.arange(self.n_labels + 1, device=docs.device)
        for _ in range(max_steps):
            open_ = walk.open if allow is None else allow(walk)
            rows = open_[:, : self.stop].any(1).nonzero().squeeze(1)
            if not len(rows):
                break
            log_probs = self.log_probs(documents, docs[rows], walk.at[rows], open_[rows])
            if follow is not None:
                log_probs = log_probs.masked_fill(~oracle(open_[rows], follow[rows]), CLOSED)
            action = torch.full_like(docs, self.stop).index_copy(0, rows, choose(log_probs, rows, everything))
            before, walk = walk, self.step(walk, action)
            record.add(rows, open_[rows], action, walk.placed & ~before.placed)
        return record.episode(walk.placed, truth, scores, documents.half)

    def replay(self, documents: Documents, episode: Episode) -> Replay:
        """Score all decisions of an episode again in one pass, with gradients."""
        docs, starts, items = episode.docs[episode.row], episode.starts, episode.items
        scores = self.pair_scores(documents, docs, episode.at, starts, items) / self.temperature
        actions = episode.actions[episode.step, episode.row]
        return Replay(episode.step, episode.row, starts, items, log_softmax(scores, starts), actions)

    def walker(self) -> Walker:
        """The policy as the compiled kernels read it; kept in evaluation mode as long as no weight changes."""
        kept = self._walker
        if kept is not None and kept.sign == sign_of(self):
            return kept
        made = Walker(self)
        self._walker = None if self.training else made
        return made

    def train(self, mode: bool = True) -> Policy:
        """Set the mode, as in torch; where it changes, what was derived from the weights is forgotten."""
        self._walker = self._walker if not mode and not self.training else None
        return super().train(mode)

    # -- HiLAP-SL: top-down, supervised (Section 3.1) ---------------------------------------------------------------

    def local_loss(self, documents: Documents, gold: Tensor, *, stay: bool = False) -> Tensor:
        """(B,) O_l: at the root and at every gold label, binary cross-entropy over its children (sum, as in the paper).

        A document with K gold labels on a level is copied K times (Figure 5): here, one row for each (document, place).
        `stay` makes every place but the root a positive candidate of its own, as in the published code.
        """
        docs, at = F.pad(gold.bool(), (0, 1), value=True).nonzero(as_tuple=True)  # (R,) the root is gold for everyone
        which, child = self.below.of(at)
        logits = self.child_logits(documents, docs, at, which, child)
        losses = F.binary_cross_entropy_with_logits(logits, gold[docs[which], child].to(logits.dtype), reduction="none")
        loss = losses.new_zeros(len(documents)).index_add(0, docs[which], losses)
        if stay:
            docs, at = gold.bool().nonzero(as_tuple=True)
            itself = self.pair_scores(documents, docs, at, torch.arange(len(at) + 1, device=at.device), at)
            loss = loss.index_add(0, docs, F.softplus(-itself))
        return loss

    def child_logits(
        self,
        documents: Documents,
        docs: Tensor,
        at: Tensor,
        which: Tensor,
        child: Tensor,
        scores: ScoresOf | None = None,
    ) -> Tensor:
        """(M,) C_t s_t: the logit of each child of each place, for ragged rows `which` (M,), `child` (M,)."""
        parents = (torch.diff(self.below.starts)[at] > 0).nonzero().squeeze(1)  # leaves have nothing to decide
        position = torch.empty_like(at).index_copy(0, parents, torch.arange(len(parents), device=at.device))[which]
        if scores is None:
            starts = torch.searchsorted(position, torch.arange(len(parents) + 1, device=at.device))
            return self.pair_scores(documents, docs[parents], at[parents], starts, child)
        labels, column = torch.unique(child, return_inverse=True)
        return scores(documents, docs[parents], at[parents], labels)[position, column]

    @torch.no_grad()
    def top_down(self, documents: Documents, *, threshold: float = 0.5, scores: ScoresOf | None = None) -> Tensor:
        """(B, L) bool: HiLAP-SL's own inference. A label is placed if its local probability is above the threshold."""
        placed = torch.zeros(len(documents), self.n_labels, dtype=torch.bool, device=self.label.device)
        docs = torch.arange(len(documents), device=placed.device)
        at = torch.full_like(docs, self.root)
        while len(docs):
            which, child = self.below.of(at)
            if not len(which):
                break
            yes = sigmoid(self.child_logits(documents, docs, at, which, child, scores)) > threshold
            docs_next, child = docs[which[yes]], child[yes]
            new = ~placed[docs_next, child]
            docs_next, child = docs_next[new], child[new]
            which, label = self.places.of(child)
            placed[docs_next[which], label] = True
            # One visit to each (document, label): in a DAG two parents may propose the same child in one level.
            pairs = torch.unique(docs_next * (self.n_labels + 1) + child)
            docs, at = pairs // (self.n_labels + 1), pairs % (self.n_labels + 1)
        return placed

    @torch.no_grad()
    def local_marginals(self, documents: Documents, *, least: float = 1e-4, scores: ScoresOf | None = None) -> Tensor:
        """(B, L) HiLAP-SL's probability of each label: the largest product of local probabilities along a path.

        Places less probable than `least` are not visited: what is below them has probability 0.
        """
        found = torch.zeros(len(documents), self.n_labels, device=self.label.device)
        docs = torch.arange(len(documents), device=found.device)
        at, chance = torch.full_like(docs, self.root), torch.ones(len(docs), device=found.device)
        while len(docs):
            which, child = self.below.of(at)
            if not len(which):
                break
            value = chance[which] * sigmoid(self.child_logits(documents, docs, at, which, child, scores))
            better = (value > found[docs[which], child]) & (value >= least)
            pairs = docs[which[better]] * self.n_labels + child[better]
            found.view(-1).scatter_reduce_(0, pairs, value[better], "amax")
            pairs = torch.unique(pairs)
            docs, at, chance = pairs // self.n_labels, pairs % self.n_labels, found.view(-1)[pairs]
        # Placing a label places its ancestors, so none of them is less probable: in a DAG also those off the best path.
        docs, label = found.nonzero(as_tuple=True)
        which, above = self.places.of(label)
        pairs = docs[which] * self.n_labels + above
        found.view(-1).scatter_reduce_(0, pairs, found[docs, label][which], "amax")
        return found


def returns(rewards: Tensor, gamma: float) -> Tensor:
    """(T, R) v_j = sum over t >= j of gamma^(t-j) r_t."""
    t = torch.arange(len(rewards), device=rewards.device)
    discounts = (gamma ** (t - t.unsqueeze(1)).clamp_min(0)).to(rewards.dtype).triu()  # (T, T)
    return discounts @ rewards


def same_length(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Rewards of two rollouts with zeros behind the shorter one."""
    steps = max(len(a), len(b))
    return F.pad(a, (0, 0, 0, steps - len(a))), F.pad(b, (0, 0, 0, steps - len(b)))


def self_critical_loss(
    policy: Policy,
    documents: Documents,
    gold: Tensor,
    *,
    max_steps: int,
    gamma: float,
    choose: Choose,
    scores: Sequence[Score] = (EXAMPLE_F1,),
) -> Tensor:
    """(B,) O_g of the paper: a sampled rollout, rewarded for what it gains over the greedy one."""
    sampled = policy.rollout(documents, gold, choose=choose, max_steps=max_steps, scores=scores)
    baseline = policy.rollout(documents, gold, choose=greedy, max_steps=max_steps, scores=scores)
    theirs, ours = same_length(baseline.rewards, sampled.rewards)
    values = returns(ours - theirs, gamma)
    replay = policy.replay(documents, sampled)
    return replay.add_up(-replay.taken * values[replay.step, replay.row], len(documents))


def oracle(open_: Tensor, gold: Tensor) -> Tensor:
    """(R, K) the best of some actions, stop being the last, where `open_` (R, K) are open and `gold` (R, K - 1) right.

    Gold sets are closed upward, so every gold label not yet placed is on the frontier or below one that is: the best
    actions are exactly the gold labels on the frontier, and stop where there are none.
    """
    frontier = open_[:, :-1] & gold
    return torch.cat([frontier, ~frontier.any(1, keepdim=True)], dim=1)


def imitation_loss(policy: Policy, documents: Documents, gold: Tensor, *, max_steps: int, choose: Choose) -> Tensor:
    """(B,) - log of the probability of the oracle's actions, along walks of oracle actions picked by `choose`. Ours."""
    truth = gold.bool()
    walks = policy.rollout(documents, None, choose=choose, max_steps=max_steps, follow=truth)
    replay = policy.replay(documents, walks)
    which = segments(replay.starts)
    right = F.pad(truth, (0, 1))[replay.row[which], replay.items]
    some = torch.zeros_like(replay.row).index_add(0, which, right.long()) > 0
    best = right | ((replay.items == policy.stop) & ~some[which])
    share = log_sum_exp(replay.log_probs.masked_fill(~best, CLOSED), replay.starts)
    return replay.add_up(-share, len(documents))


__all__ = [
    "CLOSED",
    "EXAMPLE_F1",
    "Allow",
    "Choose",
    "DagRule",
    "Documents",
    "Episode",
    "FirstGreedy",
    "Policy",
    "Replay",
    "Sampler",
    "Score",
    "ScoresOf",
    "Walk",
    "greedy",
    "imitation_loss",
    "oracle",
    "returns",
    "same_length",
    "sampler",
    "self_critical_loss",
    "uniform_of",
]
