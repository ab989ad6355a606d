"""Token rows kept in a folder, mapped into memory when they are wanted again.

A file is named by a hash of everything that its content depends on (texts, words, settings, the version of the
tokeniser), so it can be missing but never stale. It carries a hash of its content; one that is damaged is written
anew. Files appear whole, so several processes may share a folder, and any file may be deleted at any time.

Rows are made and written block by block: of texts that lie on disk themselves, no more than a block is in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from hilap.encoders.token_rows import TokenRows
from hilap.encoders.tokens import VERSION
from hilap.errors import SettingError
from hilap.files import writing

FEWEST_DOCUMENTS = 1_024
"""Smaller blocks, such as those that predictions are made of, are tokenised faster than a file is written."""
_BLOCK = 4_096  # texts whose rows are made at a time
_CHUNK = 1 << 20  # bytes at a time
_MAGIC = b"hilap tokens 2\n\0"
_HEADER = len(_MAGIC) + 3 * 8 + 32  # magic; documents, tokens, whether there are sentences; hash of the rest


def cached_rows(
    folder: str | Path | None,
    texts: Sequence[str],
    depends_on: Sequence[Any],
    make: Callable[[Sequence[str]], TokenRows],
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
        Makes the rows of a block of texts.
    """
    if folder is None or len(texts) < FEWEST_DOCUMENTS:
        return make(texts)
    key = _key(texts, depends_on)
    place = cache_folder(folder)
    path = place / f"{key.hex()}.tokens"
    found = _opened(path, key, len(texts))
    if found is not None:
        return found
    check_writable(place)
    _write(path, key, texts, make)
    return _opened(path, key, len(texts)) or make(texts)  # where it was deleted meanwhile


def _key(texts: Sequence[str], depends_on: Sequence[Any]) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    digest.update(json.dumps([VERSION, *depends_on]).encode("ascii"))
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d\n" % len(raw) + raw)
    return digest.digest()


def cache_folder(folder: str | Path) -> Path:
    """The folder that an option `cache` names, made if it does not exist."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as fault:  # a file is there; a zero byte in the name
        reason = getattr(fault, "strerror", None) or fault
        raise SettingError(f"cache: {str(folder)!r} cannot be used as a folder ({reason}); give another") from None
    return place


def check_writable(place: Path) -> None:
    """Require that files can be put into the folder of an option `cache`. Reading alone needs no such right."""
    try:
        tempfile.TemporaryFile(dir=place).close()
    except OSError as fault:
        raise SettingError(
            f"cache: nothing can be written into {str(place)!r} ({fault.strerror or fault}); give another folder, "
            "or leave cache out"
        ) from None


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
    after_starts = _HEADER + 8 * (n + 1)
    after_tokens = after_starts + 4 * tokens
    digest = hashlib.blake2b(key=key, digest_size=32)
    for part in (data[after_starts:], data[_HEADER:after_starts]):
        for start in range(0, len(part), _CHUNK):
            digest.update(part[start : start + _CHUNK].data)
    if head[-32:] != _seal(digest, sizes):
        return None
    begins = data[after_tokens:].view(np.bool_) if sentences else None
    return TokenRows(data[after_starts:after_tokens].view("<i4"), data[_HEADER:after_starts].view("<i8"), begins)


def _write(path: Path, key: bytes, texts: Sequence[str], make: Callable[[Sequence[str]], TokenRows]) -> None:
    """Make rows block by block and write them. Where sentences begin goes behind all tokens, and waits in a file."""
    digest = hashlib.blake2b(key=key, digest_size=32)
    lengths, sentences = [np.zeros(1, dtype="<i8")], 0
    with writing(path, "wb") as stream, tempfile.TemporaryFile(dir=path.parent) as waiting:
        stream.seek(_HEADER + 8 * (len(texts) + 1))
        for start in range(0, len(texts), _BLOCK):
            rows = make(texts[start : start + _BLOCK])
            _put(stream, digest, rows.tokens.astype("<i4").tobytes())
            lengths.append(np.diff(rows.starts))
            if rows.begins is not None:
                waiting.write(rows.begins.tobytes())
                sentences = 1
        waiting.seek(0)
        while chunk := waiting.read(_CHUNK):
            _put(stream, digest, chunk)
        starts = np.cumsum(np.concatenate(lengths), dtype="<i8")
        sizes = [len(texts), int(starts[-1]), sentences]
        digest.update(starts.tobytes())
        stream.seek(0)
        stream.write(_MAGIC + np.array(sizes, dtype="<i8").tobytes() + _seal(digest, sizes) + starts.tobytes())
        stream.flush()
        os.fsync(stream.fileno())  # the name must not reach the disk before the content


def _put(stream: IO[bytes], digest: hashlib.blake2b, content: bytes) -> None:
    stream.write(content)
    digest.update(content)


def _seal(digest: hashlib.blake2b, sizes: Sequence[int]) -> bytes:
    """A hash of the content that no one can make who does not know the texts: tokens, sentences, starts, sizes."""
    digest.update(repr(list(sizes)).encode("ascii"))
    return digest.digest()
