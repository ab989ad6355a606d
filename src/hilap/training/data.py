"""Documents as training sees them: prepared once by the encoder, gold sets as rows of a sparse matrix."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from hilap.corpus import Examples
from hilap.corpus.stored import StoredExamples
from hilap.encoders import Encoder, Prepared
from hilap.encoders.streamed import prepare_streamed
from hilap.network import Network

_BLOCK = 1 << 18  # numbers looked at at a time


class TrainingData:
    """A block of examples, prepared for a network.

    Parameters
    ----------
    examples
        The documents with their labels, closed upward.
    prepare
        What makes columns of them: a fitted encoder, or a network.
    """

    def __init__(self, examples: Examples, prepare: Encoder | Network) -> None:
        self.labels = examples.labels
        self.prepared = _prepared(examples, prepare)
        self.fingerprint = _fingerprint(examples)  # a resumed run must have the same documents

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    def batch(self, rows: NDArray[Any]) -> Any:
        """What the encoder takes, for these documents."""
        return self.prepared.batch(rows)

    def gold(self, rows: NDArray[Any]) -> Tensor:
        """(B, L) bool gold sets of these documents."""
        return torch.from_numpy(self.labels[rows].toarray().astype(bool))

    def label_counts(self) -> NDArray[np.int64]:
        """(L,) how many documents each label has."""
        counts = np.zeros(self.labels.shape[1], dtype=np.int64)
        for block in _blocks(self.labels.indices):  # numpy would make 64-bit numbers of all at once
            counts += np.bincount(block, minlength=len(counts))
        return counts

    def most_steps(self) -> int:
        """A reasonably large number of steps: the mean number of labels and three standard deviations more."""
        counts = np.diff(self.labels.indptr)
        return max(1, min(int(counts.max(initial=1)), int(np.ceil(counts.mean() + 3 * counts.std()))))


def _prepared(examples: Examples, prepare: Encoder | Network) -> Prepared:
    """The documents as columns; on disk, if they are there themselves. A wide or kernel part is solved in memory."""
    if not isinstance(examples, StoredExamples) or (isinstance(prepare, Network) and prepare.beside is not None):
        return prepare.prepare(examples)
    return prepare_streamed(prepare.encoder if isinstance(prepare, Network) else prepare, examples)


def _fingerprint(examples: Examples) -> str:
    """A hash of the documents and their labels, wherever they lie."""
    digest = hashlib.sha256()
    for array in (examples.labels.indptr, examples.labels.indices):
        for block in _blocks(array):
            digest.update(np.ascontiguousarray(block, dtype=np.int64).tobytes())
    for text in examples.texts or ():
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    if sparse.issparse(examples.features):
        rows = sparse.csr_array(examples.features)
        for array, dtype in ((rows.indptr, np.int64), (rows.indices, np.int64), (rows.data, np.float32)):
            digest.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
    elif examples.features is not None:
        digest.update(np.ascontiguousarray(examples.features, dtype=np.float32).tobytes())
    return digest.hexdigest()


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (array[start : start + _BLOCK] for start in range(0, len(array), _BLOCK))
