"""Single values of a record, checked: numbers, texts, ids and cells full of labels."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MOST_FLOAT32 = 3.4028235677973365e38  # what is larger rounds to infinity
_NUMBERS = frozenset({float, int, type(None)})


class BadLineError(Exception):
    """A line or row is not a document; the reason, without the place."""


def is_number(value: Any) -> bool:
    """Whether a value is a number; true and false are none."""
    return type(value) is not bool and isinstance(value, numbers.Real)


def numbers_of(values: Sequence[Any], names: Sequence[str] | None = None) -> list[float | None]:
    """Values of a record as numbers: null and "?" are missing ones, anything else that is no number is an error."""
    if _NUMBERS.issuperset(map(type, values)):
        return values if isinstance(values, list) else list(values)
    return [_number(value, repr(names[k]) if names else str(k + 1)) for k, value in enumerate(values)]


def cell_numbers(cells: Sequence[str], names: Sequence[str]) -> list[float | None]:
    """Cells of a text file as numbers: an empty cell and "?" are missing ones."""
    try:
        values = [None if cell == "" or cell == "?" else float(cell) for cell in cells]
        if math.isfinite(sum(v for v in values if v is not None)) and "_" not in "".join(cells):
            return values
    except ValueError:
        pass
    for cell, name in zip(cells, names, strict=True):
        if cell.strip() not in ("", "?"):
            _checked_cell(cell, name)
    return [None if cell.strip() in ("", "?") else float(cell) for cell in cells]


def split_cell(cell: str, separator: str) -> list[Any]:
    """The labels in one cell of a table: divided by the separator, or a JSON list."""
    stripped = cell.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        try:
            value = json.loads(stripped)
        except (ValueError, RecursionError):
            raise BadLineError(
                f'the labels {stripped:.80} are not a JSON list; write ["a", "b"] or a{separator}b'
            ) from None
        return list(value)
    return [part for part in map(str.strip, cell.split(separator)) if part]


def shorten(value: object) -> str:
    """A value as it is shown in messages."""
    if value is None:
        return "null"
    try:
        shown = repr(value)
    except ValueError:  # an integer with thousands of digits
        return "a very large number"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _number(value: Any, name: str) -> float | None:
    if value is None or (isinstance(value, str) and value.strip() == "?"):
        return None
    if isinstance(value, (bool, np.bool_, numbers.Real)):
        try:
            return float(value)
        except OverflowError:
            raise BadLineError(f"feature {name} is too large a number") from None
    raise BadLineError(f"feature {name} must be a number, got {shorten(value)}; write null for a missing value")


def _checked_cell(cell: str, name: str) -> None:
    try:
        value = float(cell.replace("_", "x"))  # Python would read 1_000
    except ValueError:
        raise BadLineError(f"column {name!r} must hold a number, got {shorten(cell)}") from None
    if math.isnan(value):
        raise BadLineError(
            f"column {name!r} must hold a number, got {cell!r}; leave the cell empty for a missing value"
        )
    if math.isinf(value):
        raise BadLineError(f"column {name!r} must hold a finite number, got {shorten(cell)}")


def string_of(value: Any, name: str, record: Mapping[str, Any]) -> str:
    """A text, which must be there."""
    if isinstance(value, str):
        return str(value)
    if value is None and name not in record:
        raise BadLineError(f"there is no {name!r}; every document needs one, an empty string at least")
    raise BadLineError(f"{name!r} must be a string, got {shorten(value)}")


def name_of(value: Any, column: str | None) -> str:
    """An id or a group as a string."""
    if isinstance(value, str):
        return str(value)
    if is_number(value) and value == value:
        try:
            return str(value)
        except ValueError:
            raise BadLineError(f"{column!r} is a number with too many digits; write it as a string") from None
    raise BadLineError(f"{column!r} must be a string or a number, got {shorten(value)}")


def list_of(value: Any, column: str) -> list[Any]:
    """The labels in a value that is neither a list nor a string."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return list(value.tolist())
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    if is_number(value) or isinstance(value, dict):
        return [value]
    raise BadLineError(f"{column!r} must be a list of labels, got {shorten(value)}")


__all__ = [
    "MOST_FLOAT32",
    "BadLineError",
    "cell_numbers",
    "is_number",
    "list_of",
    "name_of",
    "numbers_of",
    "shorten",
    "split_cell",
    "string_of",
]
