"""Vectors of texts that were encoded already, in memory and if wanted in a folder. Found by content: never stale."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from hilap.encoders.vector_cache import KEY_BYTES, KeptVectors
from hilap.storage.content import canonical

Vectors = NDArray[np.float32]
_MOST = 50_000  # texts whose vectors are kept in memory
_BLOCK = 1_024  # texts encoded at a time, and kept in one file


class Memory:
    """Remembers the vectors that an encoder, or copies of it, have made.

    Parameters
    ----------
    folder
        Where they are kept from run to run; None for in memory only.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._known: dict[bytes, Vectors] = {}
        self._kept: KeptVectors | None = None
        self._source = ""  # a hash of what made the vectors
        self._body: weakref.ref[nn.Module] | None = None
        self._versions: tuple[tuple[int, int], ...] = ()

    def __deepcopy__(self, memo: Any) -> Memory:
        return self  # copies of an encoder, such as the members of a network, need not encode a text again

    def vectors(
        self,
        texts: Sequence[str],
        encode: Callable[[Sequence[str]], Vectors],
        body: nn.Module,
        about: Mapping[str, Any],
        width: int,
    ) -> Vectors:
        """(n, D) the vectors of texts; `encode` is asked for those that are not known.

        Parameters
        ----------
        texts
            The texts.
        encode
            Makes vectors of texts.
        body
            Whose weights `encode` uses: when they change, everything is forgotten.
        about
            What else vectors depend on; it goes with the body.
        width
            D.
        """
        self._look_at(body, about, width)
        keys = [_key(text) for text in texts]
        found = {key: self._known[key] for key in keys if key in self._known}
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if self._kept is not None and new:
            found.update(self._kept.find(new))
        missing = [key for key in new if key not in found]
        if self._kept is not None and missing:
            self._kept.check()
        for start in range(0, len(missing), _BLOCK):
            block = missing[start : start + _BLOCK]
            made = encode([new[key] for key in block])
            found.update(zip(block, made, strict=True))
            if self._kept is not None:
                self._kept.put(block, made)
        self._known.update((key, found[key]) for key in new)
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]  # the oldest
        return np.stack([found[key] for key in keys]) if keys else np.zeros((0, width), dtype=np.float32)

    def _look_at(self, body: nn.Module, about: Mapping[str, Any], width: int) -> None:
        """Forget everything if vectors come from elsewhere now. Weights are hashed only if they were written to."""
        tensors = [*body.parameters(), *body.buffers()]
        versions = tuple((id(tensor), tensor._version) for tensor in tensors)
        if self._body is not None and self._body() is body and versions == self._versions:
            return
        running = hashlib.sha256(canonical(dict(about)))
        for name, tensor in body.state_dict().items():
            running.update(f"{name} {tuple(tensor.shape)}".encode())
            running.update(memoryview(tensor.detach().cpu().contiguous().numpy()).cast("B"))
        if running.hexdigest() != self._source:
            self._known = {}
            self._kept = None if self.folder is None else KeptVectors(self.folder, running.hexdigest(), width)
        self._source, self._versions, self._body = running.hexdigest(), versions, weakref.ref(body)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()
