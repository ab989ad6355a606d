"""Blocks of documents as word numbers, and the batches cut out of them. Nothing is padded: rows keep their lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hilap.corpus.mapped import positions
from hilap.encoders.base import Rows


@dataclass(frozen=True)
class TokenBatch:
    """B documents as the numbers of their words, one document after the other."""

    tokens: Tensor  # (M,) int64
    starts: Tensor  # (B + 1,) where each document starts, and the end
    begins: Tensor | None = None  # (M,) bool, whether a sentence begins here; every document begins with one

    def __len__(self) -> int:
        return len(self.starts) - 1

    def part(self, first: int, last: int) -> TokenBatch:
        """The documents from the first to before the last."""
        starts = self.starts[first : last + 1]
        words = slice(int(starts[0]), int(starts[-1]))
        begins = None if self.begins is None else self.begins[words]
        return TokenBatch(self.tokens[words], starts - starts[0], begins)

    def to(self, device: torch.device | str) -> TokenBatch:
        """The same batch on another device."""
        begins = None if self.begins is None else self.begins.to(device)
        return TokenBatch(self.tokens.to(device), self.starts.to(device), begins)


class TokenRows:
    """A block of documents as word numbers; the arrays may be mapped from a file."""

    def __init__(
        self, tokens: NDArray[np.int32], starts: NDArray[np.int64], begins: NDArray[np.bool_] | None = None
    ) -> None:
        self.tokens = tokens
        self.starts = starts
        self.begins = begins

    def __len__(self) -> int:
        return len(self.starts) - 1

    def batch(self, rows: Rows) -> TokenBatch:
        """The words of these documents."""
        chosen = positions(rows, len(self))
        first = self.starts[chosen]
        lengths = self.starts[chosen + 1] - first
        starts = np.concatenate([[0], np.cumsum(lengths)])
        taken = np.repeat(first - starts[:-1], lengths) + np.arange(starts[-1])
        begins = None if self.begins is None else torch.from_numpy(np.asarray(self.begins[taken], dtype=bool))
        return TokenBatch(
            torch.from_numpy(np.asarray(self.tokens[taken], dtype=np.int64)), torch.from_numpy(starts), begins
        )
