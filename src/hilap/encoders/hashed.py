"""Hashed n-grams: words, neighbouring words and parts of words as features, with no vocabulary to count or to save."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from hilap.corpus.examples import Examples
from hilap.encoders.base import Encoder, Json, check_share, check_truth, check_whole, checked_options, texts_of
from hilap.encoders.layers import FeedForward, checked_hidden
from hilap.encoders.rows import SparseBatch, SparseRows
from hilap.encoders.tokens import words
from hilap.errors import CorpusError, require

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_FEATURES = 1 << 26
_FIRST_BOUND = 1 / 3  # rows have the length 1, as those of TF-IDF
_BLOCK, _BLOCK_LETTERS = 1_024, 4_000_000  # texts at a time, and letters, to bound the memory that hashes take

_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
_INVERSE = pow(_BASE, -1, 1 << 64)
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SALTS = {"words": 0x243F6A8885A308D3, "characters": 0x13198A2E03707344}
_SIGN = 1 << 63

Hashes = NDArray[np.uint64]


class Hashed(Encoder):
    """Texts as signed counts of hashed n-grams, rows of unit length, through feed-forward layers.

    Every n-gram falls into one of `features` columns with a sign that its hash gives, so that where two meet they
    cancel as often as they add. The hash is the same on every machine and in every run.

    Parameters
    ----------
    features
        The number of columns.
    word_ngrams
        The shortest and the longest run of words that is a feature, such as (1, 2); None for no words.
    character_ngrams
        The same for letters within a word and the blanks around it, such as (3, 5); None for none.
    max_words
        How many words of a document are read; None for all.
    sublinear
        Whether a count c counts as 1 + ln c.
    idf
        Whether a column weighs 1 + ln((1 + n) / (1 + df)), as for `TfIdf`; this is all that is counted in training.
    hidden, dropout, input_dropout
        The layers, as for `MLP`; `input_dropout` drops columns.

    Examples
    --------
    >>> from hilap.taxonomy import Taxonomy
    >>> examples = Examples.of(Taxonomy.of({"Bars": []}), [["Bars"], []], texts=["craft beer", "craft"])
    >>> encoder = Hashed(features=16, character_ngrams=None, idf=False, hidden=(4,))
    >>> rows = encoder.fit(examples, generator=torch.Generator().manual_seed(0)).matrix(examples)
    >>> abs(rows).toarray().round(2).max(axis=1)
    array([0.58, 1.  ], dtype=float32)
    """

    name = "hashed"
    idf_weight: Tensor  # (F,)

    def __init__(
        self,
        *,
        features: int = 65_536,
        word_ngrams: Sequence[int] | None = (1, 2),
        character_ngrams: Sequence[int] | None = None,
        max_words: int | None = 256,
        sublinear: bool = True,
        idf: bool = True,
        hidden: int | Iterable[int] = (500,),
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        good = type(features) is int and 2 <= features <= MOST_FEATURES
        require(good, "features", f"a whole number from 2 to {MOST_FEATURES:,}", features)
        if max_words is not None:
            check_whole("max_words", max_words)
        check_truth("sublinear", sublinear)
        check_truth("idf", idf)
        check_share("dropout", dropout)
        check_share("input_dropout", input_dropout)
        self.features = features
        self.word_ngrams = _checked_range("word_ngrams", word_ngrams)
        self.character_ngrams = _checked_range("character_ngrams", character_ngrams)
        both = (self.word_ngrams, self.character_ngrams)
        require(both != (None, None), "word_ngrams", "given where character_ngrams are not", None)
        self.max_words = max_words
        self.sublinear = sublinear
        self.idf = idf
        self.hidden = checked_hidden(hidden)
        self.dropout = float(dropout)
        self.input_dropout = float(input_dropout)

    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Count in how many documents each column occurs, if `idf` is wanted, and draw the weights."""
        texts = texts_of(examples, self.name)
        if not texts:
            raise CorpusError("the hashed encoder cannot learn from no texts; give it documents")
        self._build()
        if self.idf:
            having = np.zeros(self.features, dtype=np.int64)
            for block in _blocks(texts):
                having += np.bincount(self._block(block).indices, minlength=self.features)
            self.idf_weight.copy_(torch.from_numpy(1 + np.log((1 + len(texts)) / (1 + having))))
        self.layers.draw(generator, first_bound=_FIRST_BOUND)
        return self

    def prepare(self, examples: Examples) -> SparseRows:
        """The rows of the texts."""
        return SparseRows(self.matrix(examples))

    def matrix(self, examples: Examples) -> sparse.csr_array:
        """(n, F) float32, rows of unit length (or empty)."""
        self.check_fitted()
        counts = self._counts(texts_of(examples, self.name))
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        values = counts.data.astype(np.float64)
        if self.sublinear:
            values = np.sign(values) * (1 + np.log(np.abs(values)))
        values *= self.idf_weight.cpu().numpy().astype(np.float64)[counts.indices]
        # Added up one after the other, so that a text's row does not depend on the texts around it to the last bit.
        norm = np.sqrt(np.bincount(row, values**2, minlength=counts.shape[0]))
        data = (values / norm[row]).astype(np.float32)
        return sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)

    def forward(self, batch: SparseBatch) -> Tensor:
        """(B, dim) the last layer."""
        self.check_fitted()
        vectors: Tensor = self.layers(batch)
        return vectors

    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values."""
        return {
            "features": self.features,
            "word_ngrams": None if self.word_ngrams is None else [*self.word_ngrams],
            "character_ngrams": None if self.character_ngrams is None else [*self.character_ngrams],
            "max_words": self.max_words,
            "sublinear": self.sublinear,
            "idf": self.idf,
            "hidden": [*self.hidden],
            "dropout": self.dropout,
            "input_dropout": self.input_dropout,
        }

    def learned(self) -> dict[str, Json]:
        """Nothing: the weights are all."""
        self.check_fitted()
        return {}

    @classmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """An encoder of the same shape, ready for `load_state_dict`."""
        options: Any = checked_options(cls, settings)
        encoder = cls(**options)
        encoder._build()
        return encoder

    # -- inside -----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.register_buffer("idf_weight", torch.ones(self.features))
        self.layers = FeedForward(self.features, self.hidden, dropout=self.dropout, input_dropout=self.input_dropout)
        self.dim = self.hidden[-1]

    def _counts(self, texts: Sequence[str]) -> sparse.csr_array:
        """(n, F) int32, the signed counts; where they cancel there is nothing."""
        blocks = [self._block(block) for block in _blocks(texts)]
        return blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")

    def _block(self, texts: Sequence[str]) -> sparse.csr_array:
        lines = _Lines([words(text, self.max_words) for text in texts])
        found = [*lines.word_ngrams(self.word_ngrams), *lines.character_ngrams(self.character_ngrams)]
        hashes = np.concatenate([part for part, _ in found])
        docs = np.concatenate([part for _, part in found])
        signs = np.where(hashes & np.uint64(_SIGN), -1, 1).astype(np.int32)
        columns = (hashes % np.uint64(self.features)).astype(np.int64)
        counts = sparse.csr_array((signs, (docs, columns)), shape=(len(texts), self.features))
        counts.sum_duplicates()
        counts.eliminate_zeros()
        return counts


class _Lines:
    """Documents as one long line of letters, every word with a blank on both sides, and the hash of any part of it.

    The hash of letters c_0 c_1 ... is the sum of (c_i + 1) BASE^i, modulo 2^64, then mixed. Sums over a part of the
    line are differences of sums from its start, so all n-grams are hashed at once, by numpy.
    """

    def __init__(self, lines: Sequence[list[str]]) -> None:
        joined = "".join(f" {' '.join(line)} " if line else "" for line in lines)
        letters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
        with np.errstate(over="ignore"):
            powers = np.cumprod(np.full(len(letters) + 1, _BASE, dtype=np.uint64)) * np.uint64(_INVERSE)
            self._shifts = np.cumprod(np.full(len(letters) + 1, _INVERSE, dtype=np.uint64)) * np.uint64(_BASE)
            terms = (letters + np.uint64(1)) * powers[:-1]
            self._sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
        self._blank = letters == ord(" ")
        lengths = np.array([sum(map(len, line)) + len(line) + 1 if line else 0 for line in lines], dtype=np.int64)
        self._doc = np.repeat(np.arange(len(lines)), lengths)  # of each letter

    def word_ngrams(self, sizes: tuple[int, int] | None) -> Iterator[tuple[Hashes, NDArray[np.int64]]]:
        """The hashes of runs of words and the document of each, size by size."""
        starts = np.flatnonzero(self._blank[:-1] & ~self._blank[1:]) + 1
        ends = np.flatnonzero(~self._blank[:-1] & self._blank[1:]) + 1
        for size in range(sizes[0], sizes[1] + 1) if sizes else ():
            first, last = starts[: len(starts) - size + 1], ends[size - 1 :]
            inside = self._doc[first] == self._doc[last - 1]
            yield self._hashes(first[inside], last[inside], "words"), self._doc[first[inside]]

    def character_ngrams(self, sizes: tuple[int, int] | None) -> Iterator[tuple[Hashes, NDArray[np.int64]]]:
        """The same for runs of letters; blanks stand at their ends only."""
        blanks = np.concatenate([[0], np.cumsum(self._blank)])
        for size in range(sizes[0], sizes[1] + 1) if sizes else ():
            first = np.arange(max(len(self._blank) - size + 1, 0))
            whole = blanks[first + size - 1] == blanks[np.minimum(first + 1, first + size - 1)]  # no blank between
            first = first[whole & (self._doc[first] == self._doc[first + size - 1])]
            yield self._hashes(first, first + size, "characters"), self._doc[first]

    def _hashes(self, first: NDArray[np.int64], end: NDArray[np.int64], kind: str) -> Hashes:
        with np.errstate(over="ignore"):
            mixed: Hashes = (self._sums[end] - self._sums[first]) * self._shifts[first] ^ np.uint64(_SALTS[kind])
            for shift, factor in zip((30, 27), _MIX, strict=True):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
            mixed ^= mixed >> np.uint64(31)
        return mixed


def _blocks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in blocks; one empty block where there are none."""
    start = letters = 0
    for end, text in enumerate(texts):
        if end > start and (end - start == _BLOCK or letters + len(text) > _BLOCK_LETTERS):
            yield texts[start:end]
            start, letters = end, 0
        letters += len(text)
    yield texts[start:]


def _checked_range(name: str, value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    pair = tuple(value) if isinstance(value, (list, tuple)) else ()
    good = len(pair) == 2 and all(type(size) is int for size in pair) and 1 <= pair[0] <= pair[1] <= 20
    require(good, name, "the shortest and the longest, from 1 to 20, such as (1, 2), or None", value)
    return pair[0], pair[1]
