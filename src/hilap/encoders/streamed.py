"""Documents that lie on disk, prepared for training block by block: what an encoder makes of them lies on disk too.

It is the same to the last bit as what the encoder would prepare in memory, because no encoder's row of a document
depends on the documents around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.corpus.mapped import Pile
from hilap.corpus.stored import StoredExamples
from hilap.encoders.base import Encoder, Prepared, Rows
from hilap.encoders.rows import DenseRows, SparseRows
from hilap.encoders.several import Several, SeveralRows
from hilap.encoders.text import TextEncoder

BLOCK = 2_048  # documents prepared at a time


def prepare_streamed(encoder: Encoder, examples: StoredExamples) -> Prepared:
    """What `encoder.prepare` gives, without more than a block of it in memory.

    Word numbers go through the token cache, in the working folder of the documents. Feature rows and vectors, which
    take more time to make than to read, are kept in files without a name. Anything else, such as what a user's own
    encoder prepares, is made anew for every batch.

    Parameters
    ----------
    encoder
        A fitted encoder.
    examples
        The documents.
    """
    if isinstance(encoder, Several):
        return SeveralRows([prepare_streamed(part, examples) for part in encoder.encoders])
    if isinstance(encoder, TextEncoder):
        return encoder.prepare(examples)
    blocks = (encoder.prepare(examples.take(rows)) for rows in _blocks(len(examples)))
    first = next(blocks)
    if isinstance(first, SparseRows):
        return _sparse(examples, chain([first], blocks), first)
    if isinstance(first, DenseRows):
        return _dense(examples, chain([first], blocks), first)
    return MadeWhenNeeded(encoder, examples)


@dataclass(frozen=True)
class MadeWhenNeeded:
    """Documents that are prepared when a batch of them is asked for."""

    encoder: Encoder
    examples: StoredExamples

    def __len__(self) -> int:
        return len(self.examples)

    def batch(self, rows: Rows) -> Any:
        """These documents, in this order."""
        chosen = np.asarray(rows, dtype=np.int64)
        return self.encoder.prepare(self.examples.take(chosen)).batch(np.arange(len(chosen)))


@dataclass(frozen=True)
class _Arrays:
    """The arrays of a csr matrix; scipy's own would copy them where there are more than 2^31 values."""

    data: NDArray[np.float32]
    indices: NDArray[Any]
    indptr: NDArray[np.int64]
    shape: tuple[int, int]


def _sparse(examples: StoredExamples, blocks: Iterable[Any], first: SparseRows) -> SparseRows:
    data, indices = Pile(examples.workplace, np.float32), Pile(examples.workplace, np.int32)
    lengths = [np.zeros(1, dtype=np.int64)]
    for block in blocks:
        data.add(block.matrix.data)
        indices.add(block.matrix.indices)
        lengths.append(np.diff(block.matrix.indptr))
    indptr = np.cumsum(np.concatenate(lengths), dtype=np.int64)
    shape = (len(examples), first.matrix.shape[1])
    return SparseRows(_Arrays(data.mapped(), indices.mapped(), indptr, shape))


def _dense(examples: StoredExamples, blocks: Iterable[Any], first: DenseRows) -> DenseRows:
    values = Pile(examples.workplace, np.float32)
    for block in blocks:
        values.add(block.values.numpy())
    return DenseRows(values.mapped().reshape(len(examples), first.values.shape[1]))


def _blocks(n: int) -> Iterator[NDArray[np.int64]]:
    return (np.arange(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


__all__ = ["MadeWhenNeeded", "prepare_streamed"]
