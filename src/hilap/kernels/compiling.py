"""How kernels are compiled."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hilap import compiling
from hilap.compiling import FunctionT

Floats = NDArray[Any]  # float32 or float64
Whole = NDArray[Any]  # int64


def compiled(function: FunctionT, *, reorder: bool = False) -> FunctionT:
    """Compile a function on its first call, with fused multiply-adds; `reorder` lets it add up a sum in lanes."""
    return compiling.compiled(function, fast={"contract", "reassoc", "nsz"} if reorder else {"contract"})


__all__ = ["Floats", "Whole", "compiled"]
