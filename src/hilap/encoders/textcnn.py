"""TextCNN (Kim 2014): filters over neighbouring words, the highest answer of each anywhere in the text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

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
        if not len(batch):
            return self.word_vectors.weight.new_zeros(0, self.dim)
        if not torch.is_grad_enabled():
            answers = self._predicting(batch)
        else:
            answers = self._looped(batch) if loops_run(self.word_vectors.weight) else self._learning(batch)
        highest: Tensor = self.dropout(F.relu(answers + torch.cat([*self.biases])))
        return highest

    def _looped(self, batch: TokenBatch) -> Tensor:
        """(B, dim) the highest answers before the bias, with gradients, by the compiled loops."""
        used, words = torch.unique(batch.tokens, return_inverse=True)
        vectors = learning_rows(self.word_vectors.weight, used)
        found = [
            _Highest.apply(vectors, weight.view(len(weight), span, -1), words, batch.starts)  # type: ignore[no-untyped-call]
            for span, weight in zip(self._chosen["kernels"], self.weights, strict=True)
        ]
        return torch.cat(found, dim=1)

    def _learning(self, batch: TokenBatch) -> Tensor:
        """The same on any device: one product of all windows with all filters of a span."""
        tokens, shapes, back = self._by_length(batch, self._chosen["filters"])
        vectors = F.pad(F.embedding(batch.tokens, self.word_vectors.weight), (0, 0, 0, 1))  # (M + 1, D) nothing is zero
        found = []
        for shape in shapes:
            answers = []
            for span, weight in zip(self._chosen["kernels"], self.weights, strict=True):
                windows = _windows(*shape, span, nothing=len(tokens) - 1)
                answers.append(F.linear(F.embedding(windows, vectors).flatten(2), weight).max(1).values)
            found.append(torch.cat(answers, dim=1))
        return torch.cat(found)[back]

    def _predicting(self, batch: TokenBatch) -> Tensor:
        """The same without gradients, each document by itself to the last bit.

        What a word adds to a filter's answer at each place of its span is worked out once for every different word of
        the batch; a position then adds up a few rows. There are several times fewer words than positions. A batch has
        so many words here that their rows are not at hand in the processor's cache, and `embedding_bag`, which fetches
        them ahead, is faster than the compiled loops.
        """
        tokens, shapes, back = self._by_length(batch, min(_GROUP, self._chosen["filters"]))
        used, names = torch.unique(tokens, return_inverse=True)
        vectors = F.embedding(used, self.word_vectors.weight)
        vectors[0] = 0  # nothing, which is always among the words and the first of them
        found = []
        for span, weight in zip(self._chosen["kernels"], self.weights, strict=True):
            rows = [names[_windows(*shape, span, nothing=len(tokens) - 1)] for shape in shapes]
            for row in rows:
                row.mul_(span).add_(torch.arange(span, device=row.device))
            for group in torch.split(weight, _GROUP):
                adds = _adds(vectors, group.view(len(group), span, -1))
                summed = (F.embedding_bag(row.flatten(0, 1), adds, mode="sum").view(*row.shape[:2], -1) for row in rows)
                found.append(torch.cat([answers.amax(1) for answers in summed]))
        return torch.cat(found, dim=1)[back]

    def _by_length(self, batch: TokenBatch, width: int) -> tuple[Tensor, list[tuple[Tensor, Tensor]], Tensor]:
        """The words, nothing behind them; where documents of like length start, and their lengths; the way back.

        So many documents are together that answers of so many filters take little memory.
        """
        lengths = batch.starts.diff()
        by_length = torch.argsort(lengths, stable=True)
        parts = torch.split(by_length, max(1, _CHUNK // (width * self._chosen["max_words"])))
        shapes = [(batch.starts[rows], lengths[rows]) for rows in parts]
        return F.pad(batch.tokens, (0, 1), value=PADDING), shapes, torch.argsort(by_length)

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


def _adds(vectors: Tensor, weight: Tensor) -> Tensor:
    """(words * span, filters) what each word adds to a filter's answer at each place of its span."""
    of_places = weight.transpose(0, 1).flatten(0, 1)  # (span * filters, D)
    return steady_linear(vectors, of_places, None).reshape(-1, len(weight))


class _Highest(torch.autograd.Function):
    """(B, filters) each filter's highest answer in each document: `hilap.encoders.windows` as torch wants it."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, words: Tensor, starts: Tensor) -> Tensor:
        from hilap.encoders.windows import highest_answers

        n, span = len(starts) - 1, weight.shape[1]
        highest, where = [], []
        for group in torch.split(weight, _GROUP):
            adds = _adds(vectors, group)
            highest.append(vectors.new_empty(n, len(group)))
            where.append(torch.empty(n, len(group), dtype=torch.int32))
            highest_answers(span, *arrays(adds, words, starts, highest[-1], where[-1]))
        ctx.save_for_backward(vectors, weight, words, starts, torch.cat(where, dim=1))
        return torch.cat(highest, dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from hilap.encoders.windows import gradient_of_answers

        vectors, weight, words, starts, where = ctx.saved_tensors
        of_vectors = torch.zeros_like(vectors if ctx.needs_input_grad[0] else vectors[:0])
        of_weight = torch.zeros_like(weight)
        gradient_of_answers(*arrays(grads[0], where, words, starts, vectors, weight, of_vectors, of_weight))
        return of_vectors if ctx.needs_input_grad[0] else None, of_weight, None, None
