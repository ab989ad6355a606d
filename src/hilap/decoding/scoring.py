"""The policy's probabilities, the same to the last bit whatever else is in the batch.

On the CPU compiled kernels compute every row by itself (`hilap.kernels`). On other devices, and for the tables of
HiLAP-SL, products of torch are used, and those add up in an order that depends on their shape: with few rows or few
columns the BLAS takes another kernel, and the last bit of a row changes with its company. Measured with MKL in float32
on 1, 2 and 4 threads: the bits of an entry depend on its own row and column alone if the rows are a multiple of 8 and
the columns at least 64 and, where their number varies, a multiple of 16. (One row, nine rows on two threads, a product
with a vector: all differ.) So every product here is padded to such a shape, and the padding dropped. In float64 that
does not hold, and another BLAS may need other numbers; `tests/properties/test_decoding.py` finds out.

The normaliser of the softmax is the other trap: its terms are the actions open in *some* walk of the batch. They are
added one after the other (`cumsum`), so that closed actions, which add exact zeros, change nothing wherever they stand.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from hilap.policy import CLOSED, Documents, Policy, ScoresOf
from hilap.products import FEWEST_COLUMNS, ROWS, linear

COLUMNS = 16


def steady_rows(rows: Tensor) -> Tensor:
    """Rows, or indices of rows, with the first repeated behind them until their number is a multiple of 8.

    Examples
    --------
    >>> steady_rows(torch.tensor([4, 7])).tolist()
    [4, 7, 4, 4, 4, 4, 4, 4]
    """
    missing = -len(rows) % ROWS
    return torch.cat([rows, rows[:1].expand(missing, *rows.shape[1:])]) if missing and len(rows) else rows


@torch.no_grad()
def log_probs(policy: Policy, documents: Documents, docs: Tensor, at: Tensor, open_: Tensor) -> Tensor:
    """(R, A) log pi(a | s_t) as in `Policy.log_probs`, without gradients; a row's bits depend on that row alone."""
    if docs.device.type != "cpu":
        return table_log_probs(policy, documents, docs, at, open_)
    walker = policy.walker()
    batch = walker.batch(documents.half, documents.flat, documents.bias)
    return torch.from_numpy(walker.log_probs(batch, docs.numpy(), at.numpy(), open_.contiguous().numpy()))


@torch.no_grad()
def table_log_probs(policy: Policy, documents: Documents, docs: Tensor, at: Tensor, open_: Tensor) -> Tensor:
    """The same through one product of all rows with all labels that are open in some row, on any device."""
    labels = open_[:, : policy.stop].any(0).nonzero().squeeze(1)
    columns = torch.cat([labels, labels.new_tensor([policy.stop])])
    scores = _scores(policy, documents, docs, at, columns) / policy.temperature
    scores = scores.masked_fill(~open_[:, columns], CLOSED).contiguous()
    scores -= scores.amax(1, keepdim=True)
    total = scores.exp().cumsum(1, dtype=torch.float64)[:, -1:]
    everywhere = scores.new_full(open_.shape, CLOSED)
    return everywhere.index_copy_(1, columns, scores - total.log().to(scores.dtype))


def steady_scores(policy: Policy) -> ScoresOf:
    """`Policy.scores` without gradients, an entry's bits depending on its own row and column alone."""

    @torch.no_grad()
    def scores(documents: Documents, docs: Tensor, at: Tensor, labels: Tensor) -> Tensor:
        return _scores(policy, documents, docs, at, torch.cat([labels, labels.new_tensor([policy.stop])]))

    return scores


def _scores(policy: Policy, documents: Documents, docs: Tensor, at: Tensor, columns: Tensor) -> Tensor:
    """(R, len(columns)) the scores of some actions, the last of which is stop."""
    short = max(FEWEST_COLUMNS, len(columns) + -len(columns) % COLUMNS) - len(columns)
    table = policy.label[F.pad(columns, (0, short), value=policy.root)]
    table[len(columns) - 1] = policy.e_stop
    scores = (_states(policy, documents, docs, at) @ table.T)[: len(docs), : len(columns)]
    if documents.flat is not None:
        scores = scores + F.pad(documents.flat[docs.unsqueeze(1), columns[:-1]], (0, 1))
    for bias in (policy.bias, documents.bias):
        if bias is not None:
            scores = scores + bias[columns]
    return scores


def _states(policy: Policy, documents: Documents, docs: Tensor, at: Tensor) -> Tensor:
    """(R, C) s_t as in `Policy.states`, for a number of rows made up to a multiple of 8."""
    places, which = torch.unique(at, return_inverse=True)
    halves = linear(policy.label[steady_rows(places)], policy.of_label.weight, None)
    hidden = documents.half[steady_rows(docs)] + halves[steady_rows(which)]
    return F.relu(linear(F.relu(hidden), policy.second.weight, policy.second.bias))
