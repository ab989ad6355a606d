"""Thresholds chosen on documents that were not learned from: one for all labels, or one for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.errors import SettingError
from hilap.metrics.counts import Counts, document_counts, label_counts, pair
from hilap.metrics.flat import covered, example_from_counts, f1_from_counts, macro_from_counts, micro_from_counts
from hilap.metrics.single import single

TUNES = (None, "example_f1", "micro_f1", "macro_f1", "mean", "balanced", "scut", "scutfbr")
"""None: the threshold that was given. A metric (`mean`, `balanced`: see `hilap.metrics.single`): one threshold for all
labels that is best for it. `scut`: for each label the threshold that is best for its own F1 on the validation
documents. `scutfbr`: for each label by two nested cross-validations on the training documents (`scutfbr` below), which
is 15 further trainings."""
STEPS = 200
FBR = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""What the F1 of a label must exceed; else the label gets a threshold that none of the scores seen exceeds."""

Values = Callable[[NDArray[Any]], NDArray[Any]]
Numbers = NDArray[np.float64]


def tuned(gold: Any, scores: NDArray[Any], tune: str, repair: Values, start: float, seen: NDArray[np.bool_]) -> Numbers:
    """(L,) the thresholds that are best on these documents.

    Parameters
    ----------
    gold, scores
        (n, L) of the validation documents.
    tune
        A metric, or `scut`.
    repair
        What is done to scores so that, above any threshold, they are the repaired sets.
    start
        The threshold of a label that no training or no validation document has, with `scut`, unless a score is above
        it: there is nothing to find one by.
    seen
        (L,) whether a training document has a label; the others are never given.
    """
    if tune == "scut":
        found, _ = best_thresholds(gold.toarray() > 0, scores)
        never = np.maximum(start, scores.max(0)) if len(scores) else np.full(scores.shape[1], start)
        return np.where(seen & (np.asarray(gold.sum(0)).ravel() > 0), found, never)
    tried, curves = tried_out(gold, scores, repair, start, seen)
    values = np.array(curve_of(curves, tune))
    first = int(values.argmax())
    worse = np.flatnonzero(values[first:] < values[first])
    last = first + (int(worse[0]) if len(worse) else len(values) - first) - 1
    # Of neighbours that are equally good the middle one: the lowest would give labels away, the highest hold them back.
    return np.full(scores.shape[1], tried[(first + last) // 2])


def tried_out(
    gold: Any, scores: NDArray[Any], repair: Values, start: float, seen: NDArray[np.bool_]
) -> tuple[Numbers, dict[str, Numbers]]:
    """(T,) thresholds for all labels, ascending, and for each metric its value at each; arguments as of `tuned`."""
    repaired = repair(scores)
    tried = candidates(gold, repaired, start)
    if not seen.all():
        repaired = repair(np.where(seen, scores, -np.inf))
    return tried, f1_curves(gold, repaired, tried)


def candidates(gold: Any, scores: NDArray[Any], start: float) -> Numbers:
    """Thresholds worth trying, ascending: densest where about as many labels are given as there are gold ones."""
    if not scores.size:
        return np.array([start])
    share = gold.nnz / scores.size
    tail = np.quantile(scores, np.clip(1 - share * np.linspace(0.02, 8, STEPS), 0, 1))
    whole = np.quantile(scores, np.linspace(0, 1, STEPS // 10))
    return np.unique(np.concatenate([tail, whole, [start]])).astype(np.float64)


def best_thresholds(gold: NDArray[np.bool_], scores: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """For each label the threshold with the best F1, halfway between two scores, and that F1; all labels at once."""
    order = np.argsort(-scores, axis=0, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=0).astype(np.float64)
    hits = np.cumsum(np.take_along_axis(gold, order, axis=0), axis=0)
    taken = np.arange(1, len(scores) + 1)[:, None]
    f1 = 2 * hits / (taken + gold.sum(0))
    last = np.vstack([ranked[:-1] != ranked[1:], np.ones((1, scores.shape[1]), bool)])  # equal scores go together
    best = np.where(last, f1, -1.0).argmax(0)
    columns = np.arange(scores.shape[1])
    here = ranked[best, columns]
    below = np.vstack([ranked[1:], ranked[-1:] - 1e-3])[best, columns]
    middle = (here + below) / 2
    return np.where(middle < here, middle, below), f1[best, columns]  # rounding must not lose the label's own score


def scutfbr(
    labels: Any, scores_of: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[Any]], folds: int, seed: int
) -> Numbers:
    """(L,) SCutFBR.1 (Yang 2001; Lewis et al. 2004; Fan and Lin 2007) by two nested cross-validations.

    SCut with a bound `fbr` (`_scut`) is itself a cross-validation. Which bound is best for a label is found by an outer
    one: thresholds of SCut on the rest, for every bound, are tried on the fold with a model of the rest. Of bounds with
    the same sum of F1 the highest counts, and the lowest where none finds anything; with it, SCut on all documents
    gives the label's threshold. That makes folds * (folds + 1) + folds trainings, 15 with three folds.

    Parameters
    ----------
    labels
        (n, L) gold sets of the training documents.
    scores_of
        (rows to learn from, rows to score) -> scores.
    folds
        Of both cross-validations.
    seed
        Parts the documents.
    """
    if labels.shape[0] < folds**2:
        raise SettingError(
            f"tune='scutfbr' parts the training documents twice into {folds}: it needs at least {folds**2}, got "
            f"{labels.shape[0]}; take tune='scut', or give more"
        )
    gold = labels.toarray() > 0
    rows = np.random.default_rng([seed, 23]).permutation(len(gold))
    reached = np.zeros((len(FBR), gold.shape[1]))
    for rest, part in _parted(rows, folds):
        thresholds = _scut(gold, rest, scores_of, folds)
        scores, right = scores_of(np.sort(rest), part), gold[part]
        for i, cut in enumerate(thresholds):
            given = scores > cut
            reached[i] += f1_from_counts((given & right).sum(0), given.sum(0), right.sum(0), empty=0.0)
    highest = len(FBR) - 1 - reached[::-1].argmax(0)
    best = np.where(reached.max(0) > 0, highest, 0)
    found: Numbers = _scut(gold, rows, scores_of, folds)[best, np.arange(gold.shape[1])]
    return found


def _scut(gold: NDArray[np.bool_], rows: NDArray[np.int64], scores_of: Any, folds: int) -> Numbers:
    """(bounds, L) the threshold with the best F1, as a mean over folds, each scored by a model of the rest.

    Where the best F1 on a fold is not above the bound, its threshold is the label's highest score there, so that rare
    labels do not flood the predictions. A model that has seen no document with a label, or none without it, says
    nothing about that label: its fold does not count, unless all are like that.
    """
    cuts = np.empty((folds, len(FBR), gold.shape[1]))
    counts = np.empty((folds, 1, gold.shape[1]))
    for k, (rest, part) in enumerate(_parted(rows, folds)):
        scores = scores_of(np.sort(rest), part)
        thresholds, f1 = best_thresholds(gold[part], scores)
        cuts[k] = np.where(f1 > np.array(FBR)[:, None], thresholds, scores.max(0))
        seen = gold[rest].sum(0)
        counts[k] = (seen > 0) & (seen < len(rest))
    counts[:, :, ~counts.any((0, 1))] = 1
    return np.asarray((cuts * counts).sum(0) / counts.sum(0))


def _parted(rows: NDArray[np.int64], folds: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(the rest, a part) for each of so many parts of these rows."""
    parts = np.array_split(rows, folds)
    for k, part in enumerate(parts):
        yield np.concatenate([other for j, other in enumerate(parts) if j != k]), part


def f1_curves(gold: Any, scores: NDArray[Any], thresholds: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """(T,) for each metric its value at each of some ascending thresholds for all labels.

    Parameters
    ----------
    gold
        (n, L) sparse indicator.
    scores
        (n, L); a label is given where its score is above the threshold.
    thresholds
        (T,) ascending.
    """
    places = np.searchsorted(thresholds, scores.astype(np.float64))  # how many thresholds each score is above
    rows = np.repeat(np.arange(gold.shape[0]), np.diff(gold.indptr))
    right = places[rows, gold.indices]
    documents = Counts(
        _above(rows, right, gold.shape[0], len(thresholds)),
        _above(np.arange(len(places))[:, None], places, gold.shape[0], len(thresholds)),
        np.diff(gold.indptr)[:, None],
    )
    held = np.bincount(gold.indices, minlength=gold.shape[1])
    labels = Counts(
        _above(gold.indices, right, gold.shape[1], len(thresholds)),
        _above(np.arange(gold.shape[1]), places, gold.shape[1], len(thresholds)),
        held[:, None],
    )
    by_label = f1_from_counts(*labels, empty=0.0)[held > 0]
    hits, given = documents.true_positives.sum(0), documents.predicted.sum(0)
    return {
        "example_f1": f1_from_counts(*documents).mean(0),
        "micro_f1": f1_from_counts(hits, given, documents.gold.sum(), empty=0.0),
        "macro_f1": by_label.mean(0) if len(by_label) else np.full(len(thresholds), np.nan),
    }


def curve_of(curves: dict[str, NDArray[np.float64]], metric: str) -> list[float]:
    """The values of a metric, or of several together, along the curves; 0 where there are none."""
    known = {name: np.nan_to_num(curve) for name, curve in curves.items()}
    return [single(dict(zip(known, at, strict=True)), metric) for at in zip(*known.values(), strict=True)]


def _above(group: NDArray[Any], places: NDArray[Any], groups: int, n: int) -> NDArray[np.int64]:
    """(groups, n) how many of a group's scores are above each of n thresholds."""
    exactly = np.bincount((group.astype(np.int64) * (n + 1) + places).ravel(), minlength=groups * (n + 1))
    passed = exactly.reshape(groups, n + 1)[:, ::-1].cumsum(1)[:, ::-1]
    return np.asarray(passed[:, 1:])


def score_sets(gold: Any, found: NDArray[np.bool_], metric: str) -> float:
    """Micro-, Macro- (over gold labels) or example F1 of predicted sets, or their mean."""
    right, predicted = pair(gold, found)
    by_label = label_counts(right, predicted)
    scores = {
        "micro_f1": micro_from_counts(by_label).f1,
        "macro_f1": macro_from_counts(by_label, covered("gold", by_label.gold)).f1,
        "example_f1": example_from_counts(document_counts(right, predicted)).f1,
    }
    return float(np.nan_to_num(single(scores, metric)))


__all__ = [
    "TUNES",
    "best_thresholds",
    "candidates",
    "curve_of",
    "f1_curves",
    "score_sets",
    "scutfbr",
    "tried_out",
    "tuned",
]
