"""Rewards: what a label set is worth. The paper's is example F1; the others are ours.

A walk earns the gains of its score step by step. Scores of a document alone lie between 0 and 1, with 1 for the perfect
set. `micro_f1` and `macro_f1` are scores of all documents together, of which one document's set is a small part: they
say, to first order, what it adds to them, given how things stand (`Standing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from hilap.policy import EXAMPLE_F1, Score

OF_ALL = ("micro_f1", "macro_f1")  # rewards that look at how all documents together are labelled
PSEUDO = 1.0  # documents that each label is thought to have more, placed and gold, as good as labels are in the mean


def f_beta(beta: float) -> Score:
    """F-beta of the example: beta above 1 weighs recall, below 1 precision."""
    square = beta * beta

    def formula(hits: Tensor, placed: Tensor, gold: Tensor) -> Tensor:
        sizes = placed + square * gold
        empty = (sizes == 0).to(sizes.dtype)
        return ((1 + square) * hits + empty) / (sizes + empty)

    return Score(formula)


def weighted_f1(weights: Tensor) -> Score:
    """Example F1 in which a label counts its weight: with weights that fall with popularity, rare labels matter."""
    return replace(EXAMPLE_F1, weights=weights)


def hierarchical(levels: Tensor) -> Score:
    """1 minus the cost of the errors relative to that of both sets together, where a label at level k costs 1/k.

    A wrong turn near the root costs more than one far below.
    """

    def formula(hits: Tensor, placed: Tensor, gold: Tensor) -> Tensor:
        whole = placed + gold - hits
        empty = (whole == 0).to(whole.dtype)
        return 1 - (whole - hits) / (whole + empty)

    return Score(formula, 1.0 / levels.float())


@dataclass(frozen=True)
class Standing:
    """How all documents together are labelled: what each label has of right, placed and gold documents."""

    hits: Tensor  # (L,)
    placed: Tensor  # (L,)
    gold: Tensor  # (L,)
    documents: int


def _to_first_order(hits: Tensor, placed: Tensor, gold: Tensor) -> Tensor:
    return 2 * hits - placed


def micro_f1(now: Standing) -> Score:
    """What a document's set adds to the Micro-F1 of all documents, times their number.

    F = 2 hits / (placed + gold), so a placed label changes F by (2 [it is right] - F) / (placed + gold): it is worth
    placing if it is right with a probability above F / 2.
    """
    size = (now.placed.sum() + now.gold.sum()).clamp_min(1)
    weights = (now.documents / size).expand(len(now.gold))
    return Score(_to_first_order, weights, prices=weights * (2 * now.hits.sum() / size))


def macro_f1(now: Standing, pseudo: float = PSEUDO) -> Score:
    """What a document's set adds to the Macro-F1 of all documents, times their number.

    The same for each label, so rare ones weigh most; labels without gold documents are not in the mean, and count
    nothing. What a rare label's F1 is, a few documents cannot say: it is taken between its own and the mean of all, as
    if the label had `pseudo` more placed and gold documents.
    """
    covered = (now.gold > 0).to(now.gold.dtype)
    n = covered.sum().clamp_min(1)
    mean = (covered * 2 * now.hits / (now.placed + now.gold).clamp_min(1)).sum() / n
    size = now.placed + now.gold + 2 * pseudo
    weights = covered * now.documents / (size.clamp_min(1e-9) * n)
    return Score(_to_first_order, weights, prices=weights * (2 * now.hits + 2 * pseudo * mean) / size.clamp_min(1e-9))


def rarity(shares: Tensor, power: float) -> Tensor:
    """(L,) weights of labels: their share of documents (at least one in a thousand) to the minus `power`, mean 1."""
    weights = shares.clamp_min(1e-3) ** -power
    return weights / weights.mean()


def mixed(
    parts: Mapping[str, float],
    *,
    shares: Tensor,
    levels: Tensor,
    beta: float,
    power: float,
    now: Standing | None = None,
) -> list[Score]:
    """Named rewards, each with its share; `shares` (L,) of training documents and `levels` (L,) describe the labels.

    `now` is how all documents are labelled, for the rewards that ask for it (`OF_ALL`).
    """
    made = {
        "example_f1": EXAMPLE_F1,
        "f_beta": f_beta(beta),
        "weighted_f1": weighted_f1(rarity(shares, power)),
        "hierarchical": hierarchical(levels),
    }
    if now is not None:
        made |= {"micro_f1": micro_f1(now), "macro_f1": macro_f1(now)}
    total = sum(parts.values())
    return [replace(made[name], share=weight / total) for name, weight in parts.items()]
