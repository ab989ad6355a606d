"""The feed-forward encoder for feature rows, as the paper uses it for FunCat and GO (Appendix A)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from hilap.corpus.examples import Examples
from hilap.encoders.base import Encoder, Json, check_share, check_truth, checked_options, features_of
from hilap.encoders.layers import MOST_FEATURES, FeedForward, checked_hidden
from hilap.encoders.rows import DenseRows, SparseBatch, SparseRows
from hilap.errors import CorpusError, ModelError

if TYPE_CHECKING:
    from typing_extensions import Self

_BLOCK = 65_536  # rows in double precision at a time


class MLP(Encoder):
    """Feature rows, dense or sparse, through feed-forward layers.

    A missing value (NaN) becomes the feature's mean in the training data. A feature that never varied there, or was
    always missing, can have taught nothing and is held at zero.

    Parameters
    ----------
    hidden
        The width of each layer, ReLU after each. One layer of 150 is the paper's; a single number is one layer.
    standardise
        Whether features get the mean 0 and the deviation 1 of the training data; sparse ones are divided by their
        deviation only, so that they stay sparse.
    dropout, input_dropout
        The share of values dropped in training after each layer, and of the features.

    Examples
    --------
    >>> from hilap.taxonomy import Taxonomy
    >>> rows = np.array([[1.0, np.nan], [3.0, 5.0], [2.0, 7.0]], dtype=np.float32)
    >>> examples = Examples.of(Taxonomy.of({"A": []}), [["A"], [], []], features=rows)
    >>> encoder = MLP(hidden=(4,), standardise=False).fit(examples, generator=torch.Generator().manual_seed(0))
    >>> encoder.prepare(examples).batch(np.array([0]))
    tensor([[1., 6.]])
    >>> encoder.dim
    4
    """

    name = "mlp"
    mean: Tensor  # (F,) of what was present in training; stands in for what is missing
    rate: Tensor  # (F,) 1 / deviation, or 1; 0 for a feature that never varied

    def __init__(
        self,
        hidden: int | Iterable[int] = (150,),
        *,
        standardise: bool = True,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_share("dropout", dropout)
        check_share("input_dropout", input_dropout)
        check_truth("standardise", standardise)
        self.hidden = checked_hidden(hidden)
        self.standardise = standardise
        self.dropout = float(dropout)
        self.input_dropout = float(input_dropout)

    @property
    def reads(self) -> tuple[str, ...]:
        """Features."""
        return ("features",)

    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Take the means and deviations of the training data, and draw the weights."""
        rows = _checked(features_of(examples, self.name), examples)
        if not len(examples) or not rows.shape[1]:
            raise CorpusError(f"the mlp encoder cannot learn from features of shape {rows.shape}; give it documents")
        mean, deviation = _sparse_moments(rows) if sparse.issparse(rows) else _dense_moments(rows)
        self._build(rows.shape[1], bool(sparse.issparse(rows)))
        self.mean.copy_(torch.from_numpy(mean))
        self.rate.copy_(torch.from_numpy(_rate(deviation, self.standardise)))
        self.layers.draw(generator)
        return self

    def prepare(self, examples: Examples) -> DenseRows | SparseRows:
        """The features with nothing missing, scaled."""
        self.check_fitted()
        rows = _checked(features_of(examples, self.name), examples)
        if rows.shape[1] != len(self.mean):
            raise CorpusError(
                f"this encoder was fitted on {len(self.mean):,} features, but these documents have {rows.shape[1]:,}; "
                "give the same features in the same order"
            )
        mean, rate = (buffer.cpu().numpy().astype(np.float64) for buffer in (self.mean, self.rate))
        if self.sparse:
            return SparseRows(_scaled_sparse(sparse.csr_array(rows), mean, rate, examples))
        dense = rows.toarray() if sparse.issparse(rows) else rows
        return DenseRows(_scaled_dense(dense, mean, rate, examples, centre=self.standardise))

    def forward(self, batch: Tensor | SparseBatch) -> Tensor:
        """(B, dim) the last layer."""
        self.check_fitted()
        vectors: Tensor = self.layers(batch)
        return vectors

    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values."""
        return {
            "hidden": [*self.hidden],
            "standardise": self.standardise,
            "dropout": self.dropout,
            "input_dropout": self.input_dropout,
        }

    def learned(self) -> dict[str, Json]:
        """The number of features, and whether they were sparse."""
        self.check_fitted()
        return {"features": len(self.mean), "sparse": self.sparse}

    @classmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """An encoder of the same shape, ready for `load_state_dict`."""
        encoder = cls(**checked_options(cls, settings))
        n_features, is_sparse = learned.get("features"), learned.get("sparse")
        if type(n_features) is not int or not 1 <= n_features <= MOST_FEATURES or not isinstance(is_sparse, bool):
            raise ModelError(f"an mlp encoder has learned 'features' and 'sparse', got {dict(learned)!r}")
        encoder._build(n_features, is_sparse)
        return encoder

    def _build(self, n_features: int, is_sparse: bool) -> None:
        self.sparse = is_sparse
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("rate", torch.ones(n_features))
        self.layers = FeedForward(n_features, self.hidden, dropout=self.dropout, input_dropout=self.input_dropout)
        self.dim = self.hidden[-1]


def _checked(features: Any, examples: Examples) -> Any:
    """The features as an (n, F) float32 array or canonical csr_array without infinite values."""
    if sparse.issparse(features):
        rows = sparse.csr_array(features, dtype=np.float32)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if np.isinf(rows.data).any():
            raise _too_large(examples, *_place(rows, int(np.isinf(rows.data).argmax())))
        return rows
    try:
        with np.errstate(over="ignore"):
            dense = np.asarray(features, dtype=np.float32)
    except (ValueError, TypeError):
        raise CorpusError("features must be numbers, one row for each document, all of one length") from None
    if dense.ndim != 2:
        raise CorpusError(f"features must be a matrix with one row for each document, got shape {dense.shape}")
    if np.isinf(dense).any():
        raise _too_large(examples, *np.argwhere(np.isinf(dense))[0])
    return dense


def _blocks(rows: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        yield part, rows[part].astype(np.float64)


def _dense_moments(rows: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of each feature's present values; a deviation of exactly 0 where it never varied."""
    width = rows.shape[1]
    count, total, squares = np.zeros(width), np.zeros(width), np.zeros(width)
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    for _, block in _blocks(rows):
        count += (~np.isnan(block)).sum(0)
        total += np.nan_to_num(block).sum(0)
        low, high = np.fmin(low, np.fmin.reduce(block)), np.fmax(high, np.fmax.reduce(block))
    mean = total / np.maximum(count, 1)
    for _, block in _blocks(rows):
        squares += np.nan_to_num((block - mean) ** 2).sum(0)
    return mean, np.where(low < high, np.sqrt(squares / np.maximum(count, 1)), 0.0)


def _sparse_moments(rows: sparse.csr_array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same for a sparse matrix: what is not stored is a zero, what is stored as NaN is missing."""
    documents, width = rows.shape
    there = ~np.isnan(rows.data)
    columns, values = rows.indices[there], rows.data[there].astype(np.float64)
    missing = np.bincount(rows.indices[~there], minlength=width)
    count = documents - missing
    zeros = count - np.bincount(columns, minlength=width)
    mean = np.bincount(columns, values, minlength=width) / np.maximum(count, 1)
    squares = np.bincount(columns, (values - mean[columns]) ** 2, minlength=width) + zeros * mean**2
    low, high = np.where(zeros > 0, 0.0, np.inf), np.where(zeros > 0, 0.0, -np.inf)
    np.minimum.at(low, columns, values)
    np.maximum.at(high, columns, values)
    return mean, np.where(low < high, np.sqrt(squares / np.maximum(count, 1)), 0.0)


def _rate(deviation: NDArray[np.float64], standardise: bool) -> NDArray[np.float64]:
    # A deviation too small for a 32-bit reciprocal is no variation either.
    varies = deviation > 1 / float(np.finfo(np.float32).max)
    return np.divide(1.0, deviation if standardise else 1.0, out=np.zeros_like(deviation), where=varies)


def _scaled_dense(
    rows: NDArray[np.float32],
    mean: NDArray[np.float64],
    rate: NDArray[np.float64],
    examples: Examples,
    *,
    centre: bool,
) -> NDArray[np.float32]:
    scaled = np.empty(rows.shape, dtype=np.float32)
    with np.errstate(over="ignore"):
        for part, block in _blocks(rows):
            filled = np.where(np.isnan(block), mean, block)
            scaled[part] = (filled - mean if centre else filled) * rate
    if not np.isfinite(scaled).all():
        raise _too_large(examples, *np.argwhere(~np.isfinite(scaled))[0])
    return scaled


def _scaled_sparse(
    rows: sparse.csr_array, mean: NDArray[np.float64], rate: NDArray[np.float64], examples: Examples
) -> sparse.csr_array:
    values = rows.data.astype(np.float64)
    with np.errstate(over="ignore"):
        filled = np.where(np.isnan(values), mean[rows.indices], values)
        scaled = (filled * rate[rows.indices]).astype(np.float32)
    if not np.isfinite(scaled).all():
        raise _too_large(examples, *_place(rows, int((~np.isfinite(scaled)).argmax())))
    return sparse.csr_array((scaled, rows.indices, rows.indptr), shape=rows.shape)


def _place(rows: sparse.csr_array, at: int) -> tuple[int, int]:
    """The row and the column of a stored value."""
    return int(np.searchsorted(rows.indptr, at, side="right")) - 1, int(rows.indices[at])


def _too_large(examples: Examples, row: int, column: int) -> CorpusError:
    return CorpusError(
        f"document {examples.ids[row]!r}: feature {column} (counted from 0) is infinite or far too large; "
        "leave it out (NaN) or mend it"
    )
