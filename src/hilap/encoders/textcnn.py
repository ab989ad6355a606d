"""TextCNN (Kim 2014): filters over neighbouring words, the highest answer of each anywhere in the text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap.encoders.base import Json, check_share
from hilap.encoders.ragged import arrays, loops_run, steady_linear
from hilap.encoders.text import (
    Presets,
    TextEncoder,
    WordVectors,
    check_sizes,
    check_vectors,
    empty_weight,
    learning_rows,
    several,
)
from hilap.encoders.token_rows import TokenBatch
from hilap.encoders.vocabulary import PADDING

_CHUNK = 1 << 21  # numbers of an intermediate result: 8 MB; above 32 MB, memory is mapped anew every time
_GROUP = 100  # filters at a time, so that their table of all words of a batch stays small

_PAPER: dict[str, Json] = {
    "kernels": [3, 4, 5],
    "filters": 1000,
    "dropout": 0.5,
    "vectors": None,
    "tune_vectors": True,
    "dimensions": 50,
    "max_words": 256,
    "vocabulary": 30_000,
}


class TextCNN(TextEncoder):
    """Filters over three, four and five neighbouring words, each reduced to its highest answer, with dropout.

    A text is followed and preceded by so much nothing that every word is seen at every place of a filter.

    Parameters
    ----------
    preset
        `paper` (1,000 filters of each size), or `light` (100 of each, and 128 words of a text). Every other
        parameter that is None takes the preset's value.
    kernels
        How many words the filters span.
    filters
        How many filters there are of each span.
    dropout
        The share of values dropped in training.
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
    >>> examples = Examples.of(Taxonomy.of({"Bars": []}), [["Bars"], []], texts=["craft beer", "a lawyer"])
    >>> encoder = TextCNN("light", filters=4).fit(examples, generator=torch.Generator().manual_seed(0))
    >>> encoder(encoder.prepare(examples).batch(torch.tensor([0, 1]))).shape
    torch.Size([2, 12])
    """

    name = "textcnn"
    PRESETS: ClassVar[Presets] = {"paper": _PAPER, "light": {**_PAPER, "filters": 100, "max_words": 128}}

    def __init__(
        self,
        preset: str = "paper",
        *,
        kernels: int | Iterable[int] | None = None,
        filters: int | None = None,
        dropout: float | None = None,
        vectors: str | Path | None = None,
        tune_vectors: bool | None = None,
        dimensions: int | None = None,
        max_words: int | None = None,
        vocabulary: int | None = None,
        cache: str | Path | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "kernels": kernels,
            "filters": filters,
            "dropout": dropout,
            "vectors": vectors,
            "tune_vectors": tune_vectors,
            "dimensions": dimensions,
            "max_words": max_words,
            "vocabulary": vocabulary,
        }
        super().__init__(preset, cache, given)
        chosen = self._chosen
        check_sizes(chosen, "filters")
        check_share("dropout", chosen["dropout"])
        check_vectors(chosen)
        chosen["kernels"] = several("kernels", chosen["kernels"], "how many words filters span")
        chosen["dropout"] = float(chosen["dropout"])

    def forward(self, batch: TokenBatch) -> Tensor:
        """(B, dim) the highest answers, filters of the first span first."""
        self.check_fitted()
        answers = (self._slid if loops_run(batch.tokens) else self._gathered)(batch)
        highest: Tensor = self.dropout(F.relu(answers + torch.cat([*self.biases])))
        return highest

    def _slid(self, batch: TokenBatch) -> Tensor:
        """(B, dim) the highest answers before the bias, with the compiled loops."""
        used, names = torch.unique(batch.tokens, return_inverse=True)
        vectors = learning_rows(self.word_vectors.weight, used)
        shape = (names, batch.starts)
        found = [
            _Highest.apply(vectors, weight.view(len(weight), span, -1), *shape)  # type: ignore[no-untyped-call]
            for span, weight in zip(self._chosen["kernels"], self.weights, strict=True)
        ]
        return torch.cat(found, dim=1)

    def _gathered(self, batch: TokenBatch) -> Tensor:
        """The same on any device: one product of all windows with all filters of a span."""
        if not len(batch):
            return self.word_vectors.weight.new_zeros(0, self.dim)
        tokens = F.pad(batch.tokens, (0, 1), value=PADDING)  # (M + 1,) the last is nothing
        lengths = batch.starts.diff()
        by_length = torch.argsort(lengths, stable=True)
        parts = torch.split(by_length, max(1, _CHUNK // (self._chosen["filters"] * self._chosen["max_words"])))
        vectors = F.embedding(tokens, self.word_vectors.weight, padding_idx=PADDING)  # (M + 1, D)
        found = []
        for rows in parts:
            answers = []
            for span, weight in zip(self._chosen["kernels"], self.weights, strict=True):
                windows = _windows(batch.starts[rows], lengths[rows], span, nothing=len(tokens) - 1)
                seen = F.embedding(windows, vectors).view(windows.shape[0] * windows.shape[1], -1)
                of_windows = steady_linear(seen, weight, None).view(*windows.shape[:2], -1)
                answers.append(of_windows.max(1).values)
            found.append(torch.cat(answers, dim=1))
        return torch.cat(found)[torch.argsort(by_length)]

    def _build(self, n_words: int) -> None:
        chosen = self._chosen
        self.word_vectors = WordVectors(n_words, chosen["dimensions"], tuned=chosen["tune_vectors"])
        self.weights = nn.ParameterList(
            empty_weight(chosen["filters"], kernel * chosen["dimensions"]) for kernel in chosen["kernels"]
        )
        self.biases = nn.ParameterList(empty_weight(chosen["filters"]) for _ in chosen["kernels"])
        self.dropout = nn.Dropout(chosen["dropout"])
        self.dim = chosen["filters"] * len(chosen["kernels"])

    def _draw(self, generator: torch.Generator) -> None:
        self.word_vectors.draw(generator, self.words, self._chosen["vectors"])
        for weight, bias in zip(self.weights, self.biases, strict=True):
            bound = weight.shape[1] ** -0.5
            nn.init.uniform_(weight, -bound, bound, generator=generator)
            nn.init.uniform_(bias, -bound, bound, generator=generator)


def _windows(starts: Tensor, lengths: Tensor, kernel: int, *, nothing: int) -> Tensor:
    """(b, n, kernel) which words each filter position sees; documents with fewer positions repeat their last one.

    A position twice does not change which answer is the highest.
    """
    # A document without words has the positions where a filter sees nothing; one of them says it all.
    last = (lengths + kernel - 2).clamp_min(0)
    n = int(last.max()) + 1
    device = lengths.device
    position = torch.minimum(torch.arange(n, device=device), last.unsqueeze(1))
    place = position.unsqueeze(2) + torch.arange(kernel, device=device) - (kernel - 1)  # in the document
    inside = (place >= 0) & (place < lengths[:, None, None])
    return torch.where(inside, place + starts[:, None, None], nothing)


class _Highest(torch.autograd.Function):
    """(B, filters) each filter's highest answer in each document: `hilap.encoders.windows` as torch wants it."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, words: Tensor, starts: Tensor) -> Tensor:
        from hilap.encoders.windows import highest_answers

        n, span = len(starts) - 1, weight.shape[1]
        highest, where = [], []
        for group in torch.split(weight, _GROUP):
            of_places = group.transpose(0, 1).flatten(0, 1)  # (span * g, D)
            adds = steady_linear(vectors, of_places, None).view(-1, span, len(group))
            highest.append(vectors.new_empty(n, len(group)))
            where.append(torch.empty(n, len(group), dtype=torch.int32))
            highest_answers(*arrays(adds, words, starts, highest[-1], where[-1]))
        ctx.save_for_backward(vectors, weight, words, starts, torch.cat(where, dim=1))
        return torch.cat(highest, dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from hilap.encoders.windows import gradient_of_answers

        vectors, weight, words, starts, where = ctx.saved_tensors
        of_vectors = torch.zeros_like(vectors if ctx.needs_input_grad[0] else vectors[:0])
        of_weight = torch.zeros_like(weight)
        gradient_of_answers(*arrays(grads[0], where, words, starts, vectors, weight, of_vectors, of_weight))
        return of_vectors if ctx.needs_input_grad[0] else None, of_weight, None, None
