"""HAN (Yang et al. 2016): words make sentences, sentences make a text, with attention at both."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap.encoders.base import Json, check_share
from hilap.encoders.ragged import Attention, RaggedGRU
from hilap.encoders.text import Presets, TextEncoder, WordVectors, check_sizes, check_vectors, learning_rows
from hilap.encoders.token_rows import TokenBatch

_CHUNK = 1 << 21  # numbers of an intermediate result: 8 MB; above 32 MB, memory is mapped anew every time
_PAPER: dict[str, Json] = {
    "hidden": 50,
    "dropout": 0.0,
    "sentence_words": 50,
    "vectors": None,
    "tune_vectors": True,
    "dimensions": 50,
    "max_words": 256,
    "vocabulary": 30_000,
}


class HAN(TextEncoder):
    """A bidirectional GRU over the words of each sentence and one over the sentences, each followed by attention.

    A text without words is the zero vector.

    Parameters
    ----------
    preset
        `paper` (states of 50 in each direction, as Yang et al. have them), or `light` (states of 25, the first 128
        words). Every other parameter that is None takes the preset's value.
    hidden
        The width of the states of each GRU in each direction; a text's vector is twice as wide.
    dropout
        The share of values of a text's vector dropped in training.
    sentence_words
        How many words a sentence has at most; longer ones are cut into pieces.
    vectors, tune_vectors, dimensions
        A file of word vectors in GloVe's text format to start from, whether they are learned further, and their
        width. The file is needed by `fit` alone.
    max_words, vocabulary
        How many words of a text are read, and how many different ones are known.
    cache
        A folder to keep the word numbers of large blocks of texts in; None keeps them in memory.

    Examples
    --------
    >>> from hilap.corpus.examples import Examples
    >>> from hilap.taxonomy import Taxonomy
    >>> examples = Examples.of(Taxonomy.of({"Bars": []}), [["Bars"], []], texts=["Beer. And rum.", "a lawyer"])
    >>> encoder = HAN("light", hidden=4).fit(examples, generator=torch.Generator().manual_seed(0))
    >>> encoder(encoder.prepare(examples).batch(torch.tensor([0, 1]))).shape
    torch.Size([2, 8])
    """

    name = "han"
    PRESETS: ClassVar[Presets] = {
        "paper": _PAPER,
        "light": {**_PAPER, "hidden": 25, "sentence_words": 25, "max_words": 128},
    }

    def __init__(
        self,
        preset: str = "paper",
        *,
        hidden: int | None = None,
        dropout: float | None = None,
        sentence_words: int | None = None,
        vectors: str | Path | None = None,
        tune_vectors: bool | None = None,
        dimensions: int | None = None,
        max_words: int | None = None,
        vocabulary: int | None = None,
        cache: str | Path | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "hidden": hidden,
            "dropout": dropout,
            "sentence_words": sentence_words,
            "vectors": vectors,
            "tune_vectors": tune_vectors,
            "dimensions": dimensions,
            "max_words": max_words,
            "vocabulary": vocabulary,
        }
        super().__init__(preset, cache, given)
        chosen = self._chosen
        check_sizes(chosen, "hidden", "sentence_words")
        check_share("dropout", chosen["dropout"])
        check_vectors(chosen)
        chosen["dropout"] = float(chosen["dropout"])

    def forward(self, batch: TokenBatch) -> Tensor:
        """(B, dim) the attended mean of the sentences."""
        self.check_fitted()
        many = max(1, _CHUNK // (3 * self._chosen["hidden"] * self._chosen["max_words"]))
        if torch.is_grad_enabled() or len(batch) <= many:
            return self._encoded(batch)
        return torch.cat([self._encoded(batch.part(i, i + many)) for i in range(0, len(batch), many)])

    def _encoded(self, batch: TokenBatch) -> Tensor:
        used, names = torch.unique(batch.tokens, return_inverse=True)
        vectors = F.embedding(names, learning_rows(self.word_vectors.weight, used))  # (M, D)
        words, sentences = _shape(batch)
        of_sentences = self.word_attention(self.word_gru(vectors, words), words)  # (S, 2H)
        some = sentences[sentences > 0]
        states = self.sentence_gru(of_sentences, some)
        of_texts: Tensor = self.dropout(self.sentence_attention(states, sentences))
        return of_texts

    def _longest_sentence(self) -> int | None:
        longest: int = self._chosen["sentence_words"]
        return longest

    def _build(self, n_words: int) -> None:
        chosen = self._chosen
        hidden = chosen["hidden"]
        self.word_vectors = WordVectors(n_words, chosen["dimensions"], tuned=chosen["tune_vectors"])
        self.word_gru = RaggedGRU(chosen["dimensions"], hidden)
        self.word_attention = Attention(2 * hidden)
        self.sentence_gru = RaggedGRU(2 * hidden, hidden)
        self.sentence_attention = Attention(2 * hidden)
        self.dropout = nn.Dropout(chosen["dropout"])
        self.dim = 2 * hidden

    def _draw(self, generator: torch.Generator) -> None:
        self.word_vectors.draw(generator, self.words, self._chosen["vectors"])
        for part in (self.word_gru, self.word_attention, self.sentence_gru, self.sentence_attention):
            part.draw(generator)


def _shape(batch: TokenBatch) -> tuple[Tensor, Tensor]:
    """(S,) how many words each sentence has, and (B,) how many sentences each text has."""
    begins = batch.begins if batch.begins is not None else batch.tokens.new_zeros(0, dtype=torch.bool)
    at = begins.nonzero().squeeze(1)
    words = torch.diff(at, append=at.new_tensor([len(batch.tokens)]))
    so_far = F.pad(begins.cumsum(0), (1, 0))[batch.starts]
    return words, so_far.diff()
