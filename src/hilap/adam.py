"""Adam over weights of which an update moves few rows, such as one row for each word of a vocabulary.

Where a weight's gradient is not zero in some rows alone, it comes as those rows (`rows_of`, where `gradients_by_rows`
asks for it), and no matrix of zeros of the size of the weight is made, added up, and read. The step itself is Adam's
own, over all rows: those without a gradient go on by their moments, as they would with zeros. With 30,000 words this
halves the time of a whole update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

_BY_ROWS: ContextVar[bool] = ContextVar("gradients by rows", default=False)


@contextmanager
def gradients_by_rows() -> Iterator[None]:
    """Within, gradients of `rows_of` are sparse. Torch's own optimizers do not take them; `Adam` below does."""
    before = _BY_ROWS.set(True)
    try:
        yield
    finally:
        _BY_ROWS.reset(before)


def rows_of(weight: Tensor, rows: Tensor) -> Tensor:
    """(U, N) some rows of a (W, N) weight, sorted and all different.

    Within `gradients_by_rows` their gradient reaches the weight as those rows, on the CPU; else with all rows.
    """
    if not _BY_ROWS.get() or weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.float64):
        return F.embedding(rows, weight)
    taken: Tensor = _Rows.apply(weight, rows)  # type: ignore[no-untyped-call]
    return taken


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = weight.shape
        return F.embedding(rows, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        at = rows.unsqueeze(0)
        return torch.sparse_coo_tensor(at, grads[0], ctx.shape, is_coalesced=True, check_invariants=False), None


class Adam(torch.optim.Adam):
    """Adam as torch has it, which also takes gradients of some rows."""

    def __init__(self, params: ParamsT, *, lr: float = 1e-3, weight_decay: float = 0.0) -> None:
        super().__init__(params, lr=lr, weight_decay=weight_decay, fused=True)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Move all weights by one update; `closure`, where given, works the gradients out first."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        waiting: list[tuple[nn.Parameter, Tensor]] = []
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None and weight.grad.is_sparse and not weight.is_contiguous():
                    weight.grad = weight.grad.to_dense()
                elif weight.grad is not None and weight.grad.is_sparse:
                    waiting.append((weight, weight.grad))
                    self._move_rows(weight, weight.grad.coalesce(), group)
                    weight.grad = None  # for torch's step there is nothing left to do
        super().step()
        for weight, grad in waiting:
            weight.grad = grad
        return loss

    def _move_rows(self, weight: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        from hilap.moments import adam_rows  # where it is used: numba takes a moment to load

        state = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        state["step"] += 1
        step, (first, second) = state["step"].item(), group["betas"]
        rate, per_root = group["lr"] / (1 - first**step), (1 - second**step) ** -0.5
        constants = [rate, first, second, per_root, group["eps"], group["weight_decay"]]
        moved, mean, square = (
            part.detach().view(-1).numpy() for part in (weight, state["exp_avg"], state["exp_avg_sq"])
        )
        rows, grads = grad.indices()[0].numpy(), grad.values().contiguous().numpy()
        adam_rows(moved, mean, square, rows, grads, np.array(constants, dtype=grads.dtype))


def clip(weights: Iterable[nn.Parameter], most: float) -> None:
    """Shrink the gradients of all weights together to a length of at most this, as torch's `clip_grad_norm_` does."""
    grads = ((weight, weight.grad) for weight in weights)
    found = [(weight, grad.coalesce() if grad.is_sparse else grad) for weight, grad in grads if grad is not None]
    if found:
        lengths = [(grad.values() if grad.is_sparse else grad).norm() for _, grad in found]
        share = (most / (torch.stack(lengths).norm() + 1e-6)).clamp_max(1.0)
        for weight, grad in found:  # rows may share their memory with other rows: they are not changed in place
            weight.grad = grad * share if grad.is_sparse else grad.mul_(share)


__all__ = ["Adam", "clip", "gradients_by_rows", "rows_of"]
