"""How inner loops are compiled: by numba, on their first call, the machine code kept for later processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import numba
from numba.core.event import Event, Listener, register

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class Spent(Listener):
    """What compiling has cost this process so far, in seconds by the clock on the wall and by the processor's.

    What is loaded from the cache is not compiled, and costs nothing here. One function at a time is compiled, whoever
    asks; those that it calls are compiled within it, and count once.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self._depth = 0
        self._began = (0.0, 0.0)

    def on_start(self, event: Event) -> None:
        """Numba begins to compile a function."""
        if self._depth == 0:
            self._began = (time.perf_counter(), time.thread_time())
        self._depth += 1

    def on_end(self, event: Event) -> None:
        """It has compiled the function."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began[0]
            self.cpu_seconds += time.thread_time() - self._began[1]


SPENT = Spent()
register("numba:compile", SPENT)  # type: ignore[no-untyped-call]


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


__all__ = ["SPENT", "Spent", "compiled"]
