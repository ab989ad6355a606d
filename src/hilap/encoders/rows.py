"""Blocks of feature rows, dense or sparse, and the batches cut out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from hilap.corpus.mapped import positions
from hilap.encoders.base import Rows


@dataclass(frozen=True)
class SparseBatch:
    """B rows of a sparse matrix, as `torch.nn.functional.embedding_bag` takes them."""

    columns: Tensor  # (M,) row after row
    values: Tensor  # (M,)
    starts: Tensor  # (B + 1,) where each row starts, and the end

    def __len__(self) -> int:
        return len(self.starts) - 1

    def to(self, device: torch.device | str) -> SparseBatch:
        """The same batch on another device."""
        return SparseBatch(self.columns.to(device), self.values.to(device), self.starts.to(device))


class DenseRows:
    """A block of (n, F) features, every value present."""

    def __init__(self, values: NDArray[np.float32]) -> None:
        self.values = torch.from_numpy(values)

    def __len__(self) -> int:
        return len(self.values)

    def batch(self, rows: Rows) -> Tensor:
        """(B, F) the features of these documents."""
        return self.values[torch.as_tensor(rows, dtype=torch.long)]


class SparseRows:
    """A block of sparse (n, F) features, every value present."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.matrix = matrix
        self._starts = matrix.indptr.astype(np.int64, copy=False)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def batch(self, rows: Rows) -> SparseBatch:
        """The features of these documents."""
        chosen = positions(rows, len(self))
        first = self._starts[chosen]
        lengths = self._starts[chosen + 1] - first
        starts = np.concatenate([[0], np.cumsum(lengths)])
        taken = np.repeat(first - starts[:-1], lengths) + np.arange(starts[-1])
        columns, values = self.matrix.indices[taken], self.matrix.data[taken]
        return SparseBatch(_tensor(columns, np.int64), _tensor(values, np.float32), _tensor(starts, np.int64))


def _tensor(array: NDArray[Any], dtype: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=dtype))
