"""Deep graph CNN (Peng et al. 2018): a text as a graph of words, filters over neighbourhoods in it.

Hao Peng, Jianxin Li, Yu He, Yaopeng Liu, Mengjiao Bao, Lihong Wang, Yangqiu Song and Qiang Yang, "Large-scale
hierarchical text classification with recursively regularized deep graph-CNN", WWW 2018. Words that stand in one window
are neighbours; the most frequent words of a text and what lies around each make a grid of words, whose rows the first
layer reduces to one vector each; further layers look at runs of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from hilap.corpus.examples import Examples
from hilap.encoders.base import Json, Rows, check_share, check_truth
from hilap.encoders.ragged import steady_linear
from hilap.encoders.text import (
    Presets,
    TextEncoder,
    WordVectors,
    check_sizes,
    check_vectors,
    empty_weight,
    learning_rows,
)
from hilap.encoders.token_rows import TokenRows
from hilap.encoders.vocabulary import FIRST, PADDING
from hilap.errors import SettingError, require

_POOL = 2
_PAPER: dict[str, Json] = {
    "nodes": 96,
    "neighbours": 10,
    "window": 3,
    "maps": [64, 96, 96],
    "span": 5,
    "hidden": [256, 96],
    "dropout": 0.5,
    "stop_words": True,
    "vectors": None,
    "tune_vectors": True,
    "dimensions": 50,
    "max_words": 256,
    "vocabulary": 30_000,
}


class GridRows:
    """A block of texts as grids of word numbers, made when a batch is cut out: nothing but the words is kept.

    Parameters
    ----------
    rows
        The words.
    skip
        (V,) which are no nodes.
    nodes, neighbours, window
        The shape of a grid, and how near words must stand.
    """

    def __init__(self, rows: TokenRows, skip: NDArray[np.bool_], nodes: int, neighbours: int, window: int) -> None:
        self.rows = rows
        self.skip = skip
        self.shape = (nodes, neighbours)
        self.window = window

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Rows) -> Tensor:
        """(B, N, g) the grids of these texts."""
        from hilap.encoders.graphs import neighbourhoods

        words = self.rows.batch(rows)
        grids = np.full((len(words), *self.shape), PADDING, dtype=np.int64)
        neighbourhoods(words.tokens.numpy(), words.starts.numpy(), self.skip, self.window, grids)
        return torch.from_numpy(grids)


class WordGraph(TextEncoder):
    """The neighbourhoods of a text's most frequent words, through filters, pools and layers.

    Parameters
    ----------
    preset
        `paper` (the sizes of the published program), or `light` (half the grid: four times as fast). Every other
        parameter that is None takes the preset's value.
    nodes, neighbours
        How many words of a text are looked at, and how many words their neighbourhoods have, themselves included.
    window
        Words are neighbours if they stand within so many words of each other.
    maps
        The filters of each layer. The first sees one neighbourhood, the others `span` neighbouring rows; after each
        the larger of every two rows is kept.
    span
        See above.
    hidden, dropout
        The layers after the filters, and the share of values dropped in training after each.
    stop_words
        Whether English function words are left out of the graph.
    vectors, tune_vectors, dimensions
        A file of word vectors in GloVe's text format to start from, whether they are learned further, and their width.
    max_words, vocabulary
        How many words of a text are read, and how many different ones are known.
    cache
        A folder to keep the word numbers of large blocks of texts in; None keeps them in memory.

    Examples
    --------
    >>> from hilap.taxonomy import Taxonomy
    >>> examples = Examples.of(Taxonomy.of({"Bars": []}), [["Bars"], []], texts=["craft beer bar", "a lawyer"])
    >>> encoder = WordGraph("light", hidden=[8]).fit(examples, generator=torch.Generator().manual_seed(0))
    >>> [encoder.words[number - 2] for number in encoder.prepare(examples).batch([0])[0, 0, :3]]
    ['craft', 'beer', 'bar']
    >>> encoder(encoder.prepare(examples).batch([0, 1])).shape
    torch.Size([2, 8])
    """

    name = "wordgraph"
    PRESETS: ClassVar[Presets] = {"paper": _PAPER, "light": {**_PAPER, "nodes": 48, "neighbours": 5}}

    def __init__(
        self,
        preset: str = "paper",
        *,
        nodes: int | None = None,
        neighbours: int | None = None,
        window: int | None = None,
        maps: Iterable[int] | None = None,
        span: int | None = None,
        hidden: Iterable[int] | None = None,
        dropout: float | None = None,
        stop_words: bool | None = None,
        vectors: str | Path | None = None,
        tune_vectors: bool | None = None,
        dimensions: int | None = None,
        max_words: int | None = None,
        vocabulary: int | None = None,
        cache: str | Path | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "nodes": nodes,
            "neighbours": neighbours,
            "window": window,
            "maps": maps,
            "span": span,
            "hidden": hidden,
            "dropout": dropout,
            "stop_words": stop_words,
            "vectors": vectors,
            "tune_vectors": tune_vectors,
            "dimensions": dimensions,
            "max_words": max_words,
            "vocabulary": vocabulary,
        }
        super().__init__(preset, cache, given)
        chosen = self._chosen
        check_sizes(chosen, "nodes", "neighbours", "window", "span")
        for name in ("maps", "hidden"):
            chosen[name] = _widths(name, chosen[name])
        check_share("dropout", chosen["dropout"])
        check_truth("stop_words", chosen["stop_words"])
        check_vectors(chosen)
        chosen["dropout"] = float(chosen["dropout"])
        self._heights()

    def prepare(self, examples: Examples) -> GridRows:  # type: ignore[override]
        """The texts as grids of words."""
        skip = np.zeros(len(self.words) + FIRST, dtype=bool)
        skip[:FIRST] = True  # nothing, and what is not known
        if self._chosen["stop_words"]:
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

            skip[FIRST:] = [word in ENGLISH_STOP_WORDS for word in self.words]
        chosen = self._chosen
        return GridRows(super().prepare(examples), skip, chosen["nodes"], chosen["neighbours"], chosen["window"])

    def forward(self, batch: Tensor) -> Tensor:
        """(B, dim) the last layer."""
        self.check_fitted()
        used, names = torch.unique(batch, return_inverse=True)
        vectors = F.embedding(names, learning_rows(self.word_vectors.weight, used))  # (B, N, g, D)
        rows = vectors.flatten(2)
        for number, (weight, bias) in enumerate(zip(self.filters, self.filter_biases, strict=True)):
            seen = rows if number == 0 else rows.unfold(1, self._chosen["span"], 1).flatten(2)  # (B, n, C * span)
            answers = F.relu(steady_linear(seen.flatten(0, 1), weight, bias)).view(len(batch), seen.shape[1], -1)
            even = answers.shape[1] - answers.shape[1] % _POOL
            rows = answers[:, :even].view(len(batch), -1, _POOL, answers.shape[2]).amax(2)
        found = rows.flatten(1)
        for weight, bias in zip(self.layers, self.layer_biases, strict=True):
            found = self.dropout(F.relu(steady_linear(found, weight, bias)))
        return found

    def _heights(self) -> list[int]:
        """How many rows are left after each layer of filters; an error where none is."""
        heights, height = [], self._chosen["nodes"]
        for number in range(len(self._chosen["maps"])):
            height = (height - (self._chosen["span"] - 1 if number else 0)) // _POOL
            heights.append(height)
        if heights[-1] < 1:
            raise SettingError(
                f"{len(heights)} layers of filters over {self._chosen['span']} rows leave nothing of "
                f"{self._chosen['nodes']} nodes; give more nodes, or fewer maps"
            )
        return heights

    def _build(self, n_words: int) -> None:
        chosen = self._chosen
        self.word_vectors = WordVectors(n_words, chosen["dimensions"], tuned=chosen["tune_vectors"])
        widths = [chosen["neighbours"] * chosen["dimensions"], *(chosen["span"] * n for n in chosen["maps"][:-1])]
        self.filters = nn.ParameterList(empty_weight(n, w) for n, w in zip(chosen["maps"], widths, strict=True))
        self.filter_biases = nn.ParameterList(empty_weight(n) for n in chosen["maps"])
        sizes = [self._heights()[-1] * chosen["maps"][-1], *chosen["hidden"]]
        self.layers = nn.ParameterList(empty_weight(n, w) for w, n in pairwise(sizes))
        self.layer_biases = nn.ParameterList(empty_weight(n) for n in sizes[1:])
        self.dropout = nn.Dropout(chosen["dropout"])
        self.dim = sizes[-1]

    def _draw(self, generator: torch.Generator) -> None:
        self.word_vectors.draw(generator, self.words, self._chosen["vectors"])
        for weight in (*self.filters, *self.layers):
            nn.init.kaiming_uniform_(weight, nonlinearity="relu", generator=generator)
        for bias in (*self.filter_biases, *self.layer_biases):
            nn.init.zeros_(bias)


def _widths(name: str, value: Any) -> tuple[int, ...]:
    widths = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    good = bool(widths) and all(type(n) is int and 1 <= n <= 100_000 for n in widths)
    require(good, name, "one or several whole numbers above 0", value)
    return widths


__all__ = ["GridRows", "WordGraph"]
