"""bow-CNN (Johnson and Zhang 2015): filters over regions of a text, each region a set of words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from hilap.encoders.base import Json, check_share
from hilap.encoders.ragged import arrays, ends, loops_run
from hilap.encoders.text import Presets, TextEncoder, check_sizes, empty_weight, learning_rows, several
from hilap.encoders.token_rows import TokenBatch
from hilap.encoders.vocabulary import PADDING, UNKNOWN
from hilap.errors import require

_CHUNK = 1 << 21  # numbers of an intermediate result: 8 MB; above 32 MB, memory is mapped anew every time
POOLING = ("average", "max")
_PAPER: dict[str, Json] = {
    "regions": [20],
    "filters": 1000,
    "pools": 10,
    "pooling": "average",
    "dropout": 0.5,
    "max_words": 256,
    "vocabulary": 30_000,
}


class BowCNN(TextEncoder):
    """Every run of so many words is a region, seen as the set of its words; filters answer to regions.

    An answer is the sum of the filter's weights for the words in the region, each word once, with ReLU. A text's
    regions are shared out among the pools in their order, as evenly as can be, and each pool keeps the mean or the
    highest of its answers; so the vector still knows roughly where in the text something was said. A text shorter
    than a region is one region. Words that are not in the vocabulary say nothing.

    Parameters
    ----------
    preset
        `paper` (1,000 filters, regions of 20 words, 10 pools), or `light` (200 filters, 5 pools: several times as
        fast). Every other parameter that is None takes the preset's value.
    regions
        How many words a region has; several sizes get filters of their own.
    filters
        How many filters there are for each size.
    pools, pooling
        How many pools, and whether they keep the `average` (Johnson and Zhang's choice for topics) or the `max`.
    dropout
        The share of values dropped in training.
    max_words, vocabulary
        How many words of a text are read, and how many different ones are known.
    cache
        A folder to keep the word numbers of large blocks of texts in; None keeps them in memory.

    Examples
    --------
    >>> from hilap.corpus.examples import Examples
    >>> from hilap.taxonomy import Taxonomy
    >>> examples = Examples.of(Taxonomy.of({"Bars": []}), [["Bars"], []], texts=["craft beer", "a lawyer"])
    >>> encoder = BowCNN("light", filters=4, pools=3).fit(examples, generator=torch.Generator().manual_seed(0))
    >>> encoder(encoder.prepare(examples).batch(torch.tensor([0, 1]))).shape
    torch.Size([2, 12])
    """

    name = "bowcnn"
    PRESETS: ClassVar[Presets] = {"paper": _PAPER, "light": {**_PAPER, "filters": 200, "pools": 5}}

    def __init__(
        self,
        preset: str = "paper",
        *,
        regions: int | Iterable[int] | None = None,
        filters: int | None = None,
        pools: int | None = None,
        pooling: str | None = None,
        dropout: float | None = None,
        max_words: int | None = None,
        vocabulary: int | None = None,
        cache: str | Path | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "regions": regions,
            "filters": filters,
            "pools": pools,
            "pooling": pooling,
            "dropout": dropout,
            "max_words": max_words,
            "vocabulary": vocabulary,
        }
        super().__init__(preset, cache, given)
        chosen = self._chosen
        check_sizes(chosen, "filters", "pools")
        check_share("dropout", chosen["dropout"])
        require(chosen["pooling"] in POOLING, "pooling", "'average' or 'max'", chosen["pooling"])
        chosen["regions"] = several("regions", chosen["regions"], "how many words a region has")
        chosen["dropout"] = float(chosen["dropout"])

    def forward(self, batch: TokenBatch) -> Tensor:
        """(B, dim) what the pools keep: all filters of the first pool, then of the second; the first size first."""
        self.check_fitted()
        tokens = batch.tokens.masked_fill(batch.tokens == UNKNOWN, PADDING)
        of_sizes = self._slid if loops_run(self.weights[0]) else self._summed
        vectors: Tensor = self.dropout(torch.cat(of_sizes(tokens, batch.starts), dim=1))
        return vectors

    def _slid(self, tokens: Tensor, starts: Tensor) -> list[Tensor]:
        """(B, pools * filters) for each size of regions, with the compiled loops."""
        found = []
        for size, weight, bias in zip(self._chosen["regions"], self.weights, self.biases, strict=True):
            table, words = weight, tokens
            if torch.is_grad_enabled():
                table, names = _used(weight, F.pad(tokens, (0, 1), value=PADDING))
                words = names[tokens]
            how = (words, starts, size, self._chosen["pools"], self._chosen["pooling"] == "average")
            kept: Tensor = _Slide.apply(table, bias, *how)  # type: ignore[no-untyped-call]
            found.append(kept.flatten(1))
        return found

    def _summed(self, tokens: Tensor, starts: Tensor) -> list[Tensor]:
        """The same on any device, as sums over tables of regions."""
        before = _same_before(tokens, starts)
        tokens = F.pad(tokens, (0, 1), value=PADDING)
        many = max(1, _CHUNK // (self._chosen["filters"] * self._chosen["max_words"]))
        parts = [_part(tokens, before, starts[i : i + many + 1]) for i in range(0, len(starts) - 1, many)]
        found = []
        for size, weight, bias in zip(self._chosen["regions"], self.weights, self.biases, strict=True):
            table, names = _used(weight, tokens) if torch.is_grad_enabled() else (weight, None)
            answers = [self._pooled(part, table, bias, size, names) for part in parts]
            found.append(torch.cat(answers) if answers else weight.new_zeros(0, self._chosen["pools"] * len(bias)))
        return found

    def _pooled(self, part: _Part, table: Tensor, bias: Tensor, size: int, names: Tensor | None) -> Tensor:
        """(b, pools * filters) for some documents and one size of regions."""
        regions, back, counts = _regions(part, size)
        tokens = part.tokens if names is None else names[part.tokens]
        if names is None:
            summed = F.embedding_bag(tokens[regions], table, mode="sum")
        else:
            summed = _RegionSums.apply(table, tokens, regions, back)  # type: ignore[no-untyped-call]
        answers = F.relu(summed + bias)
        where, offsets = _pools(counts, self._chosen["pools"])
        mode = "mean" if self._chosen["pooling"] == "average" else "max"
        kept = F.embedding_bag(where, answers, offsets, mode=mode, include_last_offset=True)
        return kept.view(len(counts), -1)

    def _build(self, n_words: int) -> None:
        chosen = self._chosen
        self.weights = nn.ParameterList(empty_weight(n_words, chosen["filters"]) for _ in chosen["regions"])
        self.biases = nn.ParameterList(empty_weight(chosen["filters"]) for _ in chosen["regions"])
        self.dropout = nn.Dropout(chosen["dropout"])
        self.dim = chosen["filters"] * chosen["pools"] * len(chosen["regions"])

    def _draw(self, generator: torch.Generator) -> None:
        for size, weight, bias in zip(self._chosen["regions"], self.weights, self.biases, strict=True):
            bound = size**-0.5  # as many inputs of a filter are 1
            nn.init.uniform_(weight, -bound, bound, generator=generator)
            weight[PADDING] = 0
            weight[UNKNOWN] = 0
            nn.init.uniform_(bias, -bound, bound, generator=generator)


class _Slide(torch.autograd.Function):
    """(B, pools, filters) what the pools of each document keep: `hilap.encoders.sliding` as torch wants it."""

    @staticmethod
    def forward(
        ctx: Any, table: Tensor, bias: Tensor, words: Tensor, starts: Tensor, size: int, pools: int, average: bool
    ) -> Tensor:
        from hilap.encoders.sliding import pooled_regions

        wanted = any(ctx.needs_input_grad)
        n, filters = len(starts) - 1, len(bias)
        rows = int((starts.diff() - size + 1).clamp_min(1).sum()) if wanted and average else 0
        found = table.new_zeros(n, pools, filters)
        passed = torch.empty(rows, filters, dtype=torch.bool)
        best = torch.full((0 if average else n, pools, filters), -1, dtype=torch.int32)
        pooled_regions(size, *arrays(words, starts, table, bias, found, passed, best))
        ctx.save_for_backward(words, starts, passed, best)
        ctx.size, ctx.rows = size, len(table)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from hilap.encoders.sliding import gradient_of_regions

        words, starts, passed, best = ctx.saved_tensors
        grad = grads[0].contiguous()
        of_table, of_bias = grad.new_zeros(ctx.rows, grad.shape[2]), grad.new_zeros(grad.shape[2])
        gradient_of_regions(ctx.size, *arrays(words, starts, grad, passed, best, of_table, of_bias))
        return of_table, of_bias, None, None, None, None, None


@dataclass(frozen=True)
class _Part:
    """Some documents of a batch."""

    tokens: Tensor  # (m + 1,) the last is nothing
    before: Tensor  # (m,) where the same word stood last in the document, or -1, counted from the document's start
    starts: Tensor  # (b + 1,) from 0


def _part(tokens: Tensor, before: Tensor, starts: Tensor) -> _Part:
    first, last = int(starts[0]), int(starts[-1])
    return _Part(F.pad(tokens[first:last], (0, 1), value=PADDING), before[first:last], starts - first)


def _same_before(tokens: Tensor, starts: Tensor) -> Tensor:
    """(M,) where the same word stood last in the same document, counted from its start; -1 where it did not.

    A word that says nothing counts as having stood just before, so that it never is the first in its region.
    """
    lengths = starts.diff()
    document = torch.repeat_interleave(torch.arange(len(lengths), device=tokens.device), lengths)
    place = torch.arange(len(tokens), device=tokens.device) - starts[document]
    code = document * (int(tokens.max()) + 1 if len(tokens) else 1) + tokens
    order = torch.argsort(code, stable=True)
    again = (code[order[1:]] == code[order[:-1]]).nonzero().squeeze(1)
    before = torch.full_like(tokens, -1)
    before[order[again + 1]] = place[order[again]]
    return torch.where(tokens == PADDING, place, before)


def _regions(part: _Part, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which words each region has, and which regions each word is in.

    Returns (R, size) the words of each region, every word once and m for nothing; (m, size) the regions that each
    word counts in, and R for none; (b,) how many regions each document has.
    """
    device = part.tokens.device
    lengths = part.starts.diff()
    counts = (lengths - size + 1).clamp_min(1)
    first_region = ends(counts)
    documents = torch.arange(len(lengths), device=device)
    m, n_regions = len(part.before), int(first_region[-1])

    document = torch.repeat_interleave(documents, counts)
    begin = torch.arange(n_regions, device=device) - first_region[document]
    place = begin.unsqueeze(1) + torch.arange(size, device=device)
    word = part.starts[document].unsqueeze(1) + place
    before = F.pad(part.before, (0, 1))[word.clamp_max(m)]
    counts_here = (place < lengths[document].unsqueeze(1)) & (before < begin.unsqueeze(1))
    regions = torch.where(counts_here, word, m)

    document = torch.repeat_interleave(documents, lengths)
    place = torch.arange(m, device=device) - part.starts[document]
    begin = place.unsqueeze(1) - torch.arange(size, device=device)
    counts_there = (begin >= 0) & (begin < counts[document].unsqueeze(1)) & (begin > part.before.unsqueeze(1))
    back = torch.where(counts_there, first_region[document].unsqueeze(1) + begin, n_regions)
    return regions, back, counts


def _pools(counts: Tensor, pools: int) -> tuple[Tensor, Tensor]:
    """Which regions each pool of each document has: the j-th from floor(j n / pools) to ceil((j + 1) n / pools).

    Returns all of them one after the other, and (b * pools + 1,) where those of each pool start.
    """
    j = torch.arange(pools, device=counts.device)
    n = counts.unsqueeze(1)
    low, high = j * n // pools, ((j + 1) * n + pools - 1) // pools
    sizes = (high - low).flatten()
    first = (low + ends(counts)[:-1].unsqueeze(1)).flatten()
    offsets = ends(sizes)
    within = torch.arange(int(offsets[-1]), device=counts.device) - torch.repeat_interleave(offsets[:-1], sizes)
    return torch.repeat_interleave(first, sizes) + within, offsets


def _used(weight: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of the words of a batch, nothing first, and (n_words,) where each word's row is.

    Gradients then flow into these rows of the large weight, and everything else works on rows that lie together.
    """
    used = torch.unique(tokens)  # sorted, and nothing is always among them
    names = torch.zeros(len(weight), dtype=torch.long, device=tokens.device)
    names[used] = torch.arange(len(used), device=tokens.device)
    return learning_rows(weight, used), names


class _RegionSums(torch.autograd.Function):
    """(R, filters) the sum of the rows of each region's words.

    Torch's own backward pass adds every region to every word of it; here the gradient of each word of the text is
    summed up first, as fast as the forward pass, and added once.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, tokens: Tensor, regions: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(tokens, back)
        ctx.rows = len(table)
        return F.embedding_bag(tokens[regions], table, mode="sum")

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        tokens, back = ctx.saved_tensors
        of_words = F.embedding_bag(back, F.pad(grads[0], (0, 0, 0, 1)), mode="sum")
        of_table = grads[0].new_zeros(ctx.rows, grads[0].shape[1]).index_add_(0, tokens[:-1], of_words)
        return of_table, None, None, None
