"""Where the bytes of a corpus come from: files, standard input, and standard input kept in a file for a while."""

from __future__ import annotations

import glob
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from hilap.errors import CorpusError
from hilap.files import STDIN, display, open_bytes

HEAD = 1 << 16  # so many bytes are looked at to recognise a format


class SpooledInput:
    """Standard input in a temporary file, which goes when this object goes; messages call it standard input."""

    def __init__(self) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="hilap-")  # noqa: SIM115 - it lives as long as the corpus
        with open_bytes(STDIN, CorpusError) as stream:
            shutil.copyfileobj(stream, self._file, 1 << 20)
        self._file.flush()

    def __fspath__(self) -> str:
        return self._file.name

    def __str__(self) -> str:
        return display(STDIN)


def spooled() -> Path:
    """Standard input as a file that can be read twice."""
    return cast("Path", SpooledInput())


def expand(source: str | Path) -> list[str | Path]:
    """The files that a path or a pattern such as `parts/*.jsonl` stands for."""
    if str(source) == STDIN or not glob.has_magic(str(source)) or _exists(source):
        return [source]
    found = sorted(glob.glob(str(source), recursive=True))
    if not found:
        raise CorpusError(f"{source}: no file is of this pattern; check the path")
    return list(found)


def name_of(sources: Sequence[str | Path]) -> str:
    """How a corpus of these files is called in messages."""
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return display(sources[0]) + more


def head_of(source: str | Path) -> bytes:
    """The first bytes of a file, decompressed."""
    with open_bytes(source, CorpusError) as stream:
        return stream.read(HEAD)


def waiting_head() -> bytes:
    """What standard input has to offer right now, without taking it away; compressed if it is."""
    buffer: Any = sys.stdin.buffer
    if hasattr(buffer, "peek"):
        return bytes(buffer.peek(HEAD))
    at = buffer.tell()
    head = bytes(buffer.read(HEAD))
    buffer.seek(at)
    return head


def _exists(source: str | Path) -> bool:
    try:
        return Path(source).exists()
    except (OSError, ValueError):
        return False


__all__ = ["SpooledInput", "expand", "head_of", "name_of", "spooled", "waiting_head"]
