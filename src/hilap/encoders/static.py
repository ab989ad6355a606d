"""Static vectors: the mean of the pretrained vectors of a text's pieces. The fast pretrained choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from hilap.corpus.examples import Examples
from hilap.encoders.base import (
    Encoder,
    Json,
    check_choice,
    check_rate,
    check_share,
    check_truth,
    check_whole,
    checked_options,
    texts_of,
)
from hilap.encoders.layers import MOST_WIDTH
from hilap.encoders.pieces import Pieces
from hilap.encoders.pooled import VectorLayers, checked_layers, read_json, some_rows
from hilap.encoders.rows import DenseRows, SparseBatch, SparseRows
from hilap.errors import CorpusError, ModelError, SettingError, require
from hilap.storage.content import read
from hilap.storage.tensors import tensors_of

if TYPE_CHECKING:
    from typing_extensions import Self

WORDLLAMA = "wordllama"
WEIGHTINGS = ("none", "idf", "sif")
MOST_PIECES = 5_000_000
_BLOCK, _TRIED = 4_096, 200  # texts at a time, and before anything is built
_SIF = 1e-3  # the constant a of Arora et al. (2017): a / (a + p)
_TENSORS = ("embeddings", "embedding.weight", "weight")
_PLACES = (("tokenizer.json", "model.safetensors"), ("tokenizers/*.json", "weights/*.safetensors"))


class Static(Encoder):
    """Texts as weighted means of the vectors of their pieces, through feed-forward layers.

    Parameters
    ----------
    vectors
        `wordllama` for those in the package of that name, or a folder with `tokenizer.json` and `model.safetensors`,
        as model2vec writes it; only read by `fit`, as a saved model brings its own.
    max_tokens
        How many pieces of a document are read.
    weighting
        What a piece weighs in the mean: all the same (`none`), 1 + ln((1 + n) / (1 + df)) (`idf`), or a / (a + p) with
        p its share of all pieces (`sif`); n, df and p of the training documents. With wordllama's vectors the plain
        mean did best on three sets of texts: what common pieces are worth is trained into them.
    tune
        Whether the vectors learn too; else documents become vectors once, before training.
    rate
        The share of the learning rate that the vectors learn with.
    standardise
        Whether the means get mean 0 and deviation 1 over training documents.
    hidden, dropout
        The layers, as for `MLP`; None for none.
    """

    name = "static"
    table: Tensor  # (V, D)
    weight: Tensor  # (V,)

    def __init__(
        self,
        vectors: str | Path = WORDLLAMA,
        *,
        max_tokens: int = 512,
        weighting: str = "none",
        tune: bool = False,
        rate: float = 0.1,
        standardise: bool = True,
        hidden: int | Iterable[int] | None = (500,),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        require(isinstance(vectors, (str, Path)) and bool(str(vectors)), "vectors", "'wordllama' or a folder", vectors)
        check_whole("max_tokens", max_tokens)
        check_choice("weighting", weighting, WEIGHTINGS)
        check_truth("tune", tune)
        check_rate("rate", rate)
        check_truth("standardise", standardise)
        check_share("dropout", dropout)
        self.vectors = str(vectors)
        self.max_tokens = max_tokens
        self.weighting = weighting
        self.tune = tune
        self.rate = float(rate)
        self.standardise = standardise
        self.hidden = checked_layers(hidden)
        self.dropout = float(dropout)
        self._pieces: Pieces | None = None

    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Read the vectors, count how common each piece is, and draw the weights of the layers."""
        texts = texts_of(examples, self.name)
        if not texts:
            raise CorpusError("the static encoder cannot learn from no texts; give it documents")
        description, table = read_vectors(self.vectors)
        try:
            pieces = Pieces(description, vocabulary=len(table), special=False)
            by_word = pieces.can_split_at_blanks(texts)
            pieces.rows(texts[:_TRIED], self.max_tokens)  # a tokenizer of other vectors is found out here
        except ModelError as fault:
            raise SettingError(f"vectors: {self.vectors}: {fault}") from None
        self._build(len(table), table.shape[1], pieces, by_word)
        with torch.no_grad():
            self.table.copy_(torch.from_numpy(table))
        self.weight.copy_(torch.from_numpy(self._weights(texts)))
        if self.standardise:
            some = some_rows(len(texts))
            self.vector_layers.measure(self._means([texts[i] for i in some]))
        self.vector_layers.draw(generator)
        return self

    def sibling(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Another member; vectors that do not learn are kept by the first one only."""
        if self.tune:
            return super().sibling(examples, generator=generator)
        other = type(self)(**checked_options(type(self), self.settings()))
        other._build(0, len(self.vector_layers.mean), None, False)
        other.vector_layers.load_state_dict(self.vector_layers.state_dict())
        other.vector_layers.draw(generator)
        return other

    def prepare(self, examples: Examples) -> DenseRows | SparseRows:
        """The means, or where vectors learn, the weights of the pieces."""
        self.check_fitted()
        texts = texts_of(examples, self.name)
        return SparseRows(self._shares(texts)) if self.tune else DenseRows(self._means(texts))

    def forward(self, batch: Tensor | SparseBatch) -> Tensor:
        """(B, dim) the last layer."""
        self.check_fitted()
        if isinstance(batch, SparseBatch):
            means = F.embedding_bag(
                batch.columns,
                self.table,
                batch.starts,
                mode="sum",
                per_sample_weights=batch.values,
                include_last_offset=True,
            )
        else:
            means = batch
        vectors: Tensor = self.vector_layers(means)
        return vectors

    def rates(self) -> dict[str, float]:
        """Vectors that learn do so slowly."""
        return {"table": self.rate} if self.tune else {}

    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values."""
        return {
            "vectors": self.vectors,
            "max_tokens": self.max_tokens,
            "weighting": self.weighting,
            "tune": self.tune,
            "rate": self.rate,
            "standardise": self.standardise,
            "hidden": [*self.hidden],
            "dropout": self.dropout,
        }

    def learned(self) -> dict[str, Json]:
        """The tokenizer and the size of the table."""
        self.check_fitted()
        pieces = self._pieces
        return {
            "tokenizer": None if pieces is None else pieces.description,
            "pieces": len(self.table),
            "width": self.table.shape[1],
            "by_word": self._by_word,
        }

    @classmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """An encoder of the same shape, ready for `load_state_dict`."""
        encoder = cls(**checked_options(cls, settings))
        count, width, by_word = (learned.get(key) for key in ("pieces", "width", "by_word"))
        if (
            type(count) is not int
            or not 0 <= count <= MOST_PIECES
            or type(width) is not int
            or not 1 <= width <= MOST_WIDTH
            or not isinstance(by_word, bool)
        ):
            raise ModelError("a static encoder has learned 'pieces', 'width' and 'by_word', but the model has not")
        description = learned.get("tokenizer")
        if (description is None) != (count == 0) or (encoder.tune and not count):
            raise ModelError("a static encoder has learned a 'tokenizer' with its pieces, but the model has not")
        pieces = None if description is None else Pieces(description, vocabulary=count, special=False)
        encoder._build(count, width, pieces, by_word)
        return encoder

    # -- inside -----------------------------------------------------------------------------------------------------

    def _build(self, count: int, width: int, pieces: Pieces | None, by_word: bool) -> None:
        for name in ("table", "weight"):  # a buffer may become a parameter when it is fitted again
            self._buffers.pop(name, None)
            self._parameters.pop(name, None)
        if self.tune:
            self.table = nn.Parameter(torch.empty(count, width))
        else:
            self.register_buffer("table", torch.empty(count, width))
        self.register_buffer("weight", torch.ones(count))
        self._pieces = pieces
        self._by_word = by_word
        if pieces is not None:
            pieces.split_at_blanks(by_word)
        self.vector_layers = VectorLayers(width, self.hidden, dropout=self.dropout)
        self.dim = self.vector_layers.dim

    def _blocks(self, texts: Sequence[str]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """The pieces of the texts and where each text starts, block by block; one empty block where there are none."""
        if self._pieces is None:
            raise ModelError("this static encoder keeps no vectors of its own; the network's first member prepares")
        for start in range(0, max(len(texts), 1), _BLOCK):
            rows = self._pieces.rows(texts[start : start + _BLOCK], self.max_tokens)
            yield rows.ids, rows.starts

    def _weights(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(V,) what each piece weighs, from the training texts."""
        count = len(self.table)
        if self.weighting == "none":
            return np.ones(count)
        tally = np.zeros(count, dtype=np.int64)
        for ids, starts in self._blocks(texts):
            if self.weighting == "idf":
                doc = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
                ids = np.unique(doc * count + ids) % count  # each piece of a text once
            tally += np.bincount(ids, minlength=count)
        if self.weighting == "idf":
            return 1 + np.log((1 + len(texts)) / (1 + tally))
        return _SIF / (_SIF + tally / max(int(tally.sum()), 1))

    def _shares(self, texts: Sequence[str]) -> sparse.csr_array:
        """(n, V) the share of each piece in a text's mean, in the order of the text, so that sums are always alike."""
        weight = self.weight.cpu().numpy().astype(np.float64)
        blocks = []
        for ids, starts in self._blocks(texts):
            doc = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
            total = np.bincount(doc, weight[ids], minlength=len(starts) - 1)
            shares = (weight[ids] / total[doc]).astype(np.float32)
            blocks.append(sparse.csr_array((shares, ids, starts), shape=(len(starts) - 1, len(weight))))
        return blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")

    def _means(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, D) the vectors of texts; zeros for one without pieces."""
        table = self.table.detach().cpu().numpy()
        found = [self._shares(texts[start : start + _BLOCK]) @ table for start in range(0, len(texts), _BLOCK)]
        return np.concatenate(found) if found else np.zeros((0, table.shape[1]), dtype=np.float32)


def read_vectors(source: str) -> tuple[dict[str, Any], NDArray[np.float32]]:
    """The tokenizer's description and the (V, D) vectors of its pieces, from a folder or the wordllama package."""
    tokenizer, weights = _files(_folder(source))
    try:
        tensors = tensors_of(read(weights, 1 << 34), weights)
    except ModelError as fault:
        raise SettingError(f"vectors: {fault}") from None
    table = next((tensors[name] for name in _TENSORS if name in tensors), None)
    if table is None or table.ndim != 2 or not table.is_floating_point() or not 1 <= len(table) <= MOST_PIECES:
        raise SettingError(f"vectors: {weights} holds no matrix called {' or '.join(map(repr, _TENSORS))}")
    full = table.float()
    # Newer model2vec folders share one vector among pieces (`mapping`), and weigh each piece (`weights`).
    mapping, shares = tensors.get("mapping"), tensors.get("weights")
    if mapping is not None:
        whole = mapping.ndim == 1 and mapping.dtype in (torch.int64, torch.int32) and len(mapping) <= MOST_PIECES
        if not whole or not len(mapping) or int(mapping.min()) < 0 or int(mapping.max()) >= len(full):
            raise SettingError(f"vectors: {weights}: 'mapping' does not fit the vectors; get it again")
        full = full[mapping.long()]
    if shares is not None:
        if shares.shape != full.shape[:1]:
            raise SettingError(f"vectors: {weights}: 'weights' does not fit the vectors; get it again")
        full = full * shares.float().unsqueeze(1)
    if not bool(full.isfinite().all()) or not full.shape[1]:
        raise SettingError(f"vectors: {weights} holds numbers that are none; get it again")
    return read_json(tokenizer, "vectors"), full.numpy()


def _folder(source: str) -> Path:
    if source == WORDLLAMA and not Path(source).is_dir():
        found = find_spec(WORDLLAMA)  # its files alone are wanted: nothing of it is imported
        if found is None or not found.submodule_search_locations:
            raise SettingError(
                "vectors: the package wordllama is not installed; pip install wordllama, or give a folder with "
                "tokenizer.json and model.safetensors"
            )
        return Path(next(iter(found.submodule_search_locations)))
    try:
        there = Path(source).is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        raise SettingError(f"vectors: there is no folder {source!r}; give one, or 'wordllama'")
    return Path(source)


def _files(folder: Path) -> tuple[Path, Path]:
    for patterns in _PLACES:
        found = [sorted(folder.glob(pattern)) for pattern in patterns]
        if all(found):
            for paths in found:
                if len(paths) > 1:
                    raise SettingError(f"vectors: {folder} holds several files {paths[0].name!r}, ...; one is needed")
            return found[0][0], found[1][0]
    raise SettingError(f"vectors: {folder} lacks tokenizer.json or model.safetensors; give a folder that has both")
