"""Vectors of texts kept in a folder, each found by its text, whatever it was encoded together with.

A file has vectors that were made at one time, and hashes of their texts. Its name begins with a hash of what made them,
so a vector can be missing but never stale. It carries a hash of its content; one that is damaged counts for nothing.
Files appear whole, so several processes may share a folder, and any file may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hilap.encoders.token_cache import cache_folder, check_writable
from hilap.files import writing

Vectors = NDArray[np.float32]
KEY_BYTES = 16
_MAGIC = b"hilap vectors 1\n"
_HEADER = len(_MAGIC) + 2 * 8 + 32  # magic; how many vectors, their width; hash of the rest


class KeptVectors:
    """The vectors in a folder that one source has made.

    Parameters
    ----------
    folder
        Where the files are; made when there is something to write.
    source
        A hash of what makes the vectors.
    width
        Of a vector.
    """

    def __init__(self, folder: Path, source: str, width: int) -> None:
        self.folder = folder
        self.width = width
        self._secret = hashlib.sha256(source.encode()).digest()
        self._names = f"{self._secret.hex()[:32]}-"
        self._seen: set[str] = set()
        self._known: dict[bytes, Vectors] = {}

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Vectors]:
        """The vectors that are there of these texts. Files that another process has written meanwhile count."""
        self._look()
        return {key: self._known[key] for key in keys if key in self._known}

    def check(self) -> None:
        """Require that there is a folder to put something into; to be asked before long work is done."""
        check_writable(cache_folder(self.folder))

    def put(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Keep the vectors of some texts, as one file."""
        content = b"".join(keys) + np.ascontiguousarray(vectors, dtype="<f4").tobytes()
        sizes = np.array([len(keys), self.width], dtype="<i8").tobytes()
        name = f"{self._names}{hashlib.sha256(b''.join(keys)).hexdigest()[:32]}.vectors"
        with writing(self.folder / name, "wb") as stream:
            stream.write(_MAGIC + sizes + self._seal(sizes, content) + content)
            stream.flush()
            os.fsync(stream.fileno())  # the name must not reach the disk before the content
        self._seen.discard(name)  # a damaged file had this name

    def _look(self) -> None:
        try:
            present = os.listdir(self.folder)
        except (OSError, ValueError):  # there is no folder, or it can be none: then nothing is kept
            return
        for name in sorted({*present} - self._seen):
            if name.startswith(self._names) and name.endswith(".vectors"):
                self._known.update(self._opened(self.folder / name))
                self._seen.add(name)

    def _opened(self, path: Path) -> dict[bytes, Vectors]:
        """The vectors of a file, mapped into memory; none where it is damaged or of something else."""
        try:
            with open(path, "rb") as stream:
                data = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):  # deleted meanwhile, not readable, or empty
            return {}
        sizes, content = data[len(_MAGIC) : len(_MAGIC) + 16], data[_HEADER:]
        if len(data) < _HEADER or data[: len(_MAGIC)] != _MAGIC:
            return {}
        n, width = np.frombuffer(sizes, dtype="<i8").tolist()
        if n < 0 or width != self.width or len(content) != n * (KEY_BYTES + 4 * width):
            return {}
        if data[_HEADER - 32 : _HEADER] != self._seal(sizes, content):
            return {}
        vectors = np.frombuffer(content, dtype="<f4", offset=n * KEY_BYTES).reshape(n, width)
        return {bytes(content[i * KEY_BYTES : (i + 1) * KEY_BYTES]): vectors[i] for i in range(n)}

    def _seal(self, sizes: bytes | memoryview, content: bytes | memoryview) -> bytes:
        """A hash of the content that depends on what made it too."""
        digest = hashlib.blake2b(sizes, key=self._secret, digest_size=32)
        digest.update(content)
        return digest.digest()
