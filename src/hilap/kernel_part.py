"""The kernel part: probabilities of a document's labels from the documents that are like it.

Where documents are a few dozen numbers and there are a few thousand of them, kernel ridge regression of label
indicators with a Gaussian kernel is solved in seconds, errs elsewhere than a network does, and the mean of both is
better than either (docs/decisions/0012). It is solved, not trained by steps, and like the wide part of texts
(`hilap.wide`) it is cross-fitted: what learns on top of it sees scores by machines that have not seen the document.

A feature counts by its rank: it is replaced by the value of a normal variable at the same quantile of the training
documents, so that a few extreme values do not decide what is alike. A missing value is the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import linalg, sparse
from torch import Tensor, nn

from hilap.corpus import Examples
from hilap.encoders.rows import DenseRows
from hilap.errors import CorpusError, SettingError
from hilap.products import linear

MOST_POINTS = 4_000  # documents that others are compared with; of more, so many are drawn
MOST_WEIGHTS = 500_000_000  # 2 GB
QUANTILES = 201
_FARTHEST = 3.0  # deviations: beyond, how far out a value lies says nothing
_LEAST = 1e-5  # the lowest probability; the highest is as far from 1
_BLOCK = 4_096  # documents whose kernel values are in memory at once
_JITTER = 1e-9  # of the largest entry of a matrix, so that rounding does not make it singular

Floats = NDArray[np.float64]


class KernelPart(nn.Module):
    """Logits of all labels from a document's likeness to training documents.

    Parameters
    ----------
    n_features, n_points, n_labels
        Its sizes. What it knows is put in by `scale` and `know`, or loaded.
    """

    quantiles: Tensor  # (Q, F) of the training documents
    points: Tensor  # (c, F) documents, by rank
    weight: Tensor  # (L, c)
    bias: Tensor  # (L,) the share of documents that have each label
    gamma: Tensor  # () how fast likeness falls with squared distance

    def __init__(self, n_features: int, n_points: int, n_labels: int) -> None:
        super().__init__()
        if n_points * n_labels > MOST_WEIGHTS:
            raise SettingError(
                f"the kernel part would have {n_points:,} documents x {n_labels:,} labels; set kernel_share to 0"
            )
        self.register_buffer("quantiles", torch.zeros(QUANTILES, n_features))
        self.register_buffer("points", torch.zeros(n_points, n_features))
        self.register_buffer("weight", torch.zeros(n_labels, n_points))
        self.register_buffer("bias", torch.zeros(n_labels))
        self.register_buffer("gamma", torch.ones(()))

    @classmethod
    def scaled(cls, train: Examples, n_points: int) -> KernelPart:
        """A part that knows how the features of training documents lie, and nothing else yet."""
        values = dense_features(train)
        n_labels = len(train.taxonomy)
        most = min(MOST_POINTS, max(1, MOST_WEIGHTS // max(1, n_labels)))  # a very large taxonomy has fewer points
        made = cls(values.shape[1], min(n_points, most), n_labels)
        with np.errstate(all="ignore"):
            empty = np.isnan(values).all(axis=0)
            found = np.nanquantile(np.where(empty, 0.0, values), np.linspace(0, 1, QUANTILES), axis=0)
        made.quantiles.copy_(torch.from_numpy(found))
        return made

    def know(self, machine: Machine) -> None:
        """Take what cross-fitting found."""
        self.points.copy_(torch.from_numpy(machine.points))
        self.weight.copy_(torch.from_numpy(np.ascontiguousarray(machine.weight.T)))
        self.bias.copy_(torch.from_numpy(machine.bias))
        self.gamma.fill_(machine.gamma)

    def prepare(self, examples: Examples) -> DenseRows:
        """The features of a block of documents by rank; sparse rows, though it learns from dense ones only."""
        if sparse.issparse(examples.features):
            examples = replace(examples, features=examples.features.toarray())
        return DenseRows(self.ranked(dense_features(examples)).astype(np.float32))

    def ranked(self, values: Floats) -> Floats:
        """(n, F) each value as that of a normal variable at the same quantile; between equal values, the middle."""
        from scipy.special import ndtri

        shares, found = np.linspace(0, 1, QUANTILES), np.empty_like(values)
        for column, (given, known) in enumerate(zip(values.T, self.quantiles.double().numpy().T, strict=True)):
            low = np.interp(given, known, shares)
            high = -np.interp(-given, -known[::-1], -shares[::-1])
            found[:, column] = 0.5 * (low + high)
        normal = np.clip(ndtri(found), -_FARTHEST, _FARTHEST)
        return np.asarray(np.nan_to_num(normal, nan=0.0))

    def forward(self, batch: Tensor) -> Tensor:
        """(B, L) logits."""
        return torch.logit(self.chances(batch), eps=_LEAST)

    def chances(self, batch: Tensor) -> Tensor:
        """(B, L) what the regression says: about 1 for a document's labels, about 0 for others."""
        ones = torch.ones(1, batch.shape[1])
        lengths = linear(batch * batch, ones, None) + (self.points * self.points).sum(1)
        distance = (lengths - 2 * linear(batch, self.points, None)).clamp(min=0)
        return linear((-self.gamma * distance).exp(), self.weight, self.bias)


@dataclass(frozen=True)
class Machine:
    """What cross-fitting found: the mean of all machines, and honest logits of the documents they learned from."""

    points: NDArray[np.float32]  # (c, F)
    weight: NDArray[np.float32]  # (c, L)
    bias: NDArray[np.float32]  # (L,)
    gamma: float
    honest: NDArray[np.float32]  # (repeats, n, L) by the machine of the fold that the document is in


def dense_features(examples: Examples) -> Floats:
    """(n, F) the features; the kernel part has no use for texts, and sparse ones are too many to be alike."""
    if examples.features is None or sparse.issparse(examples.features):
        given = "texts alone" if examples.features is None else "sparse features"
        raise SettingError(f"kernel_share: a kernel part compares dense features, got {given}; set it to 0")
    values = np.asarray(examples.features, dtype=np.float64)
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise CorpusError(f"document {examples.ids[row]!r}: feature {column} (counted from 0) is infinite; mend it")
    return values


def cross_fit(
    rows: NDArray[np.float32],
    labels: sparse.csr_array,
    folds: Sequence[NDArray[np.int64]],
    *,
    repeats: int,
    width: float,
    ridge: float,
    points: int,
    seed: int,
) -> Machine:
    """Fit a machine for each fold without its documents; score those, and average all machines.

    Parameters
    ----------
    rows
        (n, F) features by rank.
    labels
        (n, L) gold sets.
    folds
        The documents of each fold, one repeat after the other.
    repeats
        How often the documents are parted.
    width
        Two documents that differ by this many deviations in every feature are alike by exp(-1).
    ridge
        What large weights cost against errors.
    points
        How many documents others are compared with; all, or so many drawn by `seed`.
    """
    given, gamma = rows.astype(np.float64), 1.0 / (max(rows.shape[1], 1) * width**2)
    n = len(given)
    chosen = np.arange(n)
    if points < n:
        chosen = np.sort(np.random.default_rng([seed, 23]).choice(n, points, replace=False))
    kind = _Everyone if points >= n else _Spanned
    problem = kind(given, sparse.csr_array(labels, dtype=np.float64), chosen, gamma, ridge)
    per_repeat, honest = len(folds) // repeats, np.empty((repeats, *labels.shape), dtype=np.float32)
    weight, bias = np.zeros((len(chosen), labels.shape[1])), np.zeros(labels.shape[1])
    for number, fold in enumerate(folds):
        own, mean = problem.without(fold)
        for start in range(0, len(fold), _BLOCK):
            part = fold[start : start + _BLOCK]
            said = np.clip(problem.kernel(part) @ own + mean, _LEAST, 1 - _LEAST)
            honest[number // per_repeat, part] = np.log(said) - np.log1p(-said)
        weight += own / len(folds)
        bias += mean / len(folds)
    return Machine(rows[chosen], weight.astype(np.float32), bias.astype(np.float32), gamma, honest)


class _Everyone:
    """The regression on all documents: exact, its kernel in memory."""

    def __init__(
        self, given: Floats, labels: sparse.csr_array, chosen: NDArray[np.int64], gamma: float, ridge: float
    ) -> None:
        self._all = alike(given, given[chosen], gamma)
        self._gold, self._ridge = labels.toarray(), ridge

    def kernel(self, rows: NDArray[np.int64]) -> Floats:
        """(m, c) how much the documents of these rows are like the points."""
        return np.asarray(self._all[rows])

    def without(self, fold: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """(c, L) the weights that the documents outside a fold give, and (L,) the mean of their labels."""
        rest = np.setdiff1d(np.arange(len(self._all)), fold)
        mean = self._gold[rest].mean(axis=0)
        own = np.zeros((len(self._all), self._gold.shape[1]))
        own[rest] = solved(self._all[np.ix_(rest, rest)] + self._ridge * np.eye(len(rest)), self._gold[rest] - mean)
        return own, mean


class _Spanned:
    """The regression on what some points span; of more documents than memory has room for a kernel of."""

    def __init__(
        self, given: Floats, labels: sparse.csr_array, chosen: NDArray[np.int64], gamma: float, ridge: float
    ) -> None:
        self._given, self._labels, self._points, self._gamma = given, labels, given[chosen], gamma
        self._prior = ridge * alike(self._points, self._points, gamma)
        self._total = self._sums(np.arange(len(given)))

    def kernel(self, rows: NDArray[np.int64]) -> Floats:
        """(m, c) how much the documents of these rows are like the points."""
        return alike(self._given[rows], self._points, self._gamma)

    def _sums(self, rows: NDArray[np.int64]) -> tuple[Floats, Floats, Floats, Floats]:
        """Sums over documents: (c, c) of likeness to two points, (c, L) to one with each label, (c,), and (L,)."""
        c, n_labels = len(self._points), self._labels.shape[1]
        squares, hits, ones = np.zeros((c, c)), np.zeros((c, n_labels)), np.zeros(c)
        for start in range(0, len(rows), _BLOCK):
            part = rows[start : start + _BLOCK]
            seen = self.kernel(part)
            squares += seen.T @ seen
            hits += np.asarray((self._labels[part].T @ seen).T)
            ones += seen.sum(axis=0)
        return squares, hits, ones, np.asarray(self._labels[rows].sum(axis=0)).ravel()

    def without(self, fold: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """(c, L) the weights that the documents outside a fold give, and (L,) the mean of their labels."""
        squares, hits, ones, counts = (whole - part for whole, part in zip(self._total, self._sums(fold), strict=True))
        mean = counts / max(1, len(self._given) - len(fold))
        return solved(squares + self._prior, hits - np.outer(ones, mean)), mean


def alike(rows: Floats, points: Floats, gamma: float) -> Floats:
    """(n, c) exp(-gamma |x - z|²)."""
    found = np.empty((len(rows), len(points)))
    lengths = np.einsum("ij,ij->i", points, points)
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        distance = np.einsum("ij,ij->i", part, part)[:, None] + lengths - 2 * part @ points.T
        found[start : start + _BLOCK] = np.exp(-gamma * np.maximum(distance, 0.0))
    return found


def solved(matrix: Floats, targets: Floats) -> Floats:
    """The solution of a symmetric positive system."""
    matrix[np.diag_indices_from(matrix)] += _JITTER * matrix.max(initial=1.0)
    return np.asarray(linalg.solve(matrix, targets, assume_a="pos"))


__all__ = ["MOST_POINTS", "KernelPart", "Machine", "alike", "cross_fit", "dense_features"]
