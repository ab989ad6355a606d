"""Matrix products whose rows do not depend on their company.

A product adds up in an order that depends on its shape: with few rows or few columns the BLAS takes another kernel, and
the last bit of a row changes with what else is in the batch. With at least 64 columns, and rows that are a multiple of
8, an entry's bits depend on its own row and column alone (`hilap.decoding.scoring` says how that was measured).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS = 8
FEWEST_COLUMNS = 64


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(R, N) a linear layer with weight (N, K). Without gradients, a narrow one is made wide enough first.

    Examples
    --------
    >>> with torch.no_grad():
    ...     linear(torch.ones(1, 2), torch.tensor([[1.0, 2.0]]), torch.tensor([0.5]))
    tensor([[3.5000]])
    """
    width = len(weight)
    if width >= FEWEST_COLUMNS or torch.is_grad_enabled():
        return F.linear(rows, weight, bias)
    narrow = F.linear(rows, F.pad(weight, (0, 0, 0, FEWEST_COLUMNS - width)))[:, :width]
    return narrow.contiguous() if bias is None else narrow + bias


def sigmoid(logits: Tensor) -> Tensor:
    """Probabilities from logits. Torch's own rounds the last values of a tensor differently; this never does."""
    return 1 / (1 + (-logits).exp())


__all__ = ["FEWEST_COLUMNS", "ROWS", "linear", "sigmoid"]
