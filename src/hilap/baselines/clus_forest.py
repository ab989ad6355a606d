"""One tree or many: the mean of what their leaves say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.baselines.clus_tree import LEAF, Tree
from hilap.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

_KINDS = {"roots": "int64", "feature": "int64", "threshold": "float64", "left": "int64", "right": "int64"}
_LEAF_KINDS = {"values": "float32", "columns": "int32", "starts": "int64"}


@dataclass(frozen=True)
class Forest:
    """The nodes of all trees one behind the other, and the rows of all leaves."""

    roots: NDArray[np.int64]  # (T,) the first node of each tree
    feature: NDArray[np.int64]  # (nodes,) LEAF for a leaf
    threshold: NDArray[np.float64]  # (nodes,)
    left: NDArray[np.int64]  # (nodes,) a node; of a leaf: its row of `means`
    right: NDArray[np.int64]  # (nodes,)
    means: sparse.csr_array  # (leaves, L) float32

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Forest:
        """A forest of these trees."""
        sizes = [len(tree.feature) for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        leaves = np.concatenate([[0], np.cumsum([tree.means.shape[0] for tree in trees])[:-1]])
        left, right = [], []
        for tree, root, leaf in zip(trees, roots, leaves, strict=True):
            inner = tree.feature != LEAF
            left.append(tree.left + np.where(inner, root, leaf))
            right.append(tree.right + np.where(inner, root, 0))
        return cls(
            roots,
            np.concatenate([tree.feature for tree in trees]),
            np.concatenate([tree.threshold for tree in trees]),
            np.concatenate(left).astype(np.int64),
            np.concatenate(right).astype(np.int64),
            sparse.csr_array(sparse.vstack([tree.means for tree in trees], format="csr")),
        )

    @property
    def n_leaves(self) -> int:
        """Of all trees together."""
        return int(self.means.shape[0])

    def leaves(self, rows: sparse.csr_matrix) -> NDArray[np.int64]:
        """(n, T) the leaf that each document falls into in each tree."""
        from hilap.baselines.clus_splits import leaf_rows

        ordered = rows if rows.has_sorted_indices else rows.sorted_indices()
        found: NDArray[np.int64] = leaf_rows(
            ordered.indptr, ordered.indices, ordered.data,
            self.roots, self.feature, self.threshold, self.left, self.right,
        )  # fmt: skip
        return found

    def scores(self, rows: sparse.csr_matrix) -> NDArray[np.float64]:
        """(n, L) the mean over trees. Trees are added one after the other, so a child never gets above its parent."""
        found = self.leaves(rows)
        n, n_trees = found.shape
        starts = np.arange(n + 1, dtype=np.int64) * n_trees
        which = sparse.csr_array((np.ones(n * n_trees), found.ravel(), starts), shape=(n, self.n_leaves))
        return np.asarray((which @ self.means.astype(np.float64)).toarray() / n_trees)

    def stored(self) -> dict[str, Tensor]:
        """The same as tensors."""
        import torch

        made = {f"trees.{name}": torch.from_numpy(getattr(self, name)) for name in _KINDS}
        made["leaves.values"] = torch.from_numpy(self.means.data.astype(np.float32))
        made["leaves.columns"] = torch.from_numpy(self.means.indices.astype(np.int32))
        made["leaves.starts"] = torch.from_numpy(self.means.indptr.astype(np.int64))
        return made

    @classmethod
    def opened(cls, tensors: Mapping[str, Tensor], n_features: int, n_labels: int) -> Forest:
        """What `stored` gave; it may come from a stranger's file."""
        nodes = {name: _row(tensors, f"trees.{name}", kind) for name, kind in _KINDS.items()}
        values, columns, starts = (_row(tensors, f"leaves.{name}", kind) for name, kind in _LEAF_KINDS.items())
        good = (
            len(starts) > 1
            and starts[0] == 0
            and starts[-1] == len(values) == len(columns)
            and bool((np.diff(starts) >= 0).all())
            and bool(((columns >= 0) & (columns < n_labels)).all())
            and bool(((values >= 0) & (values <= 1)).all())
        )
        if not good:
            raise ModelError("the tensors 'leaves.*' are no matrix of leaves and labels with shares from 0 to 1")
        _check_nodes(nodes, n_features, len(starts) - 1)
        means = sparse.csr_array((values, columns, starts), shape=(len(starts) - 1, n_labels))
        return cls(**nodes, means=means)


def _row(tensors: Mapping[str, Tensor], name: str, kind: str) -> NDArray[Any]:
    given = tensors[name]
    if str(given.dtype) != f"torch.{kind}" or given.dim() != 1:
        raise ModelError(f"tensor {name!r} must be a row of {kind}, got {given.dtype}")
    return np.asarray(given.numpy())


def _check_nodes(nodes: Mapping[str, NDArray[Any]], n_features: int, n_leaves: int) -> None:
    """Children stand behind their parents and in their tree, so every way down ends, at a leaf that is there."""
    roots, feature, left, right = (nodes[name] for name in ("roots", "feature", "left", "right"))
    size = len(feature)
    if not (size and len(roots) and len(nodes["threshold"]) == len(left) == len(right) == size):
        raise ModelError("the tensors 'trees.*' are not of one length")
    if roots[0] != 0 or bool((np.diff(roots) <= 0).any()) or roots[-1] >= size:
        raise ModelError("tensor 'trees.roots' must name the first node of each tree")
    here = np.arange(size)
    end = np.append(roots[1:], size)[np.searchsorted(roots, here, side="right") - 1]
    leaf = feature == LEAF
    behind = (left > here) & (right > here) & (left < end) & (right < end)
    known = (feature >= 0) & (feature < n_features)
    there = (left >= 0) & (left < n_leaves)
    if not bool(np.where(leaf, there, behind & known).all()) or not bool(np.isfinite(nodes["threshold"]).all()):
        raise ModelError("the tensors 'trees.*' are no trees: a child, a leaf or a feature is not there")


__all__ = ["Forest"]
