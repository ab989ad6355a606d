"""Precision, recall and F1 of label sets: pooled (micro), by label (macro) and by document (example-based).

Everything is made from three counts: labels that are right, labels predicted, labels in the gold set. The root is no
label and never counted. Where nothing is there to count, 0/0 is taken as 0 for a label and for the pool, as in
scikit-learn with `zero_division=0`; but a document without gold labels that is given none is *right*: it scores 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from hilap.errors import SettingError, require
from hilap.metrics.counts import Bools, Counts, Floats, Integers, document_counts, label_counts, pair, training_counts

Macro = Literal["all", "gold", "both"]
"""Which labels a macro mean covers: all; with gold documents; with gold documents *and* training examples."""

MACROS: tuple[Macro, ...] = ("all", "gold", "both")


class PRF(NamedTuple):
    """Precision, recall and F1, between 0 and 1."""

    precision: Any
    recall: Any
    f1: Any


def f1_from_counts(true_positives: Any, predicted: Any, gold: Any, empty: float = 1.0) -> Any:
    """F1 of label sets from their sizes: 2 · right / (predicted + gold).

    The reward of the method and the reported example F1 are both this function, so it is plain arithmetic: numbers,
    numpy arrays and torch tensors all work, on any device.

    Parameters
    ----------
    true_positives, predicted, gold
        Labels in both sets, in the predicted set, in the gold set.
    empty
        F1 where both sets are empty.

    Examples
    --------
    >>> f1_from_counts(1, 2, 2), f1_from_counts(0, 0, 0), f1_from_counts(0, 0, 3)
    (0.5, 1.0, 0.0)
    """
    size = predicted + gold
    nothing = size == 0
    return (2 * true_positives + empty * nothing) / (size + nothing)


def precision_from_counts(true_positives: Any, predicted: Any, gold: Any, empty: float = 1.0) -> Any:
    """The share of predicted labels that are right; 0 where none was predicted although there are gold labels."""
    return (true_positives + empty * (predicted + gold == 0)) / (predicted + (predicted == 0))


def recall_from_counts(true_positives: Any, predicted: Any, gold: Any, empty: float = 1.0) -> Any:
    """The share of gold labels that were found; 0 where there are none although some were predicted."""
    return (true_positives + empty * (predicted + gold == 0)) / (gold + (gold == 0))


def prf_from_counts(counts: Counts, empty: float) -> PRF:
    """All three from the same counts."""
    return PRF(
        precision_from_counts(*counts, empty), recall_from_counts(*counts, empty), f1_from_counts(*counts, empty)
    )


def micro(gold: Any, predicted: Any) -> PRF:
    """Precision, recall and F1 over all (document, label) pairs at once.

    Examples
    --------
    >>> micro([[1, 1], [1, 0]], [[1, 0], [1, 1]]).f1
    0.6666666666666666
    """
    return micro_from_counts(label_counts(*pair(gold, predicted)))


def micro_from_counts(counts: Counts) -> PRF:
    """The same from the counts of each label or of each document."""
    return PRF(*map(float, prf_from_counts(Counts(*(int(np.sum(c)) for c in counts)), empty=0.0)))


def macro(gold: Any, predicted: Any, over: Macro = "gold", training: Any = None) -> PRF:
    """Precision, recall and F1 of each label, averaged over labels. NaN where no label is covered.

    Parameters
    ----------
    gold, predicted
        (n, L) indicator matrices.
    over
        The labels of the mean: `"all"`; `"gold"`, those with a gold document here; `"both"`, those with a gold document
        here and a training example. A label without gold documents and predictions has F1 0.
    training
        For `"both"`: the (m, L) indicator of the training set, or (L,) counts.
    """
    counts = label_counts(*pair(gold, predicted))
    return macro_from_counts(counts, covered(over, counts.gold, training))


def macro_from_counts(counts: Counts, cover: Bools) -> PRF:
    """The same from the counts of each label and the truth whether the mean covers it."""
    return PRF(*(mean(values[cover]) for values in prf_from_counts(counts, empty=0.0)))


def covered(over: Macro, gold_counts: Integers | Floats, training: Any = None) -> Bools:
    """(L,) the labels a macro mean covers. Counts may have further axes before the last."""
    require(over in MACROS, "macro", " or ".join(repr(m) for m in MACROS), over)
    if over == "all":
        return np.ones(gold_counts.shape, dtype=bool)
    if over == "gold":
        return np.asarray(gold_counts > 0)
    if training is None:
        raise SettingError(
            "macro='both' averages over labels with training examples and gold documents: give training, "
            "the indicator matrix of the training set or the number of examples of each label"
        )
    return np.asarray((gold_counts > 0) & (training_counts(training, gold_counts.shape[-1]) > 0))


def example(gold: Any, predicted: Any) -> PRF:
    """Precision, recall and F1 of each document, averaged over documents. The F1 is the paper's EBF.

    Examples
    --------
    >>> example([[1, 1], [0, 0]], [[1, 0], [0, 0]])
    PRF(precision=1.0, recall=0.75, f1=0.8333333333333333)
    """
    return example_from_counts(document_counts(*pair(gold, predicted)))


def example_from_counts(counts: Counts) -> PRF:
    """The same from the counts of each document."""
    return PRF(*map(mean, prf_from_counts(counts, empty=1.0)))


def hamming_loss(gold: Any, predicted: Any) -> float:
    """The share of wrong (document, label) decisions among all n · L."""
    right, found = pair(gold, predicted)
    hits, predictions, truths = (int(c.sum()) for c in document_counts(right, found))
    return float((predictions + truths - 2 * hits) / (right.shape[0] * right.shape[1]))


def subset_accuracy(gold: Any, predicted: Any) -> float:
    """The share of documents whose predicted set is exactly the gold set."""
    hits, predictions, truths = document_counts(*pair(gold, predicted))
    return mean((hits == predictions) & (hits == truths))


@dataclass(frozen=True)
class LabelScores:
    """One row for each label: how often it is right, how often predicted, how often gold, and its scores."""

    counts: Counts  # (L,) each
    precision: Floats
    recall: Floats
    f1: Floats

    @classmethod
    def of(cls, gold: Any, predicted: Any) -> LabelScores:
        """The scores of every label; 0 where there is nothing to divide by."""
        counts = label_counts(*pair(gold, predicted))
        return cls(counts, *prf_from_counts(counts, empty=0.0))


def mean(values: Any) -> float:
    """The mean as a float; NaN, without a warning, of nothing."""
    return float(np.mean(values)) if len(values) else float("nan")
