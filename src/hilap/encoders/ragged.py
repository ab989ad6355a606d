"""Layers over rows of different lengths, whose results depend on nothing but the row itself.

Without gradients, a document's vector must be the same to the last bit whatever else is in the batch. So every product
has a number of rows that is a multiple of 8 and at least 64 columns (`hilap.products`), and sums within a row of words
are taken one after the other. On the CPU, recurrence runs in compiled loops (`hilap.encoders.recurrent`).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from hilap.encoders.text import empty_weight
from hilap.products import ROWS, linear


def steady_linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(R, N) a linear layer with weight (N, K), without gradients each row by itself to the last bit."""
    if torch.is_grad_enabled():
        return F.linear(rows, weight, bias)
    n = len(rows)
    return linear(F.pad(rows, (0, 0, 0, -n % ROWS)), weight, bias)[:n]


def ends(lengths: Tensor) -> Tensor:
    """(S + 1,) where each of S rows of these lengths starts, and the end."""
    return F.pad(lengths.cumsum(0), (1, 0))


def loops_run(weight: Tensor) -> bool:
    """Whether compiled loops can work with a weight: they know the CPU alone, and no half precision."""
    return weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.float64)


def arrays(*tensors: Tensor) -> list[Any]:
    """Tensors as compiled loops take them; those that come in one piece share their memory, to be filled."""
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


class Attention(nn.Module):
    """The weighted mean of the vectors of a row, with weights from a learned question (Yang et al. 2016, eqs. 5-10)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(empty_weight(width, width))
        self.bias = nn.Parameter(empty_weight(width))
        self.question = nn.Parameter(empty_weight(1, width))

    def draw(self, generator: torch.Generator) -> None:
        """Draw all weights anew, uniformly within 1 / sqrt(width)."""
        bound = self.weight.shape[1] ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """(S, N) the means of S rows, from the (M, N) vectors of one row after the other; zero for an empty row."""
        row = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
        hidden = torch.tanh(steady_linear(vectors, self.weight, self.bias))
        scores = steady_linear(hidden, self.question, None).squeeze(1)
        highest = scores.new_full((len(lengths),), -torch.inf).scatter_reduce(0, row, scores.detach(), "amax")
        shares = (scores - highest[row]).exp()
        totals = scores.new_zeros(len(lengths)).index_add(0, row, shares)
        return F.embedding_bag(
            torch.arange(len(vectors), device=vectors.device),
            vectors,
            ends(lengths),
            mode="sum",
            per_sample_weights=shares / totals[row],
            include_last_offset=True,
        )


class RaggedGRU(nn.Module):
    """A bidirectional GRU over rows of different lengths.

    Parameters
    ----------
    width
        Of the vectors that come in.
    hidden
        Of a state; both directions side by side are twice as wide.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        empty_weight(3 * hidden, width + hidden)  # too large is said before torch tries
        # On no device at first, so that it draws no weights of its own from the global generator.
        self.cell = nn.GRU(width, hidden, bidirectional=True, device="meta").to_empty(device="cpu")

    def draw(self, generator: torch.Generator) -> None:
        """Draw all weights anew, uniformly within 1 / sqrt(hidden)."""
        bound = self.cell.hidden_size**-0.5
        for parameter in self.cell.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """(M, 2H) the states at the (M, N) vectors of rows of these lengths, none of them 0."""
        if not len(vectors):
            return vectors.new_zeros(0, 2 * self.cell.hidden_size)
        if loops_run(next(self.cell.parameters())):
            return torch.cat([self._looped(vectors, ends(lengths), backward) for backward in (False, True)], dim=1)
        order, sizes = packed_order(lengths)
        states: Tensor = self.cell(nn.utils.rnn.PackedSequence(vectors[order], sizes))[0].data
        return states[torch.argsort(order)]

    def _looped(self, vectors: Tensor, starts: Tensor, backward: bool) -> Tensor:
        """(M, H) the states of one direction, with the compiled loops."""
        ending = "_l0_reverse" if backward else "_l0"
        names = [f"{kind}{ending}" for kind in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")]
        from_input, input_bias, from_state, state_bias = (getattr(self.cell, name) for name in names)
        inputs = steady_linear(vectors, from_input, input_bias)
        how = (starts, backward, torch.is_grad_enabled())
        states: Tensor = _States.apply(inputs, from_state, state_bias, *how)  # type: ignore[no-untyped-call]
        return states


class _States(torch.autograd.Function):
    """(M, H) the states of a GRU in one direction: `hilap.encoders.recurrent` as torch wants it."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, starts: Tensor, backward: bool, learning: bool
    ) -> Tensor:
        from hilap.encoders.recurrent import WIDTH, states_of_rows

        hidden = weight.shape[1]
        states = inputs.new_empty(len(inputs), hidden)
        gates = inputs.new_empty(len(inputs) if learning else 0, 4 * hidden)
        turned, constant = (F.pad(part, (0, -len(weight) % WIDTH)) for part in (weight.T, bias))
        given, turned, constant, rows, found, noted = arrays(inputs, turned, constant, starts, states, gates)
        states_of_rows(given, turned, constant, rows, backward, found, noted)
        ctx.save_for_backward(weight, starts, states, gates)
        ctx.reads_backward = backward
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from hilap.encoders.recurrent import WIDTH, gradient_of_rows

        weight, starts, states, gates = ctx.saved_tensors
        of_inputs = gates.new_empty(len(gates), len(weight))
        of_added, befores = torch.empty_like(of_inputs), torch.empty_like(states)
        padded = F.pad(weight, (0, -weight.shape[1] % WIDTH))
        grad, known, rows, *rest = arrays(grads[0], padded, starts, states, gates, of_inputs, of_added, befores)
        gradient_of_rows(grad, known, rows, ctx.reads_backward, *rest)
        return of_inputs, of_added.T @ befores, of_added.sum(0), None, None, None


def packed_order(lengths: Tensor) -> tuple[Tensor, Tensor]:
    """How torch packs rows: first the first vectors of all rows, longest row first, then all second ones, and so on.

    Returns (M,) which vector comes when, and (T,) how many rows have a t-th vector.
    """
    longest_first = torch.argsort(lengths, descending=True, stable=True)
    starts = ends(lengths)[:-1]
    row = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    step = torch.arange(len(row), device=lengths.device) - starts[row]
    rank = torch.empty_like(longest_first)
    rank[longest_first] = torch.arange(len(lengths), device=lengths.device)
    order = torch.argsort(step * len(lengths) + rank[row])
    return order, torch.bincount(step).cpu()
