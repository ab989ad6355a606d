"""The parameters that all ways of decoding share, checked."""

from __future__ import annotations

from typing import Any

from hilap.errors import require


def whole(name: str, value: Any, least: int) -> None:
    """Require a whole number of at least so much.

    Examples
    --------
    >>> whole("width", 0, 1)
    Traceback (most recent call last):
    hilap.errors.SettingError: width must be a whole number, at least 1, got 0
    """
    good = isinstance(value, int) and not isinstance(value, bool) and value >= least
    require(good, name, f"a whole number, at least {least}", value)


def number(name: str, value: Any, low: float, high: float) -> None:
    """Require a number in a closed range."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    require(good, name, f"a number between {low:g} and {high:g}", value)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Require one of a few words."""
    require(value in allowed, name, "one of " + ", ".join(map(repr, allowed)), value)
