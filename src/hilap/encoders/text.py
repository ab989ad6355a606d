"""What the encoders that read texts as word numbers share: presets, a vocabulary, a cache, word vectors."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from hilap.adam import rows_of
from hilap.corpus.examples import Examples
from hilap.corpus.mapped import Strings
from hilap.encoders.base import Encoder, Json, check_truth, check_whole, checked_options, texts_of
from hilap.encoders.glove import read_vectors
from hilap.encoders.token_cache import cached_rows
from hilap.encoders.token_rows import TokenRows
from hilap.encoders.vocabulary import FIRST, PADDING, Vocabulary
from hilap.errors import CorpusError, ModelError, SettingError, did_you_mean, require

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_WORDS = 10_000_000
MOST_WIDTH = 1_000_000
MOST_WEIGHTS = 2**31
"""More numbers than any one tensor of a text encoder has; a stranger's model that asks for more is refused."""

Presets: TypeAlias = "Mapping[str, Mapping[str, Json]]"


class TextEncoder(Encoder):
    """Texts as the numbers of their first words. A subclass makes vectors of them.

    A subclass has `PRESETS`, a table of settings for each name, the first of them the paper's. Its constructor hands
    over what it was given, None where the preset decides.
    """

    PRESETS: ClassVar[Presets]
    _vocabulary: Vocabulary

    def __init__(self, preset: str, cache: str | Path | None, given: Mapping[str, Any]) -> None:
        super().__init__()
        if preset not in self.PRESETS:
            near = did_you_mean(str(preset), self.PRESETS)
            hint = f"; did you mean {near!r}?" if near else ""
            raise SettingError(f"preset must be one of {', '.join(map(repr, self.PRESETS))}, got {preset!r}{hint}")
        good = cache is None or isinstance(cache, (str, os.PathLike))
        require(good, "cache", "a folder, or None", cache)
        self.preset = preset
        self.cache = cache
        self._chosen: dict[str, Any] = {**self.PRESETS[preset], **{k: v for k, v in given.items() if v is not None}}
        check_sizes(self._chosen, "max_words", "vocabulary")

    # -- for subclasses ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _build(self, n_words: int) -> None:
        """Make all parameters and buffers for this many word numbers, without values, and set `dim`."""

    @abstractmethod
    def _draw(self, generator: torch.Generator) -> None:
        """Give all parameters and buffers their first values."""

    def _longest_sentence(self) -> int | None:
        """How many words a sentence has at most; None where sentences are not looked for."""
        return None

    # -- an encoder -------------------------------------------------------------------------------------------------

    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Count the words of the training texts, keep the most frequent, and draw the weights."""
        texts = texts_of(examples, self.name)
        vocabulary = Vocabulary.most_frequent(
            texts, most=self._chosen["vocabulary"], max_words=self._chosen["max_words"]
        )
        if not vocabulary.words:
            raise CorpusError(f"none of the {len(texts):,} texts has a word in it; give the {self.name} encoder texts")
        self._start(vocabulary)
        with torch.no_grad():
            self._draw(generator)
        return self

    def sibling(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Another encoder with the same vocabulary and weights of its own; the words need not be counted again."""
        self.check_fitted()
        other = copy.deepcopy(self)
        other._start(self._vocabulary)
        with torch.no_grad():
            other._draw(generator)
        return other

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary, the most frequent word first."""
        self.check_fitted()
        return self._vocabulary.words

    def prepare(self, examples: Examples) -> TokenRows:
        """The texts as word numbers; from the cache, if there is one and they are in it. Texts on disk bring one."""
        self.check_fitted()
        texts = texts_of(examples, self.name)
        max_words, longest = self._chosen["max_words"], self._longest_sentence()

        def make(block: Sequence[str]) -> TokenRows:
            return self._vocabulary.rows(block, max_words=max_words, longest_sentence=longest)

        cache = texts.workplace.path if self.cache is None and isinstance(texts, Strings) else self.cache
        return cached_rows(cache, texts, [max_words, longest, self._vocabulary.words], make)

    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values; where the cache is, is no matter of the model."""
        chosen = {k: [*v] if isinstance(v, tuple) else v for k, v in self._chosen.items()}
        return {"preset": self.preset, **chosen}

    def learned(self) -> dict[str, Json]:
        """The vocabulary."""
        return {"words": [*self.words]}

    @classmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """An encoder of the same shape, ready for `load_state_dict`."""
        if "cache" in settings:
            raise ModelError("a saved encoder names a cache folder, which hilap never writes; do not trust this model")
        encoder = cls(**checked_options(cls, settings))
        words = learned.get("words")
        good = isinstance(words, list) and 1 <= len(words) <= MOST_WORDS and all(isinstance(w, str) for w in words)
        if not isinstance(words, list) or not good or len({*words}) < len(words):
            raise ModelError(
                f"a {cls.name} encoder has learned 'words', a list of different words, but the model has not"
            )
        encoder._start(Vocabulary([str(word) for word in words]))
        return encoder

    def _start(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._build(len(vocabulary))


class WordVectors(nn.Module):
    """One vector for each word number; that of nothing is zero.

    Parameters
    ----------
    n_words, dimensions
        How many, and how wide.
    tuned
        Whether they are learned further; else they stay as they were.
    """

    weight: Tensor

    def __init__(self, n_words: int, dimensions: int, *, tuned: bool) -> None:
        super().__init__()
        empty = empty_weight(n_words, dimensions)
        if tuned:
            self.weight = nn.Parameter(empty)
        else:
            self.register_buffer("weight", empty)

    def draw(self, generator: torch.Generator, words: tuple[str, ...], source: str | None) -> None:
        """Take the vectors of the file; words that have none there, or all, get small random ones."""
        nn.init.uniform_(self.weight, -0.25, 0.25, generator=generator)
        if source is not None:
            places, vectors = read_vectors(source, words, self.weight.shape[1])
            self.weight[torch.from_numpy(places) + FIRST] = torch.from_numpy(vectors)
        self.weight[PADDING] = 0


def learning_rows(weight: Tensor, words: Tensor) -> Tensor:
    """(U, N) the rows of these words, sorted and all different; nothing, the first word there is, learns nothing."""
    rows = rows_of(weight, words)
    if torch.is_grad_enabled() and len(words) and words[0] == PADDING:
        rows = torch.cat([rows[:1].detach(), rows[1:]])
    return rows


def empty_weight(*shape: int) -> Tensor:
    """Memory for a weight, not touched yet, or an error where no one can have so much."""
    numbers = 1
    for size in shape:
        numbers *= size
    if numbers > MOST_WEIGHTS:
        raise SettingError(
            f"a weight of {' x '.join(f'{size:,}' for size in shape)} numbers is too large; choose smaller sizes"
        )
    return torch.empty(shape)


def check_sizes(chosen: Mapping[str, Any], *names: str) -> None:
    """Require whole numbers of at least 1 that can be a width."""
    for name in names:
        check_whole(name, chosen[name])
        require(chosen[name] <= MOST_WIDTH, name, f"at most {MOST_WIDTH:,}", chosen[name])


def check_vectors(chosen: dict[str, Any]) -> None:
    """Require settings of word vectors; a path becomes plain text."""
    check_sizes(chosen, "dimensions")
    check_truth("tune_vectors", chosen["tune_vectors"])
    source = chosen["vectors"]
    require(source is None or isinstance(source, (str, os.PathLike)), "vectors", "the path of a file, or None", source)
    chosen["vectors"] = None if source is None else str(source)


def several(name: str, value: Any, what: str) -> tuple[int, ...]:
    """One or several different whole numbers, as a tuple."""
    given: Any = (value,) if isinstance(value, int) else value
    numbers = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    good = bool(numbers) and all(type(n) is int and 1 <= n <= 10_000 for n in numbers)
    require(good and len({*numbers}) == len(numbers), name, f"{what}, at least one, all different", value)
    return numbers
