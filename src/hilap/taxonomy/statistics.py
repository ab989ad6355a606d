"""The figures of a taxonomy: how many labels, how deep, how bushy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from hilap.errors import TaxonomyError
from hilap.taxonomy.graph import Taxonomy


@dataclass(frozen=True, slots=True)
class TaxonomyStatistics:
    """The figures of one taxonomy. The root is no label and is counted nowhere."""

    kind: Literal["tree", "DAG"]
    labels: int
    edges: int
    top_labels: int
    leaves: int
    levels: int  # along the longest ways, as the paper counts
    labels_per_level: tuple[int, ...]  # by the longest way; the first figure is the number of top labels
    several_parents: int  # labels with more than one parent
    mean_children: float  # of the labels that have any; 0 where none has
    most_children: int
    closure_size: int | None  # pairs of a label and an ancestor or itself; None where there are too many to list
    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        """The figures as plain JSON values."""
        return {**asdict(self), "labels_per_level": list(self.labels_per_level)}


def statistics(taxonomy: Taxonomy) -> TaxonomyStatistics:
    """The figures of a taxonomy.

    Examples
    --------
    >>> figures = statistics(Taxonomy.of({"Food": [], "Bars": ["Food"], "Beer Bars": ["Bars"], "Cafés": ["Food"]}))
    >>> figures.kind, figures.labels, figures.labels_per_level, figures.mean_children
    ('tree', 4, (1, 2, 1), 1.5)
    """
    children = np.diff(taxonomy.child_matrix.indptr)
    inner = children[children > 0]
    return TaxonomyStatistics(
        kind="tree" if taxonomy.is_tree else "DAG",
        labels=len(taxonomy),
        edges=taxonomy.n_edges,
        top_labels=len(taxonomy.top_labels),
        leaves=len(taxonomy.leaves),
        levels=taxonomy.depth,
        labels_per_level=tuple(np.bincount(taxonomy.longest_levels)[1:].tolist()),
        several_parents=int((np.diff(taxonomy.parent_matrix.indptr) > 1).sum()),
        mean_children=float(inner.mean()) if len(inner) else 0.0,
        most_children=int(children.max(initial=0)),
        closure_size=_closure_size(taxonomy),
        fingerprint=taxonomy.fingerprint,
    )


def _closure_size(taxonomy: Taxonomy) -> int | None:
    if taxonomy.is_tree:  # a label is on as many levels as it has ancestors, with itself
        return int(taxonomy.longest_levels.sum(dtype=np.int64))
    try:
        return int(taxonomy.closure.nnz)
    except TaxonomyError:
        return None


__all__ = ["TaxonomyStatistics", "statistics"]
