"""Scores by level of the taxonomy and by popularity of labels: the paper's Figure 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilap.metrics.counts import Bools, Counts, Integers, label_counts, pair, training_counts
from hilap.metrics.flat import Macro, covered, macro_from_counts, micro_from_counts
from hilap.taxonomy.graph import Taxonomy

THIRDS = ("P1", "P2", "P3")


@dataclass(frozen=True)
class GroupScores:
    """The scores of some of the labels."""

    name: str
    labels: int  # how many the macro mean covers
    support: int  # gold (document, label) pairs
    micro_f1: float
    macro_f1: float  # NaN where no label is covered


def by_level(
    gold: Any, predicted: Any, taxonomy: Taxonomy, *, over: Macro = "gold", training: Any = None
) -> list[GroupScores]:
    """Scores of the labels at each level, counted along shortest ways from the root: `L1`, `L2` and so on.

    Micro-F1 is over all labels of the level, Macro-F1 over those among them that `over` covers.
    """
    counts = label_counts(*pair(gold, predicted, taxonomy))
    cover = covered(over, counts.gold, training)
    levels = taxonomy.levels
    return [_scores(f"L{level}", levels == level, counts, cover) for level in range(1, int(levels.max()) + 1)]


def by_popularity(gold: Any, predicted: Any, *, over: Macro = "gold", training: Any = None) -> list[GroupScores]:
    """Scores of the most (`P1`), less (`P2`) and least (`P3`) frequent third of the labels that `over` covers.

    Labels are ordered by their training examples where `training` is given, else by their gold documents here; equally
    frequent ones stay in the order of the taxonomy. Where the number is no multiple of three, earlier thirds get more.
    """
    counts = label_counts(*pair(gold, predicted))
    cover = covered(over, counts.gold, training)
    examples = counts.gold if training is None else training_counts(training, len(counts.gold))
    ordered = np.argsort(-examples, kind="stable")
    thirds = np.array_split(ordered[cover[ordered]], len(THIRDS))
    return [_scores(name, _mask(third, len(cover)), counts, cover) for name, third in zip(THIRDS, thirds, strict=True)]


def _scores(name: str, chosen: Bools, counts: Counts, cover: Bools) -> GroupScores:
    mine = Counts(*(c[chosen] for c in counts))
    macro_f1 = macro_from_counts(mine, cover[chosen]).f1
    return GroupScores(name, int(cover[chosen].sum()), int(mine.gold.sum()), micro_from_counts(mine).f1, macro_f1)


def _mask(indices: Integers, size: int) -> Bools:
    mask = np.zeros(size, dtype=bool)
    mask[indices] = True
    return mask
