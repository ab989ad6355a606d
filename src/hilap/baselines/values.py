"""Checks of settings that several baselines share."""

from __future__ import annotations

import math

import numpy as np

from hilap.errors import require


def check_positive(name: str, value: object) -> None:
    """Require a number above 0."""
    good = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    require(good and 0 < float(value) < math.inf, name, "a number above 0", value)  # type: ignore[arg-type]


def check_from_zero(name: str, value: object) -> None:
    """Require a number of at least 0."""
    good = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    require(good and 0 <= float(value) < math.inf, name, "a number, at least 0", value)  # type: ignore[arg-type]


def check_count(name: str, value: object, least: int = 1) -> None:
    """Require a whole number of at least so much."""
    good = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    require(good and int(value) >= least, name, f"a whole number, at least {least}", value)  # type: ignore[call-overload]


def check_jobs(name: str, value: object) -> None:
    """Require a number of cores: -1 for all, or at least 1."""
    good = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    require(good and (int(value) == -1 or int(value) >= 1), name, "-1, or a whole number above 0", value)  # type: ignore[call-overload]


def check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Require one of some values."""
    require(value in allowed, name, "one of " + ", ".join(map(repr, allowed)), value)


def check_truth(name: str, value: object) -> None:
    """Require True or False."""
    require(isinstance(value, (bool, np.bool_)), name, "True or False", value)


__all__ = ["check_choice", "check_count", "check_from_zero", "check_jobs", "check_positive", "check_truth"]
