"""Values as JSON, and files byte for byte: what model folders and checkpoints are made of. Hostile until read."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hilap.errors import ModelError
from hilap.files import writing


def plain(value: Any, where: str, *, keep_nan: bool = False) -> Any:
    """A value as JSON has it: tuples become lists, numpy's numbers become Python's, a number that is none null."""
    try:
        return _plain(value, where, keep_nan)
    except RecursionError:
        raise _too_deep() from None


def _plain(value: Any, where: str, keep_nan: bool) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if keep_nan or math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [_plain(item, where, keep_nan) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): _plain(item, where, keep_nan) for key, item in value.items()}
    what = "an object whose keys are not all texts" if isinstance(value, Mapping) else f"a {type(value).__name__}"
    raise ModelError(f"{where} cannot be saved: it holds {what}; give plain values as JSON has them")


def json_file(value: Any, what: str) -> bytes:
    """A JSON file, with one value a line, to be read by eye."""
    return utf8(json.dumps(plain(value, what), ensure_ascii=False, indent=1, allow_nan=False) + "\n", what)


def utf8(text: str, what: str) -> bytes:
    """A text as UTF-8, or an error where it holds half a character."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as fault:
        letter = ascii(fault.object[fault.start])
        raise ModelError(f"{what} cannot be saved, as {letter} is no character that UTF-8 can hold") from None


def canonical(value: Any, *, sort: bool = True) -> bytes:
    """The one way to write a JSON value, for hashing."""
    try:
        return json.dumps(value, sort_keys=sort, separators=(",", ":")).encode("ascii")
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> ModelError:
    return ModelError("a JSON value is nested too deeply for a model; give plain values")


def parsed(data: bytes, path: Path) -> Any:
    """The JSON value of a file."""
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        reason = "nested too deeply" if isinstance(fault, RecursionError) else str(fault)
        raise damaged(path, f"not valid JSON: {reason}") from None


def damaged(path: Path, reason: str) -> ModelError:
    """The error that a broken file gets."""
    return ModelError(f"{path}: the file is damaged or truncated ({reason}); get it again")


def read(path: Path, most: int, *, inside: Path | None = None) -> bytes:
    """A file as it is, byte for byte: never decompressed, and never through a link out of its folder."""
    try:
        if inside is not None and not path.resolve().is_relative_to(inside):
            raise ModelError(f"{path}: this link leads out of the model's folder; do not trust this model")
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as stream:  # a pipe must not hang
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelError(f"{path}: this is no ordinary file")
            if status.st_size > most:
                raise ModelError(f"{path}: the file has {status.st_size:,} bytes; at most {most:,} are read")
            return stream.read(status.st_size)
    except ModelError:
        raise
    except FileNotFoundError:
        raise ModelError(f"{path}: the file is missing; get it again") from None
    except (OSError, RuntimeError, ValueError) as fault:  # links in a circle, a zero byte in the name
        raise ModelError(f"{str(path)!r}: cannot be read ({fault})") from None


def write(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file whole or not at all, and see it to the disk."""
    with writing(path, "wb") as stream:
        for piece in pieces:
            stream.write(piece)
        stream.flush()
        os.fsync(stream.fileno())  # the name must not reach the disk before the content


def sync_folder(folder: Path) -> None:
    """See the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def written(place: str | Path) -> Iterator[None]:
    """What the system says about writing, as our own error."""
    try:
        yield
    except OSError as fault:
        raise ModelError(f"{place}: cannot be written ({fault.strerror or fault}); the former one stays") from None
