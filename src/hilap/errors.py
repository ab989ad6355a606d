"""Every error a user can meet. A message says what is wrong, where, what was given and what to do."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Any

MOST_COMPARED_LETTERS = 300


class HilapError(Exception):
    """The parent of all errors that `hilap` raises on purpose."""


class TaxonomyError(HilapError, ValueError):
    """A taxonomy cannot be built: a cycle, an unknown parent, a file that is not what it claims to be."""


class CorpusError(HilapError, ValueError):
    """A corpus cannot be read: a broken line, an unknown label, a missing column."""


class SettingError(HilapError, ValueError):
    """A parameter has a value it cannot have."""


class ModelError(HilapError, ValueError):
    """A model cannot be used, saved or opened: not fitted yet, damaged, foreign, or made by a newer version."""


class MissingExtraError(HilapError, ImportError):
    """A package that is only needed for this task is not installed."""


def require(condition: bool, parameter: str, allowed: str, given: object) -> None:
    """Raise the one sentence that every bad parameter gets.

    Examples
    --------
    >>> require(0 <= 2 <= 1, "gamma", "between 0 and 1", 2)
    Traceback (most recent call last):
    hilap.errors.SettingError: gamma must be between 0 and 1, got 2
    """
    if not condition:
        raise SettingError(f"{parameter} must be {allowed}, got {given!r}")


def did_you_mean(given: str, known: Iterable[str]) -> str | None:
    """The known word nearest to the given one, or None where nothing is near.

    Examples
    --------
    >>> did_you_mean("Beer Bar", ["Bars", "Beer Bars"])
    'Beer Bars'
    """
    candidates = list(known)
    lowered = {word.casefold(): word for word in reversed(candidates)}
    if given.casefold() in lowered:
        return lowered[given.casefold()]
    # difflib compares with every candidate in pure Python, and takes the product of the lengths each time: whole
    # pages are not tried, and in a large taxonomy only words that begin alike.
    if len(given) > MOST_COMPARED_LETTERS:
        return None
    candidates = [word for word in candidates if len(word) <= MOST_COMPARED_LETTERS]
    if len(candidates) > 5_000:
        candidates = [word for word in candidates if abs(len(word) - len(given)) <= 2 and word[:1] == given[:1]]
    near = difflib.get_close_matches(given, candidates, n=1)
    return near[0] if near else None


def need(module: str, extra: str) -> Any:
    """Import an optional dependency, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(f"{package} is needed here; install it with: pip install 'hilap[{extra}]'") from error


def warn_unsolved(message: str) -> None:
    """Say that a solver was ended before its goal, as scikit-learn's solvers do."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=3)


__all__ = [
    "CorpusError",
    "HilapError",
    "MissingExtraError",
    "ModelError",
    "SettingError",
    "TaxonomyError",
    "did_you_mean",
    "need",
    "require",
    "warn_unsolved",
]
