"""The feed-forward layers that encoders of features and of bags of words share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap.adam import rows_of
from hilap.encoders.rows import SparseBatch
from hilap.errors import require
from hilap.products import linear as product

MOST_FEATURES = 100_000_000
MOST_WIDTH = 1_000_000


class FeedForward(nn.Module):
    """Layers with ReLU and dropout after each, on dense rows or on a `SparseBatch`.

    The first weight is kept as (F, H), so that a sparse row is a weighted sum of some of its rows: the same product as
    for a dense row, at the price of the values that are there.

    Parameters
    ----------
    n_features
        F, the width of a row.
    hidden
        The width of each layer, at least one.
    dropout, input_dropout
        The share of values that are dropped after each layer, and of the features, in training.
    """

    def __init__(self, n_features: int, hidden: Sequence[int], *, dropout: float, input_dropout: float) -> None:
        super().__init__()
        sizes = list(pairwise([n_features, *hidden]))
        self.weights = nn.ParameterList(torch.empty(size) for size in sizes)  # (F, H), (H, H'), ...
        self.biases = nn.ParameterList(torch.zeros(size[1]) for size in sizes)
        self.dropout = nn.Dropout(dropout)
        self.input_dropout = nn.Dropout(input_dropout)

    def draw(self, generator: torch.Generator, *, first_bound: float | None = None) -> None:
        """Draw all weights anew, uniformly within 1 / sqrt(width of the layer below).

        That bound supposes that the values below are of the size of 1. Where rows are much shorter, `first_bound` says
        how large the first weights may be instead.
        """
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            usual = weight.shape[0] ** -0.5
            bound = usual if layer or first_bound is None else first_bound
            nn.init.uniform_(weight, -bound, bound, generator=generator)
            nn.init.uniform_(bias, -usual, usual, generator=generator)

    def forward(self, batch: Tensor | SparseBatch) -> Tensor:
        """(B, H) the last layer."""
        hidden = self._first(batch)
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            hidden = self.dropout(F.relu(product(hidden, weight.T, bias)))
        return hidden

    def _first(self, batch: Tensor | SparseBatch) -> Tensor:
        weight, bias = self.weights[0], self.biases[0]
        if isinstance(batch, SparseBatch):
            values = self.input_dropout(batch.values)
            table, columns = weight, batch.columns
            if torch.is_grad_enabled() and weight.requires_grad:
                used, columns = torch.unique(columns, return_inverse=True)
                table = rows_of(weight, used)
            summed = F.embedding_bag(
                columns, table, batch.starts, mode="sum", per_sample_weights=values, include_last_offset=True
            )
            linear = summed + bias
        else:
            linear = product(self.input_dropout(batch), weight.T, bias)
        first: Tensor = self.dropout(F.relu(linear))
        return first


def checked_hidden(hidden: int | Iterable[int]) -> tuple[int, ...]:
    """The widths of the layers as a tuple; one number is one layer."""
    given: Any = (hidden,) if isinstance(hidden, int) else hidden
    widths = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    good = bool(widths) and all(type(width) is int and 1 <= width <= MOST_WIDTH for width in widths)
    require(good, "hidden", "the width of each layer, at least one layer, such as (150,)", hidden)
    return widths
