"""Scores of some (state, label) pairs only, with gradients: ragged segments instead of a wide table with a mask.

A walk meets tens or hundreds of candidates at a step where the taxonomy has thousands of labels. On the CPU compiled
kernels compute just those pairs; on other devices torch computes the product of all states with all labels that occur
and picks the pairs out of it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def products(states: Tensor, label: Tensor, stop: Tensor, starts: Tensor, items: Tensor) -> Tensor:
    """(P,) the product of a state with a label for each pair.

    Parameters
    ----------
    states
        (M, C), one for each segment.
    label, stop
        (L + 1, C) embeddings, of which the last row is not used, and (C,) the one that item L stands for.
    starts, items
        (M + 1,) where the pairs of each state begin, and (P,) their labels.

    Examples
    --------
    >>> states = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> label, stop = torch.tensor([[2.0, 3.0], [9.0, 9.0]]), torch.tensor([-1.0, 0.0])
    >>> products(states, label, stop, torch.tensor([0, 2, 3]), torch.tensor([0, 1, 0]))
    tensor([ 2., -1.,  5.])
    """
    if states.device.type == "cpu":
        found: Tensor = _Products.apply(states, label, stop, starts, items)  # type: ignore[no-untyped-call]
        return found
    return dense_products(states, label, stop, starts, items)


def dense_products(states: Tensor, label: Tensor, stop: Tensor, starts: Tensor, items: Tensor) -> Tensor:
    """The same in plain torch, through one product of all states with all labels that occur."""
    labels, column = torch.unique(items, return_inverse=True)
    table = torch.cat([label[:-1], stop.unsqueeze(0)])[labels]
    return (states @ table.T)[segments(starts), column]


def log_softmax(values: Tensor, starts: Tensor) -> Tensor:
    """(P,) the logarithm of the softmax over each segment.

    Examples
    --------
    >>> log_softmax(torch.tensor([0.0, 0.0, 7.0]), torch.tensor([0, 2, 3])).exp()
    tensor([0.5000, 0.5000, 1.0000])
    """
    if values.device.type == "cpu":
        found: Tensor = _LogSoftmax.apply(values, starts)  # type: ignore[no-untyped-call]
        return found
    return plain_log_softmax(values, starts)


def plain_log_softmax(values: Tensor, starts: Tensor) -> Tensor:
    """The same in plain torch."""
    return values - log_sum_exp(values, starts)[segments(starts)]


def log_sum_exp(values: Tensor, starts: Tensor) -> Tensor:
    """(M,) the logarithm of the sum of exponentials of each segment."""
    which, n = segments(starts), len(starts) - 1
    top = values.detach().new_full((n,), float("-inf")).scatter_reduce(0, which, values.detach(), "amax")
    total = values.new_zeros(n).index_add(0, which, (values - top[which]).exp())
    return total.log() + top


def segments(starts: Tensor) -> Tensor:
    """(P,) the segment of each entry."""
    return torch.repeat_interleave(torch.diff(starts))


def array(tensor: Tensor) -> Any:
    """The numbers of a tensor as the kernels read them: no copy where none is needed."""
    return tensor.detach().contiguous().numpy()


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, label: Tensor, stop: Tensor, starts: Tensor, items: Tensor) -> Tensor:
        from hilap.kernels import sums

        found = states.new_empty(len(items))
        sums.pair_products(array(states), array(label), array(stop), array(starts), array(items), found.numpy())
        ctx.save_for_backward(states, label, stop, starts, items)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from hilap.kernels import sums

        states, label, stop, starts, items = (array(x) for x in ctx.saved_tensors)
        of_states = of_labels = of_stop = None
        if ctx.needs_input_grad[0]:
            of_states = torch.zeros_like(ctx.saved_tensors[0])
            sums.gradient_of_states(array(grad), label, stop, starts, items, of_states.numpy())
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            of_labels = torch.zeros_like(ctx.saved_tensors[1])
            sums.gradient_of_labels(array(grad), states, starts, items, of_labels.numpy())
            of_stop = of_labels[-1].clone()
            of_labels[-1] = 0  # the root's embedding, which is no action
        return of_states, of_labels, of_stop, None, None


class _LogSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, starts: Tensor) -> Tensor:
        from hilap.kernels import sums

        found = values.detach().clone(memory_format=torch.contiguous_format)
        sums.segment_log_softmax(found.numpy(), array(starts))
        ctx.save_for_backward(found, starts)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        from hilap.kernels import sums

        found, starts = ctx.saved_tensors
        result = torch.empty_like(found)
        sums.gradient_of_log_softmax(array(grad), array(found), array(starts), result.numpy())
        return result, None


__all__ = ["dense_products", "log_softmax", "log_sum_exp", "plain_log_softmax", "products", "segments"]
