"""Metrics that know the taxonomy: hierarchical P/R/F, consistent F1 and the share of inconsistent documents.

`lca_scores` stands in `hilap.metrics.lca`. Where gold and predictions are closed upward, hierarchical and consistent
scores are the flat ones; they differ exactly as far as predictions are inconsistent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from hilap.metrics.counts import Bools, document_counts, entries, indicator, label_counts, pair, row_numbers
from hilap.metrics.flat import (
    PRF,
    Macro,
    covered,
    example_from_counts,
    macro_from_counts,
    mean,
    micro_from_counts,
)
from hilap.taxonomy.graph import Indicator, Taxonomy

MOST_ENTRIES = 20_000_000  # of one sparse product: a few hundred megabytes


def hierarchical(gold: Any, predicted: Any, taxonomy: Taxonomy) -> PRF:
    """hP, hR and hF (Kiritchenko et al.): micro scores of both sets with all ancestors added, the root left out."""
    return micro_from_counts(document_counts(*_closed(gold, predicted, taxonomy)))


def hierarchical_example(gold: Any, predicted: Any, taxonomy: Taxonomy) -> PRF:
    """The same for each document, then averaged; nothing found where nothing was to be found is right (1)."""
    return example_from_counts(document_counts(*_closed(gold, predicted, taxonomy)))


def consistent_part(predicted: Any, taxonomy: Taxonomy) -> Indicator:
    """The predicted labels all of whose ancestors are predicted too; the others are taken out."""
    found = indicator(predicted, "predicted", len(taxonomy))
    suspects = np.flatnonzero(taxonomy.inconsistent_rows(found))
    if not len(suspects):
        return found
    keep = np.ones(found.nnz, dtype=bool)
    at_a_time = max(1, MOST_ENTRIES // len(taxonomy))
    for start in range(0, len(suspects), at_a_time):
        rows = suspects[start : start + at_a_time]
        lengths = np.diff(found.indptr)[rows]
        ends = np.cumsum(lengths)
        entries = np.arange(ends[-1]) + np.repeat(found.indptr[rows] - (ends - lengths), lengths)
        keep[entries] = _supported(found[rows], taxonomy)
    kept = sparse.csr_array((keep.astype(np.int32), found.indices, found.indptr), shape=found.shape).copy()
    kept.eliminate_zeros()
    return kept


def consistent_micro(gold: Any, predicted: Any, taxonomy: Taxonomy) -> PRF:
    """C-Micro: micro scores where a predicted label counts only if all its ancestors are predicted too."""
    right, found = pair(gold, predicted, taxonomy)
    return micro_from_counts(label_counts(right, consistent_part(found, taxonomy)))


def consistent_macro(gold: Any, predicted: Any, taxonomy: Taxonomy, over: Macro = "gold", training: Any = None) -> PRF:
    """C-Macro: macro scores where a predicted label counts only if all its ancestors are predicted too."""
    right, found = pair(gold, predicted, taxonomy)
    counts = label_counts(right, consistent_part(found, taxonomy))
    return macro_from_counts(counts, covered(over, counts.gold, training))


def inconsistent_share(predicted: Any, taxonomy: Taxonomy) -> float:
    """The share of documents with a predicted label that lacks one of its ancestors."""
    return mean(taxonomy.inconsistent_rows(indicator(predicted, "predicted", len(taxonomy))))


def _supported(rows: Indicator, taxonomy: Taxonomy) -> Bools:
    """For each entry of the rows, in order, whether all the label's ancestors are in its row."""
    present = (rows @ taxonomy.descendant_matrix.astype(np.int32)).tocsr()  # [i, l] = l and ancestors of l in row i
    present.sort_indices()
    needed = np.diff(taxonomy.closure.indptr)[rows.indices]
    return np.asarray(entries(present, row_numbers(rows), rows.indices) == needed)


def _closed(gold: Any, predicted: Any, taxonomy: Taxonomy) -> tuple[Indicator, Indicator]:
    right, found = pair(gold, predicted, taxonomy)
    return taxonomy.close_matrix(right), taxonomy.close_matrix(found)
