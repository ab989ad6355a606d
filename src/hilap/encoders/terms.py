"""Terms, words and pairs of neighbouring words: which to keep, and how often each stands in a text.

Only finding the words of a text and their numbers is done text by text; all counting is numpy's.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.encoders.tokens import words

_BLOCK = 4_096  # texts at a time, to bound the memory that word numbers take
_TALLIES = 8  # of blocks, before they are added up
_PAIR = 32  # the code of a word is its number b; of a pair of words, (a + 1) << 32 | b
_UNKNOWN = -1

Numbers = NDArray[np.int64]


class Terms:
    """A vocabulary of terms; a term's column is its place in it.

    Parameters
    ----------
    terms
        Words, and pairs of words parted by a blank.
    max_words
        How many words of a text are read; None for all.
    """

    def __init__(self, terms: Sequence[str], max_words: int | None) -> None:
        self.terms = tuple(terms)
        self.max_words = max_words
        parts = [term.split(" ", 1) for term in self.terms]
        self._numbers = {word: i for i, word in enumerate(dict.fromkeys(word for part in parts for word in part))}
        self._single = np.full(len(self._numbers) + 1, _UNKNOWN)  # number -> column; the last row is for the unknown
        codes = [((self._numbers[a[0]] + 1) << _PAIR) | self._numbers[a[1]] for a in parts if len(a) == 2]
        columns = [column for column, part in enumerate(parts) if len(part) == 2]
        for column, part in enumerate(parts):
            if len(part) == 1:
                self._single[self._numbers[part[0]]] = column
        order = np.argsort(codes)
        self._pairs: Numbers = np.array(codes, dtype=np.int64)[order]
        self._pair_columns: Numbers = np.array(columns, dtype=np.int64)[order]

    @classmethod
    def most_frequent(
        cls, texts: Sequence[str], *, max_words: int | None, bigrams: bool, max_features: int, min_df: int
    ) -> tuple[Terms, Numbers]:
        """The terms with the highest counts, then first in the alphabet, and how many texts have each."""
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__  # a new word gets the next number
        tallies = []
        for block in _blocks(texts):
            found, docs = _numbered(block, max_words, lambda line: map(numbers.__getitem__, line))
            pairs, docs_of_pairs = _pairs_of(found, docs) if bigrams else (found[:0], docs[:0])
            tallies.append(_tally(np.concatenate([found, pairs]), np.concatenate([docs, docs_of_pairs])))
            if len(tallies) == _TALLIES:
                tallies = [_added_up(tallies)]
        codes, count, frequency = _added_up(tallies)
        vocabulary = [*numbers]
        kept = [
            (-int(count[i]), _term(int(codes[i]), vocabulary), int(frequency[i]))
            for i in _leading(count, frequency >= min_df, max_features)
        ]
        kept = sorted(kept)[:max_features]
        return cls([term for _, term, _ in kept], max_words), np.array([often for *_, often in kept], dtype=np.int64)

    def counts(self, texts: Sequence[str]) -> sparse.csr_array:
        """(n, F) int32, how often each term stands in each text."""
        blocks = [self._counts(block) for block in _blocks(texts)]
        return blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")

    def _counts(self, texts: Sequence[str]) -> sparse.csr_array:
        numbers, docs = _numbered(texts, self.max_words, lambda line: map(self._numbers.get, line, repeat(_UNKNOWN)))
        columns = self._single[numbers]
        if len(self._pairs):
            pairs, docs_of_pairs = _pairs_of(numbers, docs)
            place = np.minimum(np.searchsorted(self._pairs, pairs), len(self._pairs) - 1)
            found = np.where(self._pairs[place] == pairs, self._pair_columns[place], _UNKNOWN)
            columns, docs = np.concatenate([columns, found]), np.concatenate([docs, docs_of_pairs])
        known = columns != _UNKNOWN
        return _matrix(docs[known], columns[known], (len(texts), len(self.terms)))


def _blocks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in blocks; one empty block where there are none."""
    return (texts[start : start + _BLOCK] for start in range(0, max(len(texts), 1), _BLOCK))


def _numbered(
    texts: Sequence[str], max_words: int | None, number: Callable[[list[str]], Iterable[int]]
) -> tuple[Numbers, Numbers]:
    """(M,) the numbers of all words, text after text, and (M,) the text that each stands in."""
    numbers, lengths = array("q"), array("q")
    for text in texts:
        line = words(text, max_words)
        numbers.extend(number(line))
        lengths.append(len(line))
    return np.array(numbers, dtype=np.int64), np.repeat(np.arange(len(texts)), np.array(lengths, dtype=np.int64))


def _pairs_of(numbers: Numbers, docs: Numbers) -> tuple[Numbers, Numbers]:
    """The codes of all pairs of neighbouring known words, and the text that each stands in."""
    first, second = numbers[:-1], numbers[1:]
    together = (docs[:-1] == docs[1:]) & (first != _UNKNOWN) & (second != _UNKNOWN)
    return ((first[together] + 1) << _PAIR) | second[together], docs[1:][together]


def _tally(codes: Numbers, docs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The different codes, how often each stands there, and in how many texts."""
    different, column = np.unique(codes, return_inverse=True)
    shape = (int(docs.max(initial=-1)) + 1, len(different))
    frequency = np.bincount(_matrix(docs, column, shape).indices, minlength=len(different))
    return different, np.bincount(column, minlength=len(different)), frequency


def _added_up(tallies: Sequence[tuple[Numbers, Numbers, Numbers]]) -> tuple[Numbers, Numbers, Numbers]:
    """The tallies of several blocks as one."""
    codes, counts, frequencies = (np.concatenate(part) for part in zip(*tallies, strict=True))
    different, where = np.unique(codes, return_inverse=True)
    count, frequency = (np.zeros(len(different), dtype=np.int64) for _ in range(2))
    np.add.at(count, where, counts)
    np.add.at(frequency, where, frequencies)
    return different, count, frequency


def _leading(count: Numbers, allowed: NDArray[np.bool_], most: int) -> Numbers:
    """Which have the highest counts among the allowed, with all that tie with the last of them."""
    candidates = np.flatnonzero(allowed)
    if len(candidates) <= most:
        return candidates
    least = np.partition(count[candidates], -most)[-most]
    leading: Numbers = candidates[count[candidates] >= least]
    return leading


def _term(code: int, vocabulary: Sequence[str]) -> str:
    first, second = code >> _PAIR, code & ((1 << _PAIR) - 1)
    return f"{vocabulary[first - 1]} {vocabulary[second]}" if first else vocabulary[second]


def _matrix(docs: Numbers, columns: Numbers, shape: tuple[int, int]) -> sparse.csr_array:
    """How often each (text, column) stands there."""
    counts = sparse.csr_array((np.ones(len(docs), dtype=np.int32), (docs, columns)), shape=shape)
    counts.sum_duplicates()
    return counts
