"""Kernel dependency estimation: label vectors, projected on their principal components, regressed on the documents.

The label vectors of the training documents are projected on their leading principal components; kernel ridge regression
learns each component from the documents; what it says of a new document is projected back and is a score for each label
that is about 1 for labels a document has and about 0 for others (Weston et al. 2002; Bi and Kwok 2011).

The regression is written in features: of a linear kernel, the documents' own; of others (and of a linear kernel with
more features than landmarks) those that the kernel with some training documents, the *landmarks*, spans (Nystroem).
With all training documents as landmarks this is kernel ridge regression itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from hilap.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
KERNELS = ("linear", "rbf")
_BLOCK = 2048  # documents whose kernel values are in memory at once
_EXACT = 4000  # the largest matrix whose eigenvectors are all found
_DENSE = 0.1  # with more of its values stored, a matrix is faster dense
_RANK = 1e-10  # eigenvalues below this share of the largest are rounding


@dataclass(frozen=True)
class Kernel:
    """How alike two documents are: `linear`, x·z, or `rbf`, exp(-gamma |x - z|²)."""

    name: str
    gamma: float

    def __call__(self, rows: sparse.csr_matrix, points: sparse.csr_matrix) -> Floats:
        """(n, c) of documents and points. Sparse products: a row does not depend on the rows around it."""
        columns = points.T.tocsr()
        if points.nnz > _DENSE * points.shape[0] * points.shape[1]:
            columns = columns.toarray()
        products = rows @ columns
        products = np.asarray(products.toarray() if sparse.issparse(products) else products)
        if self.name == "linear":
            return products
        distance = _lengths(rows)[:, None] + _lengths(points) - 2 * products
        return np.asarray(np.exp(-self.gamma * np.maximum(distance, 0.0)))


@dataclass(frozen=True)
class Projection:
    """Label vectors as a few numbers: their distances from the mean along the principal components."""

    mean: Floats  # (L,)
    components: Floats  # (m, L), orthonormal

    @classmethod
    def fitted(cls, labels: Any, components: int, rng: np.random.Generator) -> Projection:
        """The leading principal components of these label vectors, as many as there are or so many."""
        given = sparse.csr_array(labels, dtype=np.float64)
        mean = np.asarray(given.mean(axis=0)).ravel()
        return cls(mean, _principal(given, mean, components, rng))

    def __call__(self, labels: Any) -> Floats:
        """(n, m) of label vectors (n, L)."""
        projected = sparse.csr_array(labels, dtype=np.float64) @ self.components.T
        return np.asarray(projected - self.mean @ self.components.T)


@dataclass(frozen=True)
class Regression:
    """Ridge regression of projections on features of documents, solved for every ridge at once."""

    points: sparse.csr_matrix | None  # (c, F) landmarks; None where documents' own features are used
    basis: Floats  # (F or c, r) from features, or kernel values, to directions that do not depend on each other
    strength: Floats  # (r,) the square of how far the training documents reach along each
    targets: Floats  # (r, m)

    @classmethod
    def fitted(
        cls, rows: sparse.csr_matrix, targets: Floats, kernel: Kernel, landmarks: int, rng: np.random.Generator
    ) -> Regression:
        """Learn from documents (n, F) and their projections (n, m)."""
        n, n_features = rows.shape
        if kernel.name == "linear" and n_features <= min(n, landmarks):
            gram, moment = (rows.T @ rows).toarray(), np.asarray(rows.T @ targets)
            strength, directions = _eigen(gram)
            return cls(None, directions, strength, directions.T @ moment)
        points = rows if n <= landmarks else rows[np.sort(rng.choice(n, landmarks, replace=False))]
        strength, directions = _eigen(kernel(points, points))
        basis = directions / np.sqrt(strength)
        if points is rows:
            return cls(points, basis, strength, (directions * np.sqrt(strength)).T @ targets)
        gram, moment = np.zeros((basis.shape[1],) * 2), np.zeros((basis.shape[1], targets.shape[1]))
        for start in range(0, n, _BLOCK):
            features = kernel(rows[start : start + _BLOCK], points) @ basis
            gram += features.T @ features
            moment += features.T @ targets[start : start + _BLOCK]
        strength, directions = _eigen(gram)
        return cls(points, basis @ directions, strength, directions.T @ moment)

    def weights(self, ridge: float) -> Floats:
        """(F or c, m) what minimises the squared errors plus `ridge` times the squared norm."""
        return np.asarray(self.basis @ (self.targets / (self.strength + ridge)[:, None]))


@dataclass(frozen=True)
class Dependency:
    """A score for each label of a document."""

    kernel: Kernel
    points: sparse.csr_matrix | None  # (c, F); None where `weights` are of the documents' own features
    weights: Floats  # (F or c, m)
    projection: Projection

    @classmethod
    def of(cls, kernel: Kernel, regression: Regression, ridge: float, projection: Projection) -> Dependency:
        """What a regression says with this ridge."""
        weights, points = regression.weights(ridge), regression.points
        if kernel.name == "linear" and points is not None:
            weights, points = np.asarray(points.T @ weights), None
        return cls(kernel, points, weights, projection)

    def scores(self, rows: sparse.csr_matrix) -> Floats:
        """(n, L) about 1 for labels that a document has and about 0 for others; bits of a row by that row alone."""
        found = np.empty((rows.shape[0], len(self.projection.mean)))
        for start in range(0, rows.shape[0], _BLOCK):
            part = rows[start : start + _BLOCK]
            if self.points is not None:
                part = sparse.csr_matrix(self.kernel(part, self.points))
            projected = sparse.csr_matrix(np.asarray(part @ self.weights))
            found[start : start + _BLOCK] = projected @ self.projection.components + self.projection.mean
        return found

    def stored(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors, and plain values."""
        import torch

        arrays: dict[str, Any] = {
            "weights": self.weights,
            "components": self.projection.components,
            "mean": self.projection.mean,
        }
        if self.points is not None:
            arrays["points.values"] = self.points.data.astype(np.float64)
            arrays["points.columns"] = self.points.indices.astype(np.int32)
            arrays["points.starts"] = self.points.indptr.astype(np.int64)
        tensors = {f"dependency.{name}": torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}
        return tensors, {"kernel": self.kernel.name, "gamma": self.kernel.gamma}

    @classmethod
    def opened(
        cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], n_features: int, n_labels: int
    ) -> Dependency:
        """What `stored` gave; it may come from a stranger's file."""
        kernel = _opened_kernel(facts)
        weights = _floats(tensors, "weights", 2)
        components, mean = _floats(tensors, "components", 2), _floats(tensors, "mean", 1)
        points = None if kernel.name == "linear" else _opened_points(tensors, n_features)
        size = n_features if points is None else points.shape[0]
        if weights.shape[0] != size or components.shape != (weights.shape[1], n_labels) or len(mean) != n_labels:
            raise ModelError("the tensors 'dependency.*' do not fit each other, the features or the labels")
        return cls(kernel, points, weights, Projection(mean, components))


def _lengths(rows: sparse.csr_matrix) -> Floats:
    """(n,) the squared length of each row."""
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()


def _eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """The eigenvalues of a symmetric matrix that are more than rounding, and their vectors (columns)."""
    values, vectors = linalg.eigh((matrix + matrix.T) / 2)
    good = values > _RANK * max(float(values.max(initial=0.0)), 1e-300)
    return values[good], vectors[:, good]


def _principal(labels: sparse.csr_array, mean: Floats, most: int, rng: np.random.Generator) -> Floats:
    """(m, L) the leading principal components, the strongest first."""
    n, n_labels = labels.shape
    if min(n, n_labels) > max(_EXACT, most):
        values, vectors = _leading(labels, mean, most, rng)
    elif n <= n_labels:
        cross = np.asarray(labels @ mean)
        gram = (labels @ labels.T).toarray() - cross[:, None] - cross + mean @ mean
        values, sides = _eigen(gram)
        vectors = (np.asarray(labels.T @ sides) - mean[:, None] * sides.sum(0)) / np.sqrt(values)
    else:
        values, vectors = _eigen((labels.T @ labels).toarray() - n * np.outer(mean, mean))
    strongest = np.argsort(-values, kind="stable")[:most]
    return np.ascontiguousarray(vectors[:, strongest].T)


def _leading(labels: sparse.csr_array, mean: Floats, most: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The same for matrices too large for all eigenvectors: the leading ones by Lanczos steps."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    n, n_labels = labels.shape

    def times(x: Floats) -> Floats:
        return np.asarray(labels.T @ (labels @ x.ravel()) - n * mean * (mean @ x.ravel()))

    operator = LinearOperator((n_labels, n_labels), matvec=times, dtype=np.float64)
    values, vectors = eigsh(operator, k=most, v0=rng.normal(size=n_labels))
    good = values > _RANK * max(float(values.max()), 1e-300)
    return values[good], vectors[:, good]


def _opened_kernel(facts: Mapping[str, Any]) -> Kernel:
    name, gamma = facts["kernel"], facts["gamma"]
    if name not in KERNELS or not isinstance(gamma, float) or not 0 < gamma < np.inf:
        raise ModelError(f"a kernel is one of {', '.join(KERNELS)} with gamma above 0, got {name!r} with {gamma!r}")
    return Kernel(name, gamma)


def _floats(tensors: Mapping[str, Tensor], name: str, dimensions: int) -> Floats:
    given = tensors[f"dependency.{name}"]
    if str(given.dtype) != "torch.float64" or given.dim() != dimensions or not bool(given.isfinite().all()):
        raise ModelError(f"tensor 'dependency.{name}' must be finite numbers (float64) in {dimensions} dimensions")
    return np.asarray(given.numpy())


def _opened_points(tensors: Mapping[str, Tensor], n_features: int) -> sparse.csr_matrix:
    values = _floats(tensors, "points.values", 1)
    columns, starts = tensors["dependency.points.columns"], tensors["dependency.points.starts"]
    if (str(columns.dtype), str(starts.dtype), columns.dim(), starts.dim()) != ("torch.int32", "torch.int64", 1, 1):
        raise ModelError("the tensors 'dependency.points.*' must be rows of int32 and int64")
    column, start = columns.numpy(), starts.numpy()
    good = (
        len(start) > 1
        and start[0] == 0
        and start[-1] == len(values) == len(column)
        and bool((np.diff(start) >= 0).all())
        and bool(((column >= 0) & (column < n_features)).all())
    )
    if not good:
        raise ModelError("the tensors 'dependency.points.*' are no matrix of documents and features")
    return sparse.csr_matrix((values, column, start), shape=(len(start) - 1, n_features))


__all__ = ["KERNELS", "Dependency", "Kernel", "Projection", "Regression"]
