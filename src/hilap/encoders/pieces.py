"""Pieces of words: the tokenizers of pretrained models, from the `tokenizer.json` that comes with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hilap.corpus.mapped import positions
from hilap.encoders.base import Rows
from hilap.errors import ModelError, need

MOST_LETTERS_A_PIECE = 50  # so much of a long text is looked at for each piece that is wanted
_REMEMBERED = 500_000  # words whose pieces are kept in memory
_TRIED = 200  # texts that decide whether words can be looked up one by one


@dataclass(frozen=True)
class PieceBatch:
    """The pieces of B documents, one document after the other."""

    ids: Tensor  # (M,)
    lengths: Tensor  # (B,)

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device | str) -> PieceBatch:
        """The same batch on another device."""
        return PieceBatch(self.ids.to(device), self.lengths.to(device))


class PieceRows:
    """A block of documents as numbers of pieces.

    Parameters
    ----------
    ids
        (M,) the pieces, one document after the other.
    starts
        (n + 1,) where each document starts, and the end.
    """

    def __init__(self, ids: NDArray[Any], starts: NDArray[np.int64]) -> None:
        self.ids = np.asarray(ids, dtype=np.int32)
        self.starts = starts

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n,) how many pieces each document has."""
        lengths: NDArray[np.int64] = np.diff(self.starts)
        return lengths

    def batch(self, rows: Rows) -> PieceBatch:
        """The pieces of these documents."""
        chosen = positions(rows, len(self))
        first, lengths = self.starts[chosen], self.lengths[chosen]
        taken = np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        return PieceBatch(torch.from_numpy(self.ids[taken].astype(np.int64)), torch.from_numpy(lengths))


class Pieces:
    """Texts to numbers of pieces.

    Parameters
    ----------
    description
        What a `tokenizer.json` holds. It may be a stranger's; it is data, nothing in it is executed.
    vocabulary
        How many pieces the model knows; a tokenizer that gives a higher number is refused.
    special
        Whether the pieces that a transformer wants around a text (such as [CLS]) are added; else unknown pieces are
        left out as well, for they mean nothing.
    """

    def __init__(self, description: Any, *, vocabulary: int, special: bool) -> None:
        if not isinstance(description, Mapping) or not isinstance(description.get("model"), Mapping):
            raise ModelError("a tokenizer is an object with a 'model', as tokenizer.json has it")
        kind = need("tokenizers", "transformers").Tokenizer
        with _told("the tokenizer cannot be used"):
            self._tokenizer = kind.from_str(json.dumps(description))
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            unknown = _unknown(self._tokenizer, description["model"])
        self.description = dict(description)
        self.vocabulary = vocabulary
        self.special = special
        self._unknown = None if special else unknown
        self._by_word: dict[str, list[int]] | None = None

    def split_at_blanks(self, allowed: bool) -> None:
        """Whether words between blanks are cut into pieces one by one and remembered: several times as fast."""
        self._by_word = {} if allowed else None

    def can_split_at_blanks(self, texts: Sequence[str]) -> bool:
        """Whether cutting words one by one gives what cutting the whole text gives, tried on some texts."""
        some = [" ".join(text[:10_000].split()) for text in texts[:_TRIED]]
        words = list(dict.fromkeys(word for text in some for word in text.split()))
        alone = dict(zip(words, self._cut(words), strict=True))
        return all(
            list(chain.from_iterable(alone[word] for word in text.split())) == whole
            for text, whole in zip(some, self._cut(some), strict=True)
        )

    def rows(self, texts: Sequence[str], most: int) -> PieceRows:
        """The first pieces of each text, at most `most` of them with the special ones."""
        if self._by_word is not None:
            found = self._looked_up(texts, most)
        else:
            with _told("the tokenizer cannot be used"):
                self._tokenizer.enable_truncation(most)
            found = self._cut([text[: MOST_LETTERS_A_PIECE * most] for text in texts])
        ids = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=sum(map(len, found)))
        if len(ids) and int(ids.max()) >= self.vocabulary:
            raise ModelError(
                f"the tokenizer gives piece {int(ids.max()):,}, but the model has {self.vocabulary:,}; "
                "they do not belong together"
            )
        return PieceRows(ids, np.concatenate([[0], np.cumsum([len(line) for line in found], dtype=np.int64)]))

    def _looked_up(self, texts: Sequence[str], most: int) -> list[list[int]]:
        known = self._by_word
        if known is None or len(known) > _REMEMBERED:
            known = self._by_word = {}
        lines = [text[: MOST_LETTERS_A_PIECE * most].split()[:most] for text in texts]
        new = [word for word in dict.fromkeys(chain.from_iterable(lines)) if word not in known]
        known.update(zip(new, self._cut(new), strict=True))
        return [list(chain.from_iterable(map(known.__getitem__, line)))[:most] for line in lines]

    def _cut(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        cut = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)  # tokenizers 0.19 has no fast
        with _told("the tokenizer cannot be used"):
            try:
                found = cut(list(texts), add_special_tokens=self.special)
            except (TypeError, UnicodeError):  # half a character, which no UTF-8 can hold
                found = cut([_whole(text) for text in texts], add_special_tokens=self.special)
        if self._unknown is None:
            return [line.ids for line in found]
        return [[piece for piece in line.ids if piece != self._unknown] for line in found]


def _unknown(tokenizer: Any, model: Mapping[str, Any]) -> int | None:
    """The number of the piece that stands for what has no piece."""
    if isinstance(model.get("unk_token"), str):
        number: int | None = tokenizer.token_to_id(model["unk_token"])
        return number
    return model["unk_id"] if type(model.get("unk_id")) is int else None


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever a foreign tokenizer raises, as our own error."""
    try:
        yield
    except ModelError:
        raise
    except BaseException as fault:
        # A panic in the Rust code is no Exception; to stop the program is nobody's business but the user's.
        if not isinstance(fault, Exception) and type(fault).__name__ != "PanicException":
            raise
        reason = (str(fault).splitlines() or [type(fault).__name__])[0]
        raise ModelError(f"{what} ({reason:.200}); get its tokenizer.json again") from None
