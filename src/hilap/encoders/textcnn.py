"""TextCNN (Kim 2014): filters over neighbouring words, the highest answer of each anywhere in the text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap.encoders.base import Json, check_share
from hilap.encoders.ragged import steady_linear
from hilap.encoders.text import Presets, TextEncoder, WordVectors, check_sizes, check_vectors, empty_weight, several
from hilap.encoders.token_rows import TokenBatch
from hilap.encoders.vocabulary import PADDING

_CHUNK = 1 << 21  # numbers of an intermediate result: 8 MB; above 32 MB, memory is mapped anew every time
_GROUP = 100  # filters at a time in predicting, so that their table of all words of a batch stays small
_Shapes = list[tuple[Tensor, Tensor]]
"""Where documents of about the same length start, and their lengths."""

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
        tokens = F.pad(batch.tokens, (0, 1), value=PADDING)  # (M + 1,) the last is nothing
        lengths = batch.starts.diff()
        by_length = torch.argsort(lengths, stable=True)
        width = self._chosen["filters"] if torch.is_grad_enabled() else min(_GROUP, self._chosen["filters"])
        parts = torch.split(by_length, max(1, _CHUNK // (width * self._chosen["max_words"])))
        shapes = [(batch.starts[rows], lengths[rows]) for rows in parts]
        answers = self._learning(tokens, shapes) if torch.is_grad_enabled() else self._predicting(tokens, shapes)
        bias = torch.cat([*self.biases])
        highest: Tensor = self.dropout(F.relu(answers[torch.argsort(by_length)] + bias))
        return highest

    def _learning(self, tokens: Tensor, shapes: _Shapes) -> Tensor:
        """(B, dim) the highest answers, with gradients: one product of all positions with all filters of a span."""
        vectors = F.embedding(tokens, self.word_vectors.weight, padding_idx=PADDING)  # (M + 1, D)
        found = []
        for starts, lengths in shapes:
            answers = []
            for kernel, weight in zip(self._chosen["kernels"], self.weights, strict=True):
                windows = _windows(starts, lengths, kernel, nothing=len(tokens) - 1)
                answers.append(_Highest.apply(vectors, weight, windows))  # type: ignore[no-untyped-call]
            found.append(torch.cat(answers, dim=1))
        return torch.cat(found)

    def _predicting(self, tokens: Tensor, shapes: _Shapes) -> Tensor:
        """(B, dim) the same without gradients, each document by itself to the last bit.

        What a word adds to a filter's answer at each place of its span is worked out once for every different word of
        the batch; a position then adds up a few rows. There are several times fewer words than positions.
        """
        used, names = torch.unique(tokens, return_inverse=True)
        vectors = F.embedding(used, self.word_vectors.weight)
        found = []
        for kernel, weight in zip(self._chosen["kernels"], self.weights, strict=True):
            rows = [names[_windows(*shape, kernel, nothing=len(tokens) - 1)] for shape in shapes]
            for row in rows:
                row.mul_(kernel).add_(torch.arange(kernel, device=row.device))
            for group in torch.split(weight, _GROUP):
                of_places = group.view(len(group), kernel, -1).transpose(0, 1).flatten(0, 1)  # (kernel * g, D)
                adds = steady_linear(vectors, of_places, None).reshape(-1, len(group))  # (words * kernel, g)
                summed = (F.embedding_bag(row.flatten(0, 1), adds, mode="sum").view(*row.shape[:2], -1) for row in rows)
                found.append(torch.cat([answers.amax(1) for answers in summed]))
        return torch.cat(found, dim=1)

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
    """The highest answers, with a backward pass that looks at the positions where they are and at no other.

    Of the n answers of a filter one has a gradient, so the usual backward products are with matrices of zeros.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, windows: Tensor) -> Tensor:
        b, n, _ = windows.shape
        highest, where = F.linear(F.embedding(windows, vectors).view(b * n, -1), weight).view(b, n, -1).max(1)
        ctx.save_for_backward(vectors, weight, windows, where)
        return highest

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, None]:
        vectors, weight, windows, where = ctx.saved_tensors
        b, n, kernel = windows.shape
        grad = grads[0].unsqueeze(2)  # (b, filters, 1)
        row = (where + n * torch.arange(b, device=where.device).unsqueeze(1)).flatten()  # (b * filters,) of b * n
        seen = F.embedding(windows, vectors).view(b * n, -1)
        of_weight = (seen[row].view(b, len(weight), -1) * grad).sum(0)
        if not ctx.needs_input_grad[0]:
            return None, of_weight, None
        of_seen = torch.zeros_like(seen).index_add_(0, row, (grad * weight).view(len(row), -1))
        of_vectors = torch.zeros_like(vectors)
        of_vectors.index_add_(0, windows.flatten(), of_seen.view(b * n * kernel, -1))
        return of_vectors, of_weight, None
