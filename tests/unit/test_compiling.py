"""What compiling has cost: counted once, by both clocks, and not where nothing is compiled."""

from __future__ import annotations

import subprocess
import sys
import time
from threading import Thread

import numba
import numpy as np
import pytest

from hilap.compiling import SPENT

KERNEL = """
from hilap.compiling import SPENT, compiled


@compiled
def inner(rows):
    return rows.sum()


@compiled
def total(rows):
    return inner(rows) + rows.max()


def told():
    import numpy as np

    total(np.arange(3.0))
    return SPENT.cpu_seconds
"""


def fresh():
    """Two functions that nobody has compiled yet, one of which calls the other."""

    @numba.njit
    def inner(rows):
        return np.sort(rows).sum()

    @numba.njit
    def outer(rows):
        return inner(rows) + np.median(rows)

    return outer


def test_what_is_compiled_within_something_else_counts_once():
    outer, before = fresh(), (SPENT.seconds, SPENT.cpu_seconds)
    began = time.perf_counter(), time.process_time()
    assert outer(np.arange(3.0)) == 4.0
    took = time.perf_counter() - began[0], time.process_time() - began[1]
    spent = SPENT.seconds - before[0], SPENT.cpu_seconds - before[1]
    assert 0.5 * took[0] < spent[0] <= took[0]  # compiling is nearly all of it
    assert 0.5 * took[1] < spent[1] <= took[1]
    again = SPENT.seconds, SPENT.cpu_seconds
    outer(np.arange(5.0))
    assert (SPENT.seconds, SPENT.cpu_seconds) == again


def test_threads_that_compile_at_the_same_time_count_one_after_the_other():
    before, began = SPENT.seconds, time.perf_counter()
    threads = [Thread(target=fresh(), args=(np.arange(3.0),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < SPENT.seconds - before <= time.perf_counter() - began


def test_a_function_that_cannot_be_compiled_leaves_the_count_in_order():
    @numba.njit
    def broken(rows):
        return rows.nothing

    with pytest.raises(numba.TypingError):
        broken(np.arange(3.0))
    before = SPENT.seconds
    fresh()(np.arange(3.0))
    assert SPENT.seconds > before


def test_what_comes_from_the_cache_costs_nothing(tmp_path, monkeypatch):
    (tmp_path / "kernel.py").write_text(KERNEL)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    words = [sys.executable, "-c", "import kernel; print(kernel.told())"]
    first, second = (
        float(subprocess.run(words, cwd=tmp_path, capture_output=True, check=True).stdout) for _ in range(2)
    )
    assert first > 0
    assert second == 0
