"""What every set metric starts from: two checked indicator matrices, and how often they agree.

Matrices are (n, L): a row for each document, a column for each label in the order of `Taxonomy.labels`. They may be
sparse or dense, of any type that holds zeros and ones. Inside they are sparse and stay so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.errors import SettingError
from hilap.taxonomy.graph import Indicator, Taxonomy

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]


class Counts(NamedTuple):
    """How many labels are right, how many were predicted, how many are gold: each a number or an array."""

    true_positives: Any
    predicted: Any
    gold: Any


def indicator(matrix: Any, name: str, labels: int | None = None) -> Indicator:
    """A matrix of zeros and ones as a sorted sparse int32 indicator; the given one is left as it was.

    Parameters
    ----------
    matrix
        (n, L), sparse or dense, of any numeric or boolean type.
    name
        What the matrix is called in an error message.
    labels
        The number of columns it must have, where that is known.
    """
    rows = sparse.csr_array(matrix) if sparse.issparse(matrix) else sparse.csr_array(_dense(matrix, name))
    if rows.ndim != 2:
        raise SettingError(f"{name} must be a matrix (documents, labels), got shape {rows.shape}")
    if labels is not None and rows.shape[1] != labels:
        raise SettingError(f"{name} must have {labels} columns, one for each label, got shape {rows.shape}")
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    wrong = np.flatnonzero(rows.data != 1)
    if len(wrong):
        row = int(np.searchsorted(rows.indptr, wrong[0], side="right")) - 1
        raise SettingError(
            f"{name} must hold zeros and ones only, got {rows.data[wrong[0]]} in row {row}, "
            f"column {rows.indices[wrong[0]]}; choose labels by a threshold first"
        )
    ones = np.ones(len(rows.indices), dtype=np.int32)
    return sparse.csr_array((ones, rows.indices, rows.indptr), shape=rows.shape)


def pair(
    gold: Any, predicted: Any, taxonomy: Taxonomy | None = None, name: str = "predicted"
) -> tuple[Indicator, Indicator]:
    """Gold and predicted sets of the same documents, checked against each other and, if given, the taxonomy."""
    right = indicator(gold, "gold", None if taxonomy is None else len(taxonomy))
    if 0 in right.shape:
        raise SettingError(f"there is nothing to score: gold has shape {right.shape}; at least one document is needed")
    found = indicator(predicted, name, right.shape[1])
    if found.shape[0] != right.shape[0]:
        raise SettingError(
            f"gold has {right.shape[0]} documents but {name} has {found.shape[0]}; "
            "give one row for each document, in the same order"
        )
    return right, found


def score_matrix(scores: Any, gold: Indicator) -> Any:
    """The (n, L) scores of the documents of `gold`: a float array, or a csr_array where they are sparse."""
    matrix = sparse.csr_array(scores) if sparse.issparse(scores) else _dense(scores, "scores")
    if matrix.shape != gold.shape:
        raise SettingError(f"scores must have the shape of gold, {gold.shape}, got {matrix.shape}")
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float64)
    if sparse.issparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if np.isnan(matrix.data if sparse.issparse(matrix) else matrix).any():
        raise SettingError("scores must be numbers, got NaN; give a low score where a label was not scored")
    return matrix


def label_counts(gold: Indicator, predicted: Indicator) -> Counts:
    """(L,) counts for each label."""
    return Counts(*(column_counts(m) for m in (gold.multiply(predicted).tocsr(), predicted, gold)))


def document_counts(gold: Indicator, predicted: Indicator) -> Counts:
    """(n,) counts for each document."""
    return Counts(*(np.diff(m.indptr).astype(np.int64) for m in (gold.multiply(predicted).tocsr(), predicted, gold)))


def column_counts(matrix: Indicator) -> Integers:
    """(L,) the number of documents with each label."""
    return np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.int64)


def entries(matrix: Any, rows: Any, columns: Any) -> Any:
    """The values at these places of a dense or sparse matrix, as a flat array."""
    if not len(rows):
        return np.empty(0, dtype=matrix.dtype)  # scipy would answer with an empty sparse array
    picked = matrix[rows, columns]
    return np.asarray(picked.toarray() if sparse.issparse(picked) else picked).ravel()


def row_numbers(matrix: Indicator) -> Integers:
    """The row of each entry, in the order of `matrix.indices`."""
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))


def training_counts(training: Any, labels: int, taxonomy: Taxonomy | None = None) -> Integers:
    """(L,) training examples of each label, from an (n, L) indicator or from (L,) counts or truths.

    With a taxonomy, an indicator is closed upward before it is counted.
    """
    if sparse.issparse(training) or np.ndim(training) == 2:
        matrix = indicator(training, "training", labels)
        return column_counts(matrix if taxonomy is None else taxonomy.close_matrix(matrix))
    counts = np.asarray(training)
    if counts.shape != (labels,) or counts.dtype.kind not in "biu" or (counts < 0).any():
        raise SettingError(
            f"training must be an indicator matrix with {labels} columns, or {labels} counts of examples, "
            f"got {counts.dtype} of shape {counts.shape}"
        )
    return counts.astype(np.int64)


def _dense(matrix: Any, name: str) -> Any:
    try:
        array = np.asarray(matrix)
    except ValueError:
        raise SettingError(f"{name} must be a matrix (documents, labels); its rows differ in length") from None
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise SettingError(
            f"{name} must be a matrix of numbers (documents, labels), got {array.dtype} of shape {array.shape}; "
            "for sets of label ids, use taxonomy.encode"
        )
    return array
