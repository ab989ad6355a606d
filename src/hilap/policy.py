"""The method: a label assignment policy (Mao, Tian, Han, Ren, EMNLP 2019), to be read beside the paper.

::

    state    s_t = ReLU(W1 ReLU(W2 [e_d ; l_t]))          document embedding and current label     Policy.states
    actions  A_t = unvisited children of placed labels, and stop                                   Policy.step
    policy   pi(a | s_t) = softmax(A_t s_t)                                                        Policy.log_probs
    reward   r_t = F1_t - F1_{t-1}                         stop earns nothing                      Policy.rollout
    loss     O_g = - sum_t log pi(a_t) v_t                                                         self_critical_loss
             v_j = sum_{t>=j} gamma^{t-j} (r_t - r_t of the greedy rollout)                        returns
    local    O_l = binary cross-entropy over the children of the root and of every gold label      Policy.local_loss

One set of letters: B documents, R rows (walks; several may belong to one document), L labels, A = L + 1 actions (the
last is stop), T steps, D width of a document, H hidden width, C width of a label. Index L stands for *stop* among the
actions and for *the root* among the places where a document can be.

Three choices keep a step small. The first layer is split, `W2 [e_d ; l_t] = W_d e_d + W_l l_t`, so the document's half
is computed once. The state depends on nothing but the document and the current label, so walks are taken without
gradients and all their steps are scored again in one pass with them. Walks that have stopped leave the batch: after
stop only stop is open, its log-probability is 0, and it adds nothing to any loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap.metrics.flat import f1_from_counts
from hilap.products import linear, sigmoid
from hilap.taxonomy import Taxonomy

DagRule = Literal["ancestors", "any"]
Choose = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(G, K) log-probabilities of the walks still going, (G,) which walks, (K,) which actions -> (G,) chosen columns."""

CLOSED = float("-inf")


@dataclass(frozen=True)
class Score:
    """What a label set is worth, from three sums over labels: in both sets, in the placed one, in the gold one.

    Only sums, so that a walk can keep them up to date label by label. The paper's score is `EXAMPLE_F1`.
    """

    formula: Callable[[Tensor, Tensor, Tensor], Tensor]  # (R,) hits, placed, gold -> (R,)
    weights: Tensor | None = None  # (L,) what a label counts; None: 1
    share: float = 1.0  # of this score in a sum of several

    def weigh(self, labels: Tensor, like: Tensor) -> Tensor:
        """(M,) what these labels count."""
        return like.new_ones(len(labels)) if self.weights is None else self.weights.to(like.dtype)[labels]

    def of_sets(self, placed: Tensor, gold: Tensor) -> Tensor:
        """(R,) the score of (R, L) placed sets against gold ones."""
        weights = torch.ones(placed.shape[1]) if self.weights is None else self.weights
        hits, found, right = ((s.to(weights.dtype) @ weights) for s in (placed & gold, placed, gold))
        return self.share * self.formula(hits, found, right)


EXAMPLE_F1 = Score(f1_from_counts)
"""Example-based F1: the same function that the reports use."""


class Rows(nn.Module):
    """Ragged rows of label indices (CSR), gathered for many rows at once without a loop."""

    starts: Tensor  # (N + 1,)
    items: Tensor

    def __init__(self, starts: Tensor, items: Tensor) -> None:
        super().__init__()
        self.register_buffer("starts", starts.long(), persistent=False)
        self.register_buffer("items", items.long(), persistent=False)

    def of(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """For each of the given rows, its items: (M,) which of the given rows, (M,) the item."""
        first = self.starts[rows]
        lengths = self.starts[rows + 1] - first
        which = torch.repeat_interleave(lengths)
        offset = torch.arange(len(which), device=rows.device) - (torch.cumsum(lengths, 0) - lengths)[which]
        return which, self.items[first[which] + offset]


@dataclass(frozen=True)
class Documents:
    """A batch of documents, ready for walking: everything that is computed once for all steps and losses."""

    half: Tensor  # (B, H) W_d e_d, the document's half of the first layer
    flat: Tensor | None = None  # (B, L) flat logits, added to the action scores by a residual policy
    bias: Tensor | None = None  # (A,) added to the action scores when decoding, such as a stop bias

    def __len__(self) -> int:
        return len(self.half)


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


@dataclass(frozen=True)
class Episode:
    """What happened in one rollout of R walks. Steps after stop have the action stop, no reward and no gradient."""

    docs: Tensor  # (R,) the document of each walk
    at: Tensor  # (T, R) the label each action was taken from
    actions: Tensor  # (T, R)
    columns: Tensor  # (K,) the labels that were open at some time, and stop
    open: Tensor  # (T, R, K) bool, which of them could have been chosen
    rewards: Tensor  # (T, R) gains in example F1
    placed: Tensor  # (R, L) bool, the predicted label sets

    @property
    def going(self) -> Tensor:
        """(T, R) whether a walk had something to decide at this step."""
        return self.open[:, :, :-1].any(-1)

    def part(self, rows: slice) -> Episode:
        """Some of the walks."""
        at, actions, open_, rewards = (x[:, rows] for x in (self.at, self.actions, self.open, self.rewards))
        return Episode(self.docs[rows], at, actions, self.columns, open_, rewards, self.placed[rows])


@dataclass(frozen=True)
class Replay:
    """The steps of an episode at which something could be chosen, scored with gradients: M of them."""

    step: Tensor  # (M,)
    row: Tensor  # (M,)
    columns: Tensor  # (K,) actions
    log_probs: Tensor  # (M, K)
    open: Tensor  # (M, K) bool
    actions: Tensor  # (M,) what was done

    @property
    def taken(self) -> Tensor:
        """(M,) log pi of the actions taken."""
        position = torch.searchsorted(self.columns, self.actions)  # columns ascend, and stop is the last
        return self.log_probs.gather(1, position.unsqueeze(1)).squeeze(1)

    @property
    def entropy(self) -> Tensor:
        """(M,) the entropy of the policy at each step."""
        safe = self.log_probs.masked_fill(~self.open, 0.0)
        return -(safe.exp() * safe * self.open).sum(1)

    def add_up(self, values: Tensor, rows: int) -> Tensor:
        """(rows,) the sum of (M,) values over the steps of each walk."""
        return values.new_zeros(rows).index_add(0, self.row, values)


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
        self._build_tables(taxonomy, dag_rule)
        self.reset(generator)

    def _build_tables(self, taxonomy: Taxonomy, dag_rule: DagRule) -> None:
        """Which labels an action places, and which children a label opens; the root's are the top labels."""
        children, top = taxonomy.child_matrix, [taxonomy.index(label) for label in taxonomy.top_labels]
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

    def reset_stop(self, generator: torch.Generator | None = None) -> None:
        """Draw the stop embedding anew: HiLAP takes all of HiLAP-SL but this (Section 3.1)."""
        nn.init.normal_(self.e_stop, std=self.label.shape[1] ** -0.5, generator=generator)

    # -- states and action scores -----------------------------------------------------------------------------------

    def documents(self, embeddings: Tensor, flat: Tensor | None = None, bias: Tensor | None = None) -> Documents:
        """The batch's half of the first layer, from (B, D) embeddings; a residual policy needs (B, L) flat logits."""
        half = linear(embeddings, self.of_document.weight, self.of_document.bias)
        return Documents(half, flat if self.residual else None, bias)

    def states(self, documents: Documents, docs: Tensor, at: Tensor) -> Tensor:
        """(R, C) s_t of documents `docs` (R,) standing at labels `at` (R,). Each distinct label is projected once."""
        places, which = torch.unique(at, return_inverse=True)
        hidden = documents.half[docs] + self.of_label(self.label[places])[which]
        return F.relu(self.second(F.relu(hidden)))

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

    def log_probs(self, documents: Documents, docs: Tensor, at: Tensor, open_: Tensor) -> Tensor:
        """(R, A) log pi(a | s_t); minus infinity where an action is not open."""
        columns = _some_open(open_)
        everywhere = documents.half.new_full(open_.shape, CLOSED)
        return everywhere.index_copy(1, columns, self.column_log_probs(documents, docs, at, columns, open_[:, columns]))

    def column_log_probs(
        self, documents: Documents, docs: Tensor, at: Tensor, columns: Tensor, open_: Tensor
    ) -> Tensor:
        """(R, K) log pi of the actions `columns` (K,), the last of which is stop, where `open_` (R, K) are open."""
        scores = self.scores(documents, docs, at, columns[:-1]) / self.temperature
        return torch.log_softmax(scores.masked_fill(~open_, CLOSED), dim=1)

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
        walk = Walk(walk.at.clone(), walk.placed.clone(), walk.open.clone())
        self._take(walk, torch.arange(len(action), device=action.device), action)
        return walk

    def _take(self, walk: Walk, rows: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Take actions (G,) in walks `rows` (G,), in place; gives back (M,) rows and (M,) labels that were placed."""
        stops = action == self.stop
        walk.open[rows[stops], : self.stop] = False
        rows, action = rows[~stops], action[~stops]
        walk.at[rows] = action
        which, label = self.places.of(action)
        row = rows[which]
        new = ~walk.placed[row, label]
        row, label = row[new], label[new]
        walk.placed[row, label] = True
        which, child = self.below.of(label)
        walk.open[row[which], child] = ~walk.placed[row[which], child]
        walk.open[row, label] = False
        return row, label

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
        walk = self.start(len(docs))
        tally = _Tally(scores, None if gold is None else gold[docs].bool(), documents.half)
        history: list[tuple[Tensor, ...]] = []
        for _ in range(max_steps):
            open_ = walk.open if allow is None else allow(walk)
            columns = _some_open(open_)
            rows = open_[:, columns[:-1]].any(1).nonzero().squeeze(1)
            if not len(rows):
                break
            mask = open_[rows.unsqueeze(1), columns]
            steps = self.column_log_probs(documents, docs[rows], walk.at[rows], columns, mask)
            if follow is not None:
                best = oracle(mask, follow[rows.unsqueeze(1), columns[:-1]])
                steps = steps.masked_fill(~best, CLOSED)
            action = columns[choose(steps, rows, columns)]
            at = walk.at[rows]
            gains = tally.add(*self._take(walk, rows, action))
            history.append((rows, at, action, columns, mask, gains))
        return self._episode(docs, history, walk.placed)

    def _episode(self, docs: Tensor, history: list[tuple[Tensor, ...]], placed: Tensor) -> Episode:
        """The steps of some walks each, as one table over all walks and all actions that were ever open."""
        steps, n = len(history), len(docs)
        columns = torch.unique(torch.cat([step[3] for step in history])) if history else docs.new_tensor([self.stop])
        at = docs.new_full((steps, n), self.root)
        actions = docs.new_full((steps, n), self.stop)
        open_ = torch.zeros(steps, n, len(columns), dtype=torch.bool, device=docs.device)
        open_[:, :, -1] = True
        rewards = self.label.new_zeros(steps, n)
        for t, (rows, at_t, action, columns_t, mask, gains) in enumerate(history):
            at[t, rows], actions[t, rows], rewards[t] = at_t, action, gains
            open_[t, rows.unsqueeze(1), torch.searchsorted(columns, columns_t)] = mask
        return Episode(docs, at, actions, columns, open_, rewards, placed)

    def replay(self, documents: Documents, episode: Episode) -> Replay:
        """Score all steps of an episode again in one pass, with gradients."""
        step, row = episode.going.nonzero(as_tuple=True)
        open_ = episode.open[step, row]
        log_probs = self.column_log_probs(documents, episode.docs[row], episode.at[step, row], episode.columns, open_)
        return Replay(step, row, episode.columns, log_probs, open_, episode.actions[step, row])

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
            itself = (self.states(documents, docs, at) * self.label[at]).sum(1)
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
        position = torch.empty_like(at).index_copy(0, parents, torch.arange(len(parents), device=at.device))
        labels, column = torch.unique(child, return_inverse=True)
        table = (scores or self.scores)(documents, docs[parents], at[parents], labels)
        return table[position[which], column]

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


def _some_open(open_: Tensor) -> Tensor:
    """(K,) the labels open in some row, ascending, and stop."""
    labels = open_[:, :-1].any(0).nonzero().squeeze(1)
    return torch.cat([labels, labels.new_tensor([open_.shape[1] - 1])])


class _Tally:
    """The scores of walks, kept up to date label by label."""

    def __init__(self, scores: Sequence[Score], gold: Tensor | None, like: Tensor) -> None:
        self.scores, self.gold, self.like = scores, gold, like
        if gold is None:
            return
        everything = torch.arange(gold.shape[1], device=gold.device)
        self.right = [gold.to(like.dtype) @ score.weigh(everything, like) for score in scores]
        self.hits = [torch.zeros_like(right) for right in self.right]
        self.found = [torch.zeros_like(right) for right in self.right]
        self.value = self._value()

    def _value(self) -> Tensor:
        sums = zip(self.scores, self.hits, self.found, self.right, strict=True)
        return torch.stack([score.share * score.formula(h, f, r) for score, h, f, r in sums]).sum(0)

    def add(self, row: Tensor, label: Tensor) -> Tensor:
        """(R,) the gains from placing these labels in these walks."""
        if self.gold is None:
            return self.like.new_zeros(1)
        right = self.gold[row, label]
        for score, hits, found in zip(self.scores, self.hits, self.found, strict=True):
            weight = score.weigh(label, self.like)
            found.index_add_(0, row, weight)
            hits.index_add_(0, row, weight * right)
        before, self.value = self.value, self._value()
        return self.value - before


def greedy(log_probs: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The most probable action."""
    return log_probs.argmax(1)


def sampler(generator: torch.Generator | None = None) -> Choose:
    """Draw actions from the policy (Gumbel: the largest of log-probability plus noise is a fair draw)."""

    def sample(log_probs: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        uniform = torch.rand(log_probs.shape, generator=generator, device=log_probs.device, dtype=log_probs.dtype)
        return (log_probs - torch.log(-torch.log(uniform.clamp_min(1e-30)))).argmax(1)

    return sample


def returns(rewards: Tensor, gamma: float) -> Tensor:
    """(T, R) v_j = sum over t >= j of gamma^(t-j) r_t."""
    values = torch.empty_like(rewards)
    future = rewards.new_zeros(rewards.shape[1:])
    for t in reversed(range(len(rewards))):
        future = rewards[t] + gamma * future
        values[t] = future
    return values


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
    best = oracle(replay.open, truth[replay.row.unsqueeze(1), replay.columns[:-1]])
    right = replay.log_probs.masked_fill(~best, CLOSED).logsumexp(1)
    return replay.add_up(-right, len(documents))
