"""What `predict_labels` gives: predictions from a matrix of sets and a matrix of probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray
from scipy import sparse

from hilap.prediction import Prediction, ScoredLabel, Step
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


__all__ = ["predictions"]
