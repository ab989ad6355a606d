"""Rewards: what a label set is worth. The paper's is example F1; the others are ours.

A walk earns the gains of its score step by step. All scores lie between 0 and 1, with 1 for the perfect set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from hilap.policy import EXAMPLE_F1, Score


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


def rarity(shares: Tensor, power: float) -> Tensor:
    """(L,) weights of labels: their share of documents (at least one in a thousand) to the minus `power`, mean 1."""
    weights = shares.clamp_min(1e-3) ** -power
    return weights / weights.mean()


def mixed(parts: Mapping[str, float], *, shares: Tensor, levels: Tensor, beta: float, power: float) -> list[Score]:
    """Named rewards, each with its share; `shares` (L,) of training documents and `levels` (L,) describe the labels."""
    made = {
        "example_f1": EXAMPLE_F1,
        "f_beta": f_beta(beta),
        "weighted_f1": weighted_f1(rarity(shares, power)),
        "hierarchical": hierarchical(levels),
    }
    total = sum(parts.values())
    return [replace(made[name], share=weight / total) for name, weight in parts.items()]
