"""A bar on standard error for work that takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counting(what: str, total: int, *, shown: bool) -> Iterator[Callable[[], None]]:
    """A function to call after each of so many pieces of work; with a bar, or without.

    Examples
    --------
    >>> with counting("labels", 2, shown=False) as advance:
    ...     advance()
    """
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


__all__ = ["counting"]
