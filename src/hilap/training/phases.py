"""The plan of a training run: which phases, with which losses, judged how.

flat        the flat loss alone: all of variant "flat", and the start of a residual policy; once for each member
supervised  HiLAP-SL (Section 3.1): lambda O_f + (1 - lambda) O_l
imitation   oracle imitation, a warm start (ours)
reinforced  HiLAP (Sections 2.2 and 3.2): O_RL + alpha O_SL
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from hilap import kernel_part
from hilap.corpus import Examples
from hilap.decoding import StopBias, decode, shortfalls, tune_stop_bias
from hilap.decoding.coherence import Condensing
from hilap.encoders import parameter_rates
from hilap.encoders.rows import DenseRows, SparseRows
from hilap.label_text import label_texts
from hilap.metrics.counts import label_counts, pair
from hilap.network import Network, Seen, averaged, evaluating, flat_loss, reinforced_loss, supervised_loss
from hilap.policy import Documents, imitation_loss, sampler
from hilap.rewards import OF_ALL, Standing, mixed
from hilap.settings import CHOSEN, TrainSettings
from hilap.taxonomy import Taxonomy
from hilap.training.choice import choose, kinds
from hilap.training.data import TrainingData
from hilap.training.scoring import ROUGH, ROUGH_RESIDUAL, best_threshold, score_sets
from hilap.training.trainer import Phase
from hilap.wide import BothRows, cross_fit

PREDICT_BATCH = 256
REINFORCED = "reinforced"
MOST_TUNED = 20_000  # documents that a stop bias is tuned on
ENTROPY_DECAY, ENTROPY_EVERY = 0.9, 500  # of the published code


@dataclass(frozen=True)
class Now:
    """How the greedy walk stands: what rewards of all documents, and biases of learning walks, start from."""

    added: Tensor | None  # (A,) what the bias it was judged with adds to the scores of actions
    standing: Standing  # of the documents that stop biases are tuned on


@dataclass
class Run:
    """Everything the phases of one run share."""

    taxonomy: Taxonomy
    network: Network
    train: TrainingData
    valid: TrainingData
    settings: TrainSettings
    max_steps: int
    folds: list[NDArray[np.int64]]  # what each member does not see; validation documents count on from training ones
    fixed_threshold: float | None = None  # of a flat or a supervised model, where it is not tuned
    tune: str | None = None  # walks are judged with the stop bias that is best for this metric
    bias: StopBias = field(default_factory=StopBias)  # ... or with this one, where it is not tuned
    honest: Tensor | None = None  # (n, L) flat logits of training documents by members that have not seen them
    honest_valid: Tensor | None = None  # the same of validation documents, where members learn from these too
    threshold: float = 0.5  # of the flat model, tuned on validation documents
    wide: Tensor | None = None  # (repeats, n, L) logits of the wide part by SVMs that have not seen the document
    kernel: Tensor | None = None  # the same of the kernel part by machines that have not
    now: Now | None = None  # how walks stand since they were last judged
    phases: list[Phase] = field(default_factory=list)

    def see(self, rows: NDArray[np.int64]) -> Seen:
        """What the network makes of training documents: fixed honest logits with cross-fitting, else encoded now."""
        if self.honest is not None:
            return Seen(None, self.honest[rows])
        return self.network.see(self.train.batch(rows))

    def see_valid(self, rows: NDArray[np.int64]) -> Seen:
        """The same of validation documents."""
        if self.honest_valid is not None:
            return Seen(None, self.honest_valid[rows])
        return self.network.see(self.valid.batch(rows))

    def score_honestly(self) -> None:
        """With cross-fitting: flat logits by members that have not seen the document, those of repeats averaged."""
        if self.settings.folds == 1 or self.honest is not None:
            return
        repeats = self.settings.repeats
        each = torch.empty(repeats, sum(map(len, self.folds)) // repeats, len(self.taxonomy))
        with evaluating(self.network) as network:
            for k, (member, fold) in enumerate(zip(network.members, self.folds, strict=True)):
                for block in np.array_split(fold, max(1, len(fold) // PREDICT_BATCH)):
                    for data, rows, which in self.parts(block):
                        each[k // self.settings.folds, block[which]] = member(data.batch(rows))[1]
        if self.wide is not None:
            each += self.wide
        honest = averaged([self.network.constrained(one) for one in each], self.network.averaging)
        if self.kernel is not None:
            honest = self.network.beside_kernel(honest, list(self.kernel))
        self.honest = honest[: len(self.train)]
        if self.settings.pool_validation:
            self.honest_valid = honest[len(self.train) :]

    def tuning(self) -> tuple[Any, Tensor | None]:
        """Labels and flat logits of the documents that stop biases are tuned on; without logits, the validation ones.

        Where validation documents are pooled, training documents are scored as honestly as they are, and all together
        are many more: a bias that raises Macro-F1 by chance on a few hundred documents does not on thousands. The
        validation documents come first, and no more than `MOST_TUNED` in all.
        """
        if self.honest is None or self.honest_valid is None:
            return self.valid.labels, None
        rows = self._drawn(len(self.train), max(0, MOST_TUNED - len(self.valid)))
        labels = sparse.vstack([self.valid.labels, self.train.labels[rows]], format="csr")
        return labels, torch.cat([self.honest_valid, self.honest[rows]])

    def _drawn(self, n: int, most: int) -> NDArray[np.int64]:
        """All of n documents, or so many that the seed draws."""
        return np.sort(np.random.default_rng([self.settings.seed, 19]).permutation(n)[:most])

    def stand(self) -> Now:
        """How the greedy walk stands since the last epoch; found again where a run is resumed, to the same."""
        return self.now or _judge_walk(self)[1]

    def added(self, bias: StopBias) -> Tensor | None:
        """(A,) what a bias adds to the scores of actions."""
        if bias == StopBias():
            return None
        shortfall = self.network.shortfall.numpy()
        return bias.vector(self.taxonomy, self.train.label_counts(), len(self.train), shortfall)

    def fit_wide(self) -> None:
        """Solve the wide part: it takes seconds and always gives the same, so no checkpoint has to keep it.

        Where its loss is to be chosen it takes a few times as long, and the settings of the run and the network are
        afterwards those of what was chosen.
        """
        if self.network.wide is None:
            return
        beside, labels = self._beside()
        rows = sparse.vstack([block.matrix for block in beside if isinstance(block, SparseRows)], format="csr")
        settings = self.settings
        named = None
        if settings.label_text is True:
            called = Examples.of(self.taxonomy, [[]] * len(self.taxonomy), texts=label_texts(self.taxonomy))
            named = self.network.wide.rows(called)
        if settings.wide_loss == CHOSEN:
            sizes = {"weights": rows.shape[1] * len(self.taxonomy), "pairs": rows.shape[0] * len(self.taxonomy)}
            choice = choose(
                rows,
                labels,
                self.folds,
                kinds(settings.wide_strength, may_condense=self.network.constraint is None, **sizes),
                repeats=settings.repeats,
                taxonomy=self.taxonomy,
                averaging=self.network.averaging,
                metric=settings.select,
                judged=self._drawn(labels.shape[0], MOST_TUNED),
                lift=self.network.lifting is not None,
                label_rows=named,
            )
            found, kind = choice.found, choice.kind
            self.settings = settings.but(wide_loss=kind.loss, wide_strength=kind.strength)
            self.network.condensing = Condensing(self.taxonomy) if kind.condense else None
        else:
            found = cross_fit(
                rows,
                labels,
                self.folds,
                repeats=settings.repeats,
                strength=settings.wide_strength,
                loss=settings.wide_loss,
                taxonomy=self.taxonomy,
                condense=self.network.condensing is not None,
                label_rows=named,
            )
        self.wide = torch.from_numpy(found.honest)
        self.network.wide.weight.copy_(torch.from_numpy(found.weight))
        self.network.wide.bias.copy_(torch.from_numpy(found.bias))

    def fit_kernel(self) -> None:
        """Solve the kernel part: this too takes seconds and always gives the same."""
        if self.network.kernel is None:
            return
        beside, labels = self._beside()
        found = kernel_part.cross_fit(
            np.concatenate([block.values.numpy() for block in beside if isinstance(block, DenseRows)]),
            labels,
            self.folds,
            repeats=self.settings.repeats,
            width=self.settings.kernel_width,
            ridge=self.settings.kernel_ridge,
            points=len(self.network.kernel.points),
            seed=self.settings.seed,
        )
        self.kernel = torch.from_numpy(found.honest)
        self.network.kernel.know(found)

    def _beside(self) -> tuple[list[Any], sparse.csr_array]:
        """The documents that flat models learn from: their rows for what stands beside members, and their labels."""
        blocks = [self.train, self.valid] if self.settings.pool_validation else [self.train]
        rows = [block.prepared.wide for block in blocks if isinstance(block.prepared, BothRows)]
        return rows, sparse.vstack([block.labels for block in blocks], format="csr")

    def parts(self, rows: NDArray[np.int64]) -> Iterator[tuple[TrainingData, NDArray[np.int64], NDArray[np.int64]]]:
        """Rows of the documents that members learn from, by where they are: data, rows there, which of the given."""
        inside = rows < len(self.train)
        for data, chosen, first in ((self.train, inside, 0), (self.valid, ~inside, len(self.train))):
            if chosen.any():
                yield data, rows[chosen] - first, np.flatnonzero(chosen)


def plan(
    taxonomy: Taxonomy,
    network: Network,
    train: TrainingData,
    valid: TrainingData,
    settings: TrainSettings,
    *,
    threshold: float | None = None,
    tune: str | None = None,
    bias: StopBias | None = None,
    kept: Mapping[str, int] | None = None,
) -> Run:
    """The phases that the settings ask for, and what they share.

    Parameters
    ----------
    taxonomy, network, train, valid, settings
        What is trained, on what, how.
    threshold
        What a flat or supervised model will predict with, so that its epochs are judged by it; None tunes that of a
        flat model every time, and takes 0.5 for a supervised one.
    tune
        The metric that the stop bias will be tuned for, so that epochs are judged by that too; None leaves it alone.
    bias
        The stop bias that walks will have where it is not tuned, so that epochs are judged by it; None: none.
    kept
        Phase -> the epoch that was best: everything is learned anew, up to there, and nothing chosen. None: not so.
    """
    rng = np.random.default_rng([settings.seed, 17])
    pool = len(train) + (len(valid) if settings.pool_validation else 0)
    parted = [np.array_split(rng.permutation(pool), settings.folds) for _ in range(settings.repeats)]
    folds = [np.sort(fold) for folds in parted for fold in folds]
    run = Run(taxonomy, network, train, valid, settings, settings.max_steps or train.most_steps(), folds, threshold)
    run.tune = tune
    run.bias = StopBias() if bias is None else bias
    run.fit_wide()
    run.fit_kernel()
    phases: list[Phase] = []
    if settings.flat_epochs:
        phases += [_flat(run, k) for k in range(len(folds))]
    if settings.variant != "flat" and settings.supervised_epochs:
        phases.append(_supervised(run))
    if settings.variant == "hilap" and settings.imitation_epochs:
        phases.append(_imitation(run))
    # A residual policy walks before it has learned anything: without epochs the phase sets where it starts, and ends.
    if settings.variant == "hilap" and (settings.reinforced_epochs or not settings.imitation_epochs):
        phases.append(_reinforced(run))
    run.phases = [phase for phase in phases if phase.parameters]
    if kept is not None:
        run.phases = [_anew(run, phase, kept[phase.name]) for phase in run.phases]
    return run


# -- the phases -----------------------------------------------------------------------------------------------------


def _flat(run: Run, k: int) -> Phase:
    member = run.network.members[k]
    single = run.settings.folds == 1
    everything = np.sort(np.concatenate(run.folds[: run.settings.folds]))
    rows = everything if single else np.setdiff1d(everything, run.folds[k])

    def loss(batch: NDArray[np.int64], generator: torch.Generator, step: int) -> tuple[Tensor, dict[str, float]]:
        losses = []
        for data, rows, which in run.parts(batch):
            logits = member(data.batch(rows))[1]
            if run.wide is not None:
                logits = logits + run.wide[k // run.settings.folds, batch[which]]
            gold = data.gold(rows)
            losses.append(flat_loss(run.network.compared(logits, gold), gold))
        return torch.cat(losses).mean() / len(run.taxonomy), {}

    def logits_of(batch: Any) -> Tensor:
        logits: Tensor = member(batch)[1]
        return run.network.constrained(logits if run.network.wide is None else logits + run.network.wide(batch.wide))

    return Phase(
        name="flat" if single else f"flat {k + 1}/{len(run.folds)}",
        epochs=run.settings.flat_epochs,
        learning_rate=run.settings.learning_rate,
        parameters=[weight for weight in member.parameters() if weight.requires_grad],
        shares=parameter_rates(member),
        rows=rows,
        loss=loss,
        # Judged by documents it learns from, the most overfitted epoch would win: then the last one is kept.
        validate=None if run.settings.pool_validation else lambda: _judge_flat(run, logits_of),
    )


def _supervised(run: Run) -> Phase:
    def loss(batch: NDArray[np.int64], generator: torch.Generator, step: int) -> tuple[Tensor, dict[str, float]]:
        seen = run.see(batch)
        documents = run.network.documents(seen)
        gold = run.train.gold(batch)
        losses = supervised_loss(
            run.network.policy,
            documents,
            _compared(run, seen, gold),
            gold,
            flat_share=run.settings.flat_share,
            stay=run.settings.stay,
        )
        return losses.mean(), {}

    def top_down(network: Network, seen: Seen) -> Tensor:
        threshold = 0.5 if run.fixed_threshold is None else run.fixed_threshold
        return network.policy.top_down(network.documents(seen), threshold=threshold)

    return Phase(
        name="supervised",
        epochs=run.settings.supervised_epochs,
        learning_rate=run.settings.learning_rate,
        parameters=_learning(run),
        shares=parameter_rates(run.network),
        rows=np.arange(len(run.train)),
        loss=loss,
        validate=lambda: _judge(run, top_down),
        setup=lambda: _prepare_policy(run),
    )


def _imitation(run: Run) -> Phase:
    def loss(batch: NDArray[np.int64], generator: torch.Generator, step: int) -> tuple[Tensor, dict[str, float]]:
        seen = run.see(batch)
        documents = run.network.documents(seen).sharing()
        gold = run.train.gold(batch)
        losses = imitation_loss(run.network.policy, documents, gold, max_steps=run.max_steps, choose=sampler(generator))
        return (losses + _mixed_in(run, documents, seen, gold)).mean(), {}

    return Phase(
        name="imitation",
        epochs=run.settings.imitation_epochs,
        learning_rate=run.settings.learning_rate,
        parameters=_learning(run),
        shares=parameter_rates(run.network),
        rows=np.arange(len(run.train)),
        loss=loss,
        validate=lambda: _judge_walk(run)[0],
        begin=lambda generator: _begin_policy(run, generator),
        setup=lambda: _prepare_policy(run),
    )


def _reinforced(run: Run) -> Phase:
    settings = run.settings
    shares = torch.from_numpy((run.train.label_counts() / max(1, len(run.train))).astype(np.float32))
    levels = torch.from_numpy(run.taxonomy.levels)
    of_all = any(name in settings.rewards for name in OF_ALL)

    def loss(batch: NDArray[np.int64], generator: torch.Generator, step: int) -> tuple[Tensor, dict[str, float]]:
        seen = run.see(batch)
        scores = mixed(
            settings.rewards,
            shares=shares,
            levels=levels,
            beta=settings.reward_beta,
            power=settings.reward_power,
            now=run.stand().standing if of_all else None,
        )
        bias = run.stand().added if settings.biased_walks else None
        documents = run.network.documents(seen, bias).sharing()
        gold = run.train.gold(batch)
        losses, gained = reinforced_loss(
            run.network.policy,
            documents,
            gold,
            max_steps=run.max_steps,
            gamma=settings.gamma,
            generator=generator,
            rollouts=settings.rollouts,
            baseline=settings.baseline,
            scores=scores,
            entropy_bonus=settings.entropy_bonus * ENTROPY_DECAY ** (step // ENTROPY_EVERY),
            standardise=settings.standardise_returns,
        )
        return (losses + _mixed_in(run, documents, seen, gold)).mean(), {"reward": gained.mean().item()}

    fresh = not settings.imitation_epochs
    rate = settings.reinforced_learning_rate
    return Phase(
        name=REINFORCED,
        epochs=settings.reinforced_epochs,
        learning_rate=settings.learning_rate if rate is None else rate,
        parameters=_learning(run),
        shares=parameter_rates(run.network),
        rows=np.arange(len(run.train)),
        loss=loss,
        validate=lambda: _judge_walk(run)[0],
        begin=(lambda generator: _begin_policy(run, generator)) if fresh else (lambda generator: None),
        setup=lambda: _prepare_policy(run),
        keep_start=True,
    )


def _anew(run: Run, phase: Phase, last: int) -> Phase:
    """The same phase up to an epoch that was chosen before: no documents are left to judge by."""

    def look() -> dict[str, float]:
        """Rewards that look at how walks stand see it after every epoch, as they did before."""
        _judge_walk(run)
        return {}

    looks = phase.name == REINFORCED and any(name in run.settings.rewards for name in OF_ALL)
    return replace(phase, name=f"{phase.name} anew", last=last, validate=look if looks else None, keep_start=False)


def _mixed_in(run: Run, documents: Any, seen: Seen, gold: Tensor) -> Tensor:
    """Alpha O_SL of the reinforced phase; nothing is computed where alpha is 0."""
    settings = run.settings
    if settings.supervised_weight == 0:
        return torch.zeros(len(gold))
    share = settings.flat_share if settings.reinforced_flat_share is None else settings.reinforced_flat_share
    policy, logits = run.network.policy, _compared(run, seen, gold)
    losses = supervised_loss(policy, documents, logits, gold, flat_share=share, stay=settings.stay)
    return settings.supervised_weight * losses


def _compared(run: Run, seen: Seen, gold: Tensor) -> Tensor:
    """(B, L) the flat logits for O_f; those of several members are fixed, and no loss changes them."""
    return seen.flat if seen.own is None else run.network.compared(seen.own, gold)


def _learning(run: Run) -> list[nn.Parameter]:
    """The weights that learn beside the policy: the encoder too, unless its scores are fixed by cross-fitting."""
    network = run.network
    parts = [network] if run.settings.folds == 1 else [network.policy, *([] if network.tie is None else [network.tie])]
    return [weight for part in parts for weight in part.parameters() if weight.requires_grad]


def _begin_policy(run: Run, generator: torch.Generator) -> None:
    """A fresh stop embedding (Section 3.1); a residual policy's stop starts at the logit of the tuned threshold."""
    _prepare_policy(run)
    policy = run.network.policy
    if policy.residual and policy.bias is not None:
        _judge_flat(run, None)
        threshold = float(np.log(run.threshold / (1 - run.threshold)))
        labels, logits = run.tuning()
        if logits is None:
            logits = _logits(run, run.valid, lambda batch: run.network.see(batch).flat)
        with torch.no_grad():
            policy.bias[policy.stop] = threshold
            lift = run.network.lifting is not None
            short = shortfalls(logits.numpy(), labels, threshold, run.taxonomy, lift=lift)
            run.network.shortfall.copy_(torch.from_numpy(short))
    else:
        policy.reset_stop(generator, run.network.start_scale)


def _prepare_policy(run: Run) -> None:
    """Score training documents by members that have not seen them, and standardise what the policy sees."""
    run.score_honestly()
    if not run.network.scaled:
        logits = run.honest if run.honest is not None else _logits(run, run.train, lambda b: run.network.see(b).flat)
        run.network.scale(logits)


# -- judging --------------------------------------------------------------------------------------------------------


def _judge(run: Run, sets: Callable[[Network, Seen], Tensor]) -> dict[str, float]:
    """Scores of predicted sets on the validation documents."""
    with evaluating(run.network) as network:
        found = [sets(network, run.see_valid(rows)).numpy() for rows in _blocks(len(run.valid))]
    return score_sets(run.valid.labels, np.concatenate(found), run.settings.select)


def _judge_walk(run: Run) -> tuple[dict[str, float], Now]:
    """Scores of the greedy walk, and how it stands; where the stop bias will be tuned, with a roughly tuned one."""
    labels, honest = run.tuning()
    if run.tune is None:
        walked = _walked(run, _ready(run, labels.shape[0], honest), run.bias)
        run.now = Now(run.added(run.bias), _standing(labels, walked))
        return score_sets(run.valid.labels, walked[: len(run.valid)], run.settings.select), run.now
    found: dict[StopBias, NDArray[np.bool_]] = {}
    kept = None
    if run.network.keeps(labels.shape[0]):
        with evaluating(run.network):
            kept = list(_ready(run, labels.shape[0], honest))

    def sets(bias: StopBias) -> NDArray[np.bool_]:
        found[bias] = _walked(run, _ready(run, labels.shape[0], honest) if kept is None else kept, bias)
        return found[bias]

    grids = ROUGH_RESIDUAL if run.network.policy.residual else ROUGH
    best = tune_stop_bias(sets, labels, metric=run.tune, grids=grids, refinements=0).bias
    run.now = Now(run.added(best), _standing(labels, found[best]))
    scores = score_sets(run.valid.labels, found[best][: len(run.valid)], run.settings.select)
    return {**scores, "stop_bias": best.constant, "prior_bias": best.prior, "count_bias": best.count}, run.now


def _standing(labels: Any, found: NDArray[np.bool_]) -> Standing:
    hits, placed, gold = (torch.from_numpy(n.astype(np.float32)) for n in label_counts(*pair(labels, found)))
    return Standing(hits, placed, gold, len(found))


def _ready(run: Run, n: int, honest: Tensor | None) -> Iterator[tuple[Seen, Documents]]:
    """The documents that biases are tuned on, block after block: what of them no bias changes.

    In evaluation mode, which the caller sees to: leaving it after each block would encode tied label texts for each.
    """
    for rows in _blocks(n):
        seen = run.see_valid(rows) if honest is None else Seen(None, honest[rows[0] : rows[-1] + 1])
        yield run.network.kept(seen)


def _walked(run: Run, ready: Iterable[tuple[Seen, Documents]], bias: StopBias) -> NDArray[np.bool_]:
    """(n, L) the sets of greedy walks of these documents with a bias."""
    added, found = run.added(bias), []
    with evaluating(run.network) as network:
        for seen, halves in ready:
            documents = network.biased(halves, seen, added)
            found.append(decode(network.policy, documents, max_steps=run.max_steps).placed)
    return torch.cat(found).numpy()


def _judge_flat(run: Run, logits_of: Callable[[Any], Tensor] | None) -> dict[str, float]:
    """Scores of a member, or of all together, with the threshold it will have, or its best one, which is kept."""
    if logits_of is None:
        with evaluating(run.network):
            logits = torch.cat([run.see_valid(rows).flat for rows in _blocks(len(run.valid))])
    else:
        logits = _logits(run, run.valid, logits_of)
    probabilities = logits.sigmoid().numpy()
    if run.fixed_threshold is not None:
        return score_sets(run.valid.labels, probabilities > run.fixed_threshold, run.settings.select)
    run.threshold, scores = best_threshold(run.valid.labels, probabilities, run.settings.select)
    return {**scores, "threshold": run.threshold}


def _logits(run: Run, data: TrainingData, logits_of: Callable[[Any], Tensor]) -> Tensor:
    with evaluating(run.network):
        return torch.cat([logits_of(data.batch(rows)) for rows in _blocks(len(data))])


def _blocks(n: int) -> list[NDArray[np.int64]]:
    return list(np.array_split(np.arange(n), max(1, -(-n // PREDICT_BATCH))))
