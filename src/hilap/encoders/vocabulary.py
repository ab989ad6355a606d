"""A vocabulary: the most frequent words of the training texts, and texts as their numbers."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from hilap.encoders.token_rows import TokenRows
from hilap.encoders.tokens import sentences, words

PADDING, UNKNOWN, FIRST = 0, 1, 2
"""The numbers of nothing, of a word that is not in the vocabulary, and of its first word."""


class Vocabulary:
    """Words with their numbers, the most frequent first.

    Parameters
    ----------
    words
        All different; the first has the number 2.

    Examples
    --------
    >>> vocabulary = Vocabulary.most_frequent(["beer and beer", "rum and more"], most=2, max_words=256)
    >>> vocabulary.words
    ('and', 'beer')
    >>> vocabulary.rows(["Rum, beer and beer"], max_words=3).tokens
    array([1, 3, 2], dtype=int32)
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._numbers = {word: number for number, word in enumerate(self.words, FIRST)}

    def __len__(self) -> int:
        """How many numbers there are, those of nothing and of the unknown included."""
        return FIRST + len(self.words)

    @classmethod
    def most_frequent(cls, texts: Sequence[str], *, most: int, max_words: int) -> Vocabulary:
        """The words with the highest counts among the first words of each text, then first in the alphabet."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(words(text, max_words))
        return cls(sorted(counts, key=lambda word: (-counts[word], word))[:most])

    def rows(self, texts: Sequence[str], *, max_words: int, longest_sentence: int | None = None) -> TokenRows:
        """The texts as numbers of their first words; with `longest_sentence` also where sentences begin."""
        tokens, lengths, sizes = array("i"), array("q"), array("q")
        number = self._numbers.get
        for text in texts:
            if longest_sentence is None:
                parts = [words(text, max_words)]
            else:
                parts = sentences(text, max_words, longest_sentence)
                sizes.extend(map(len, parts))
            before = len(tokens)
            for part in parts:
                tokens.extend(map(number, part, repeat(UNKNOWN)))
            lengths.append(len(tokens) - before)
        begins = None if longest_sentence is None else _begins(np.array(sizes, dtype=np.int64), len(tokens))
        return TokenRows(np.array(tokens, dtype=np.int32), np.cumsum([0, *lengths], dtype=np.int64), begins)


def _begins(sizes: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """(n,) whether a sentence begins at a word, from the sizes of all sentences one after the other."""
    begins = np.zeros(n, dtype=bool)
    begins[np.cumsum(sizes) - sizes] = True
    return begins
