"""Ragged rows of label indices."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Rows(nn.Module):
    """Ragged rows of label indices (CSR), gathered for many rows at once without a loop.

    Examples
    --------
    >>> rows = Rows(torch.tensor([0, 2, 2, 3]), torch.tensor([4, 5, 6]))
    >>> rows.of(torch.tensor([2, 1, 0]))
    (tensor([0, 2, 2]), tensor([6, 4, 5]))
    """

    starts: Tensor  # (N + 1,)
    items: Tensor

    def __init__(self, starts: Tensor, items: Tensor) -> None:
        super().__init__()
        self.register_buffer("starts", starts.long(), persistent=False)
        self.register_buffer("items", items.long(), persistent=False)

    def of(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """For each of the given rows, its items: (M,) which of the given rows, (M,) the item."""
        first = self.starts[rows]
        lengths = self.starts[rows + 1] - first
        which = torch.repeat_interleave(lengths)
        offset = torch.arange(len(which), device=rows.device) - (torch.cumsum(lengths, 0) - lengths)[which]
        return which, self.items[first[which] + offset]

    def __len__(self) -> int:
        return len(self.starts) - 1


__all__ = ["Rows"]
