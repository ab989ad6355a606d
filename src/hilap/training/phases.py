"""The plan of a training run: which phases, with which losses, judged how.

flat        the flat loss alone: all of variant "flat", and the start of a residual policy; once for each member
supervised  HiLAP-SL (Section 3.1): lambda O_f + (1 - lambda) O_l
imitation   oracle imitation, a warm start (ours)
reinforced  HiLAP (Sections 2.2 and 3.2): O_RL + alpha O_SL
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hilap.metrics import flat as flat_metrics
from hilap.network import Network, Seen, evaluating, flat_loss, reinforced_loss, supervised_loss
from hilap.policy import greedy, imitation_loss, sampler
from hilap.rewards import mixed
from hilap.settings import TrainSettings
from hilap.taxonomy import Taxonomy
from hilap.training.data import TrainingData
from hilap.training.trainer import Phase

PREDICT_BATCH = 256
THRESHOLDS = tuple(n / 100 for n in (*range(2, 50, 2), *range(50, 95, 10)))
"""Where the threshold of a flat model, or of HiLAP-SL, is looked for."""
ENTROPY_DECAY, ENTROPY_EVERY = 0.9, 500  # of the published code


@dataclass
class Run:
    """Everything the phases of one run share."""

    taxonomy: Taxonomy
    network: Network
    train: TrainingData
    valid: TrainingData
    settings: TrainSettings
    max_steps: int
    folds: list[NDArray[np.int64]]
    fixed_threshold: float | None = None  # of the flat model, where it is not tuned
    honest: Tensor | None = None  # (n, L) flat logits of training documents by members that have not seen them
    threshold: float = 0.5  # of the flat model, tuned on validation documents

    def see(self, rows: NDArray[np.int64]) -> Seen:
        """What the network makes of training documents: fixed honest logits with cross-fitting, else encoded now."""
        if self.honest is not None:
            return Seen(None, self.honest[rows])
        return self.network.see(self.train.batch(rows))


def plan(
    taxonomy: Taxonomy,
    network: Network,
    train: TrainingData,
    valid: TrainingData,
    settings: TrainSettings,
    *,
    threshold: float | None = None,
) -> list[Phase]:
    """The phases that the settings ask for.

    `threshold` is what a flat model will predict with, so that its epochs are judged by it; None tunes it every time.
    """
    rng = np.random.default_rng([settings.seed, 17])
    folds = np.array_split(rng.permutation(len(train)), settings.folds)
    max_steps = settings.max_steps or train.most_steps()
    run = Run(taxonomy, network, train, valid, settings, max_steps, [np.sort(fold) for fold in folds], threshold)
    phases: list[Phase] = []
    if settings.flat_epochs:
        phases += [_flat(run, k) for k in range(settings.folds)]
    if settings.variant != "flat" and settings.supervised_epochs:
        phases.append(_supervised(run))
    if settings.variant == "hilap" and settings.imitation_epochs:
        phases.append(_imitation(run))
    if settings.variant == "hilap" and settings.reinforced_epochs:
        phases.append(_reinforced(run))
    return [phase for phase in phases if phase.parameters]


# -- the phases -----------------------------------------------------------------------------------------------------


def _flat(run: Run, k: int) -> Phase:
    member = run.network.members[k]
    single = run.settings.folds == 1
    rows = np.arange(len(run.train)) if single else np.setdiff1d(np.arange(len(run.train)), run.folds[k])

    def loss(batch: NDArray[np.int64], generator: torch.Generator, step: int) -> tuple[Tensor, dict[str, float]]:
        logits = member(run.train.batch(batch))[1]
        return flat_loss(logits, run.train.gold(batch)).mean() / len(run.taxonomy), {}

    return Phase(
        name="flat" if single else f"flat {k + 1}/{run.settings.folds}",
        epochs=run.settings.flat_epochs,
        learning_rate=run.settings.learning_rate,
        parameters=list(member.parameters()),
        rows=rows,
        loss=loss,
        validate=lambda: _judge_flat(run, lambda batch: member(batch)[1]),
    )


def _supervised(run: Run) -> Phase:
    def loss(batch: NDArray[np.int64], generator: torch.Generator, step: int) -> tuple[Tensor, dict[str, float]]:
        seen = run.see(batch)
        documents = run.network.documents(seen)
        losses = supervised_loss(
            run.network.policy,
            documents,
            seen.flat,
            run.train.gold(batch),
            flat_share=run.settings.flat_share,
            stay=run.settings.stay,
        )
        return losses.mean(), {}

    return Phase(
        name="supervised",
        epochs=run.settings.supervised_epochs,
        learning_rate=run.settings.learning_rate,
        parameters=_learning(run),
        rows=np.arange(len(run.train)),
        loss=loss,
        validate=lambda: _judge(run, lambda network, seen: network.policy.top_down(network.documents(seen))),
        setup=lambda: _prepare_policy(run),
    )


def _imitation(run: Run) -> Phase:
    def loss(batch: NDArray[np.int64], generator: torch.Generator, step: int) -> tuple[Tensor, dict[str, float]]:
        seen = run.see(batch)
        documents = run.network.documents(seen)
        gold = run.train.gold(batch)
        losses = imitation_loss(run.network.policy, documents, gold, max_steps=run.max_steps, choose=sampler(generator))
        return (losses + _mixed_in(run, documents, seen, gold)).mean(), {}

    return Phase(
        name="imitation",
        epochs=run.settings.imitation_epochs,
        learning_rate=run.settings.learning_rate,
        parameters=_learning(run),
        rows=np.arange(len(run.train)),
        loss=loss,
        validate=lambda: _judge_walk(run),
        begin=lambda generator: _begin_policy(run, generator),
        setup=lambda: _prepare_policy(run),
    )


def _reinforced(run: Run) -> Phase:
    settings = run.settings
    shares = torch.from_numpy((run.train.label_counts() / max(1, len(run.train))).astype(np.float32))
    scores = mixed(
        settings.rewards,
        shares=shares,
        levels=torch.from_numpy(run.taxonomy.levels),
        beta=settings.reward_beta,
        power=settings.reward_power,
    )

    def loss(batch: NDArray[np.int64], generator: torch.Generator, step: int) -> tuple[Tensor, dict[str, float]]:
        seen = run.see(batch)
        documents = run.network.documents(seen)
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
        name="reinforced",
        epochs=settings.reinforced_epochs,
        learning_rate=settings.learning_rate if rate is None else rate,
        parameters=_learning(run),
        rows=np.arange(len(run.train)),
        loss=loss,
        validate=lambda: _judge_walk(run),
        begin=(lambda generator: _begin_policy(run, generator)) if fresh else (lambda generator: None),
        setup=lambda: _prepare_policy(run),
        keep_start=True,
    )


def _mixed_in(run: Run, documents: Any, seen: Seen, gold: Tensor) -> Tensor:
    """Alpha O_SL of the reinforced phase; nothing is computed where alpha is 0."""
    settings = run.settings
    if settings.supervised_weight == 0:
        return torch.zeros(len(gold))
    share = settings.flat_share if settings.reinforced_flat_share is None else settings.reinforced_flat_share
    policy = run.network.policy
    losses = supervised_loss(policy, documents, seen.flat, gold, flat_share=share, stay=settings.stay)
    return settings.supervised_weight * losses


def _learning(run: Run) -> list[nn.Parameter]:
    """The weights that learn beside the policy: the encoder too, unless its scores are fixed by cross-fitting."""
    return list((run.network if run.settings.folds == 1 else run.network.policy).parameters())


def _begin_policy(run: Run, generator: torch.Generator) -> None:
    """A fresh stop embedding (Section 3.1); a residual policy's stop starts at the logit of the tuned threshold."""
    policy = run.network.policy
    if policy.residual and policy.bias is not None:
        _judge_flat(run, lambda batch: run.network.see(batch).flat)
        with torch.no_grad():
            policy.bias[policy.stop] = float(np.log(run.threshold / (1 - run.threshold)))
    else:
        policy.reset_stop(generator)


def _prepare_policy(run: Run) -> None:
    """Score training documents by members that have not seen them, and standardise what the policy sees."""
    if run.settings.folds > 1 and run.honest is None:
        with evaluating(run.network) as network:
            honest = torch.empty(len(run.train), len(run.taxonomy))
            for member, fold in zip(network.members, run.folds, strict=True):
                for rows in np.array_split(fold, max(1, len(fold) // PREDICT_BATCH)):
                    honest[rows] = member(run.train.batch(rows))[1]
        run.honest = honest
    if run.network.sees_flat and not bool(run.network.flat_mean.any()):
        logits = run.honest if run.honest is not None else _logits(run, run.train, lambda b: run.network.see(b).flat)
        run.network.scale_flat(logits)


# -- judging --------------------------------------------------------------------------------------------------------


def _judge(run: Run, sets: Callable[[Network, Seen], Tensor]) -> dict[str, float]:
    """Scores of predicted sets on the validation documents."""
    with evaluating(run.network) as network:
        found = [sets(network, network.see(run.valid.batch(rows))).numpy() for rows in _blocks(len(run.valid))]
    return score_sets(run.valid.labels, np.concatenate(found), run.settings.select)


def _judge_walk(run: Run) -> dict[str, float]:
    """Scores of the greedy walk."""
    return _judge(
        run,
        lambda network, seen: (
            network.policy.rollout(network.documents(seen), None, choose=greedy, max_steps=run.max_steps).placed
        ),
    )


def _judge_flat(run: Run, logits_of: Callable[[Any], Tensor]) -> dict[str, float]:
    """Scores of the flat model with the threshold it will have, or with its best one, which is kept."""
    probabilities = _logits(run, run.valid, logits_of).sigmoid().numpy()
    if run.fixed_threshold is not None:
        return score_sets(run.valid.labels, probabilities > run.fixed_threshold, run.settings.select)
    run.threshold, scores = best_threshold(run.valid.labels, probabilities, run.settings.select)
    return {**scores, "threshold": run.threshold}


def _logits(run: Run, data: TrainingData, logits_of: Callable[[Any], Tensor]) -> Tensor:
    with evaluating(run.network):
        return torch.cat([logits_of(data.batch(rows)) for rows in _blocks(len(data))])


def _blocks(n: int) -> list[NDArray[np.int64]]:
    return list(np.array_split(np.arange(n), max(1, -(-n // PREDICT_BATCH))))


def score_sets(gold: Any, found: Any, select: str) -> dict[str, float]:
    """Micro-, Macro- and example F1, and under `select` the one that chooses."""
    scores = {
        "micro_f1": flat_metrics.micro(gold, found).f1,
        "macro_f1": flat_metrics.macro(gold, found).f1,
        "example_f1": flat_metrics.example(gold, found).f1,
    }
    scores["select"] = sum(scores.values()) / 3 if select == "mean" else scores[select]
    return scores


def best_threshold(gold: Any, probabilities: NDArray[Any], select: str) -> tuple[float, dict[str, float]]:
    """The threshold that gives the best score, and the scores it gives."""
    tried = [(t, score_sets(gold, probabilities > t, select)) for t in THRESHOLDS]
    return max(tried, key=lambda pair: pair[1]["select"])
