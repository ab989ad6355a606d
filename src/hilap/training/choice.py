"""Which linear part stands under the policy, where the settings leave it open (`wide_loss="chosen"`).

One SVM for each label, read as it is or condensed, or one structured SVM, condensed: each is best on some set of texts
(docs/decisions/0011 and 0016). All are cross-fitted, so every training document is scored by one that has not seen it,
and what a walk would make of these scores before it has learned anything is known on thousands of documents, not on a
few hundred for validation. Condensing is slower to predict with, and has to be better than plain SVMs by a point: of
less, nothing was left when the walk had learned.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from hilap.decoding import StopBias, shortfalls, tune_stop_bias
from hilap.decoding.coherence import Coherence, Condensing, Lifting
from hilap.network import averaged
from hilap.products import sigmoid
from hilap.taxonomy import Taxonomy
from hilap.training.scoring import ROUGH_RESIDUAL, best_threshold
from hilap.wide import Margins, scaled, solved

TOGETHER = 2.0  # a structured SVM's strength beside that of one for each label: what was best of each
MARGIN = 0.01  # that a walk has to start better by on condensed scores than on plain ones
MOST_TOGETHER = 30_000_000  # weights of a structured SVM, of which it needs several copies: beyond, it is left out
MOST_CONDENSED = 20_000_000  # pairs of a document and a label: beyond, condensing all only to choose takes too long
MOST_STRENGTH = 1e6


@dataclass(frozen=True)
class Kind:
    """A linear part: the loss of its SVMs, what an error costs, and whether its logits are condensed."""

    loss: str
    strength: float
    condense: bool


@dataclass(frozen=True)
class Choice:
    """The part that was chosen, what it found, and how good the start of a walk is on each that was tried."""

    kind: Kind
    found: Margins
    scores: Mapping[Kind, float]


def kinds(strength: float, *, may_condense: bool, weights: int, pairs: int) -> list[Kind]:
    """What there is to choose from, with so many weights and pairs of a document and a label."""
    found = [Kind("squared_hinge", strength, condense=False)]
    if may_condense and pairs <= MOST_CONDENSED:
        found.append(Kind("squared_hinge", strength, condense=True))
        if weights <= MOST_TOGETHER:
            found.append(Kind("structured", min(TOGETHER * strength, MOST_STRENGTH), condense=True))
    return found


def choose(
    rows: sparse.csr_array,
    labels: sparse.csr_array,
    folds: Sequence[NDArray[np.int64]],
    choices: Sequence[Kind],
    *,
    repeats: int,
    taxonomy: Taxonomy,
    averaging: str,
    metric: str,
    judged: NDArray[np.int64],
    lift: bool = True,
    label_rows: sparse.csr_array | None = None,
) -> Choice:
    """Cross-fit each of several linear parts and take the one on whose honest logits a walk starts clearly best.

    Parameters
    ----------
    rows, labels, folds, repeats, taxonomy, label_rows
        As for `hilap.wide.cross_fit`.
    choices
        The linear parts. A later one is taken if it is better than the one so far, a condensed one than a plain one by
        `MARGIN`.
    averaging
        How the logits of repeats become one.
    metric
        What is best.
    judged
        The documents that it is judged on.
    lift
        Whether walks will lift parents to their children.
    """
    alike = None if label_rows is None else (rows @ label_rows.T).toarray().astype(np.float32)
    scores: dict[Kind, float] = {}
    best: tuple[Kind, Margins] | None = None
    raw: Margins | None = None
    told: dict[Kind, list[warnings.WarningMessage]] = {}
    for place, kind in enumerate(choices):
        before, after = (choices[n] if 0 <= n < len(choices) else None for n in (place - 1, place + 1))
        if raw is None or not _same_svms(before, kind):  # condensed or not, the SVMs are the same
            raw = None  # before others are solved, which need the room
            with warnings.catch_warnings(record=True) as heard:  # of what is not taken nobody needs to hear
                warnings.simplefilter("always")
                raw = solved(
                    rows, labels, folds, repeats=repeats, strength=kind.strength, loss=kind.loss, taxonomy=taxonomy
                )
        told[kind] = heard
        last = not _same_svms(kind, after)
        found = scaled(
            *(raw, labels), taxonomy=taxonomy, condense=kind.condense, alike=alike, label_rows=label_rows, last=last
        )
        each = [torch.from_numpy(one[judged]) for one in found.honest]
        if kind.condense:
            condensing = Condensing(taxonomy)
            each = [condensing(one) for one in each]
        logits = averaged(each, averaging)
        alone = len(choices) == 1
        scores[kind] = 0.0 if alone else start_score(logits, labels[judged], taxonomy, metric, lift=lift)
        if best is None or scores[kind] > scores[best[0]] + MARGIN * (kind.condense and not best[0].condense):
            best = kind, found
    if best is None:
        raise ValueError("there is nothing to choose from")
    for warning in told[best[0]]:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return Choice(*best, scores)


def _same_svms(one: Kind | None, other: Kind | None) -> bool:
    return one is not None and other is not None and (one.loss, one.strength) == (other.loss, other.strength)


def start_score(
    logits: torch.Tensor, labels: sparse.csr_array, taxonomy: Taxonomy, metric: str, *, lift: bool = True
) -> float:
    """The best score of walks that have not learned yet: of flat logits with biases, parents lifted to children.

    Of what such walks place nearly all is what stands above the stop's score (docs/decisions/0015), so no walk is made.
    It is asked for flat models alone too, so that they have the part that a walk would stand on.
    """
    if not labels.sum():
        return 0.0  # nothing to be right about
    threshold, _ = best_threshold(labels, sigmoid(logits).numpy(), metric)
    stop = float(np.log(threshold / (1 - threshold)))
    short = torch.from_numpy(shortfalls(logits.numpy(), labels, stop, taxonomy, lift=lift))
    lifting, coherence = Lifting(taxonomy), Coherence(taxonomy)

    def sets(bias: StopBias) -> NDArray[np.bool_]:
        biased = logits + bias.count * short
        high = lifting(biased).numpy() if lift else coherence(biased.numpy())
        return np.asarray(high > stop + bias.constant)

    return tune_stop_bias(sets, labels, metric=metric, grids=ROUGH_RESIDUAL, refinements=0).score


__all__ = ["Choice", "Kind", "choose", "kinds", "start_score"]
