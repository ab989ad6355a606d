"""Token rows kept in a folder, mapped into memory when they are wanted again.

A file is named by a hash of everything that its content depends on (texts, words, settings, the version of the
tokeniser), so it can be missing but never stale. It carries a hash of its content; one that is damaged is written
anew. Files appear whole, so several processes may share a folder, and any file may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.encoders.token_rows import TokenRows
from hilap.encoders.tokens import VERSION
from hilap.errors import SettingError
from hilap.files import writing

FEWEST_DOCUMENTS = 1_024
"""Smaller blocks, such as those that predictions are made of, are tokenised faster than a file is written."""
_MAGIC = b"hilap tokens 1\n\0"
_HEADER = len(_MAGIC) + 3 * 8 + 32  # magic; documents, tokens, whether there are sentences; hash of the rest


def cached_rows(
    folder: str | Path | None, texts: Sequence[str], depends_on: Sequence[Any], make: Callable[[], TokenRows]
) -> TokenRows:
    """The rows of these texts from the folder; where they are not there, made and put there.

    Parameters
    ----------
    folder
        Made if it does not exist. None keeps the rows in memory.
    texts
        What the rows are of.
    depends_on
        Everything else that decides what the rows are, as JSON can hold it.
    make
        Makes the rows.
    """
    if folder is None or len(texts) < FEWEST_DOCUMENTS:
        return make()
    key = _key(texts, depends_on)
    path = _folder(folder) / f"{key.hex()}.tokens"
    found = _opened(path, key, len(texts))
    if found is not None:
        return found
    rows = make()
    _write(path, key, rows)
    return _opened(path, key, len(texts)) or rows


def _key(texts: Sequence[str], depends_on: Sequence[Any]) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    digest.update(json.dumps([VERSION, *depends_on]).encode("ascii"))
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d\n" % len(raw) + raw)
    return digest.digest()


def _folder(folder: str | Path) -> Path:
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as fault:  # a file is there; a zero byte in the name
        reason = getattr(fault, "strerror", None) or fault
        raise SettingError(f"cache: {str(folder)!r} cannot be used as a folder ({reason}); give another") from None
    return place


def _opened(path: Path, key: bytes, n: int) -> TokenRows | None:
    """The rows of a file, mapped; None where it is absent, damaged or of something else."""
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
    except (OSError, ValueError):  # absent, not readable, or empty
        return None
    head = data[:_HEADER].tobytes()
    if len(head) < _HEADER or not head.startswith(_MAGIC):
        return None
    sizes = np.frombuffer(head, dtype="<i8", count=3, offset=len(_MAGIC)).tolist()
    documents, tokens, sentences = sizes
    end = _HEADER + 8 * (n + 1) + 4 * tokens + (tokens if sentences else 0)
    if documents != n or tokens < 0 or sentences not in (0, 1) or len(data) != end:
        return None
    if head[-32:] != _seal(key, sizes, [data[_HEADER:]]):
        return None
    after_starts = _HEADER + 8 * (n + 1)
    after_tokens = after_starts + 4 * tokens
    begins = data[after_tokens:].view(np.bool_) if sentences else None
    return TokenRows(data[after_starts:after_tokens].view("<i4"), data[_HEADER:after_starts].view("<i8"), begins)


def _write(path: Path, key: bytes, rows: TokenRows) -> None:
    columns: list[NDArray[Any]] = [rows.starts.astype("<i8"), rows.tokens.astype("<i4")]
    if rows.begins is not None:
        columns.append(rows.begins)
    sizes = [len(rows), len(rows.tokens), int(rows.begins is not None)]
    with writing(path, "wb") as stream:
        stream.write(_MAGIC + np.array(sizes, dtype="<i8").tobytes() + _seal(key, sizes, columns))
        for column in columns:
            stream.write(np.ascontiguousarray(column).data)
        stream.flush()
        os.fsync(stream.fileno())  # the name must not reach the disk before the content


def _seal(key: bytes, sizes: Sequence[int], columns: Sequence[NDArray[Any]]) -> bytes:
    """A hash of the content that no one can make who does not know the texts."""
    digest = hashlib.blake2b(key=key, digest_size=32)
    digest.update(repr(list(sizes)).encode("ascii"))
    for column in columns:
        digest.update(np.ascontiguousarray(column).data)
    return digest.digest()
