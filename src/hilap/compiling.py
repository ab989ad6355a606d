"""How inner loops are compiled: by numba, on their first call, the machine code kept for later processes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import numba

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT, *, fast: Collection[str] = ()) -> FunctionT:
    """Compile a function when it is first called; sums are added up in the order they are written, unless `fast`.

    Parameters
    ----------
    function
        What to compile; it lets go of Python's lock.
    fast
        What LLVM may do with floats, such as `contract` (multiply and add in one).
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(fast) or False}
    try:
        made: FunctionT = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache can be written to
        made = numba.njit(**options)(function)
    return made


__all__ = ["compiled"]
