"""What `predict_labels` and `hilap predict` give, from a matrix of sets and a matrix of probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.prediction import Prediction, ScoredLabel, Step, rounded
from hilap.taxonomy import Taxonomy


def predictions(
    taxonomy: Taxonomy,
    ids: Sequence[str],
    found: sparse.csr_array,
    chances: NDArray[Any],
    walks: Iterable[tuple[Step, ...]] | None = None,
) -> list[Prediction]:
    """One prediction for each document.

    Parameters
    ----------
    taxonomy
        The labels.
    ids
        The documents'.
    found
        (n, L) sparse indicator of the predicted sets.
    chances
        (n, L) the probability of each label.
    walks
        The walk of each document, where it is wanted.
    """
    levels = dict(zip(taxonomy.labels, taxonomy.levels.tolist(), strict=True))
    steps = [None] * len(ids) if walks is None else list(walks)
    made = []
    for i, (id_, walk) in enumerate(zip(ids, steps, strict=True)):
        columns = found.indices[found.indptr[i] : found.indptr[i + 1]].tolist()
        labels = [ScoredLabel(taxonomy.labels[k], taxonomy.names[k], float(chances[i, k])) for k in columns]
        made.append(Prediction.of(id_, labels, levels, walk))
    return made


def records(
    taxonomy: Taxonomy, ids: Sequence[str], found: sparse.csr_array, chances: NDArray[Any]
) -> list[dict[str, Any]]:
    """What `to_json` of the `predictions` gives, without making them: for files of many documents.

    Parameters
    ----------
    taxonomy, ids, found, chances
        As of `predictions`.
    """
    rows = np.repeat(np.arange(len(ids)), np.diff(found.indptr))
    labels = found.indices
    values = chances[rows, labels].astype(np.float64)
    by_name = np.empty(len(taxonomy), dtype=np.int64)
    by_name[sorted(range(len(taxonomy)), key=taxonomy.labels.__getitem__)] = np.arange(len(taxonomy))
    order = np.lexsort((by_name[labels], -values, taxonomy.levels[labels], rows))
    start = [
        {"label": label} if label == name else {"label": label, "name": name}
        for label, name in zip(taxonomy.labels, taxonomy.names, strict=True)
    ]
    scored = [
        {**start[label], "probability": rounded(value)}
        for label, value in zip(labels[order].tolist(), values[order].tolist(), strict=True)
    ]
    ends = found.indptr.tolist()
    return [{"id": id_, "labels": scored[a:b]} for id_, a, b in zip(ids, ends, ends[1:], strict=False)]


__all__ = ["predictions", "records"]
