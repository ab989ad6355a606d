"""Which linear part stands under the policy, where the settings leave it open (`wide_loss="chosen"`).

One SVM for each label, read as it is or condensed, or one structured SVM, condensed: each is best on some set of texts
(docs/decisions/0011 and 0016). All are cross-fitted, so every training document is scored by one that has not seen it,
and what a walk would make of these scores before it has learned anything is known on thousands of documents, not on a
few hundred for validation. A part that is slower to predict with has to be better by a point: of less, nothing was left
when the walk had learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from hilap.decoding import StopBias, shortfalls, tune_stop_bias
from hilap.decoding.coherence import Condensing, Lifting
from hilap.network import averaged
from hilap.products import sigmoid
from hilap.taxonomy import Taxonomy
from hilap.training.scoring import ROUGH_RESIDUAL, best_threshold
from hilap.wide import Margins, scaled, solved

TOGETHER = 2.0  # a structured SVM's strength beside that of one for each label: what was best of each
MARGIN = 0.01  # that a walk has to start better by on a part that is slower to predict with
MOST_TOGETHER = 100_000_000  # weights of a structured SVM, of which it needs several copies: beyond, it is left out


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


def kinds(strength: float, *, may_condense: bool, weights: int) -> list[Kind]:
    """What there is to choose from, what is fast to predict with first."""
    found = [Kind("squared_hinge", strength, condense=False)]
    if may_condense:
        found.append(Kind("squared_hinge", strength, condense=True))
        if weights <= MOST_TOGETHER:
            found.append(Kind("structured", TOGETHER * strength, condense=True))
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
    label_rows: sparse.csr_array | None = None,
) -> Choice:
    """Cross-fit each of several linear parts and take the one on whose honest logits a walk starts clearly best.

    Parameters
    ----------
    rows, labels, folds, repeats, taxonomy, label_rows
        As for `hilap.wide.cross_fit`.
    choices
        The linear parts. A later one is taken if it is better than the one so far by `MARGIN`.
    averaging
        How the logits of repeats become one.
    metric
        What is best.
    judged
        The documents that it is judged on.
    """
    alike = None if label_rows is None else (rows @ label_rows.T).toarray().astype(np.float32)
    scores: dict[Kind, float] = {}
    best: tuple[Kind, Margins] | None = None
    raw: dict[tuple[str, float], Margins] = {}
    for kind in choices:
        key = (kind.loss, kind.strength)
        if key not in raw:  # condensed or not, the SVMs are the same; no others are kept
            raw = {
                key: solved(
                    rows, labels, folds, repeats=repeats, strength=kind.strength, loss=kind.loss, taxonomy=taxonomy
                )
            }
        found = scaled(raw[key], labels, taxonomy=taxonomy, condense=kind.condense, alike=alike, label_rows=label_rows)
        each = [torch.from_numpy(one[judged]) for one in found.honest]
        if kind.condense:
            condensing = Condensing(taxonomy)
            each = [condensing(one) for one in each]
        alone = len(choices) == 1
        scores[kind] = 0.0 if alone else start_score(averaged(each, averaging), labels[judged], taxonomy, metric)
        if best is None or scores[kind] > scores[best[0]] + MARGIN:
            best = kind, found
    if best is None:
        raise ValueError("there is nothing to choose from")
    return Choice(*best, scores)


def start_score(logits: torch.Tensor, labels: sparse.csr_array, taxonomy: Taxonomy, metric: str) -> float:
    """The best score of walks that have not learned yet: of flat logits with biases, parents lifted to children.

    Of what such walks place nearly all is what stands above the stop's score (docs/decisions/0015), so no walk is made.
    """
    if not labels.sum():
        return 0.0  # nothing to be right about
    threshold, _ = best_threshold(labels, sigmoid(logits).numpy(), metric)
    stop = float(np.log(threshold / (1 - threshold)))
    short = torch.from_numpy(shortfalls(logits.numpy(), labels, stop, taxonomy, lift=True))
    lifting = Lifting(taxonomy)

    def sets(bias: StopBias) -> NDArray[np.bool_]:
        return (lifting(logits + bias.count * short) > stop + bias.constant).numpy()

    return tune_stop_bias(sets, labels, metric=metric, grids=ROUGH_RESIDUAL, refinements=0).score


__all__ = ["Choice", "Kind", "choose", "kinds", "start_score"]
