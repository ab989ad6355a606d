"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numpy.typing import NDArray

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Floats = NDArray[Any]  # float32 or float64
Whole = NDArray[Any]  # int64


def compiled(function: FunctionT, *, reorder: bool = False) -> FunctionT:
    """Compile a function on its first call, with fused multiply-adds; `reorder` lets it add up a sum in lanes."""
    fast = {"contract", "reassoc", "nsz"} if reorder else {"contract"}
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fast}
    try:
        made: FunctionT = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache can be written to
        made = numba.njit(**options)(function)
    return made


__all__ = ["Floats", "Whole", "compiled"]
