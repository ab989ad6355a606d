"""Transformers: any text encoder in Hugging Face's format, fine-tuned, or frozen with each document encoded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
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
from hilap.encoders.pieces import PieceBatch, PieceRows, Pieces
from hilap.encoders.pooled import VectorLayers, checked_layers, some_rows
from hilap.encoders.pretrained import build, checked_config, find_folder, read_pretrained
from hilap.encoders.remembering import Memory
from hilap.encoders.rows import DenseRows
from hilap.errors import CorpusError, HilapError, ModelError, SettingError, require

if TYPE_CHECKING:
    from typing_extensions import Self

POOLINGS = ("mean", "cls", "max")
_STEP = 16  # a document is filled up to a multiple of so many pieces, whatever else is in its batch
_PIECES = 4_096  # pieces in one pass without gradients; more would need fresh memory in each


class Transformer(Encoder):
    """Texts through a pretrained transformer: one vector for each piece, pooled into one for the document.

    Frozen, every document is encoded once, before training, and only the layers behind learn; that trains in a
    fraction of the time. Not frozen, the whole transformer learns, slowly. A saved model has all of it: weights,
    configuration and tokenizer, so that it is opened without the hub. Remote code is never run.

    Parameters
    ----------
    model
        A folder with `config.json`, `tokenizer.json` and `model.safetensors`, or a name on the Hugging Face hub.
    download
        Whether a name may be fetched from the hub; else it must be on this machine already.
    pooling
        The mean of the pieces' vectors, the vector of the first piece (`cls`), or the maximum of each component.
    max_tokens
        How many pieces of a document are read, the special ones included.
    frozen
        Whether the transformer stays as it is.
    rate
        The share of the learning rate that a transformer learns with, where it is not frozen.
    standardise
        Whether the vectors of a frozen transformer get mean 0 and deviation 1 over training documents.
    hidden, dropout
        The layers behind it, as for `MLP`; None for none.
    cache
        A folder where vectors of a frozen transformer are kept from run to run, found by the text and the weights they
        come from. It is no part of a saved model.
    """

    name = "transformer"
    body: nn.Module | None

    def __init__(
        self,
        model: str | Path = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        download: bool = False,
        pooling: str = "mean",
        max_tokens: int = 256,
        frozen: bool = True,
        rate: float = 0.02,
        standardise: bool = True,
        hidden: int | Iterable[int] | None = (500,),
        dropout: float = 0.0,
        cache: str | Path | None = None,
    ) -> None:
        super().__init__()
        require(isinstance(model, (str, Path)) and bool(str(model)), "model", "a folder, or a name on the hub", model)
        check_choice("pooling", pooling, POOLINGS)
        check_whole("max_tokens", max_tokens)
        check_rate("rate", rate)
        check_share("dropout", dropout)
        for name, value in (("download", download), ("frozen", frozen), ("standardise", standardise)):
            check_truth(name, value)
        require(cache is None or isinstance(cache, (str, Path)), "cache", "a folder, or None", cache)
        self.model = str(model)
        self.download = download
        self.pooling = pooling
        self.max_tokens = max_tokens
        self.frozen = frozen
        self.rate = float(rate)
        self.standardise = standardise
        self.hidden = checked_layers(hidden)
        self.dropout = float(dropout)
        self.cache = None if cache is None else Path(cache)
        self.body = None
        self._memory = Memory(self.cache)
        self._config: dict[str, Json] | None = None
        self._pieces: Pieces | None = None

    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Read the pretrained weights, and draw those of the layers behind."""
        texts = texts_of(examples, self.name)
        if not texts:
            raise CorpusError("the transformer encoder cannot learn from no texts; give it documents")
        config, description, body = read_pretrained(find_folder(self.model, download=self.download))
        try:
            width = self._build(config, description, body)
        except ModelError as fault:
            raise SettingError(f"model: {self.model}: {fault}") from None
        self._finish(width)
        if self.frozen and self.standardise:
            self.vector_layers.measure(self._vectors([texts[i] for i in some_rows(len(texts))]))
        self.vector_layers.draw(generator)
        return self

    def sibling(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Another member; a frozen transformer is kept by the first one only."""
        if not self.frozen:
            return super().sibling(examples, generator=generator)
        other = type(self)(**checked_options(type(self), self.settings()))
        other._finish(len(self.vector_layers.mean))
        other.vector_layers.load_state_dict(self.vector_layers.state_dict())
        other.vector_layers.draw(generator)
        return other

    def prepare(self, examples: Examples) -> DenseRows | PieceRows:
        """The documents' vectors if frozen, else their pieces."""
        self.check_fitted()
        texts = texts_of(examples, self.name)
        return DenseRows(self._vectors(texts)) if self.frozen else self._rows(texts)

    def forward(self, batch: Tensor | PieceBatch) -> Tensor:
        """(B, dim) one vector for each document."""
        self.check_fitted()
        if not isinstance(batch, PieceBatch):
            pooled = batch
        elif torch.is_grad_enabled():
            pooled = self._pooled(batch.ids, batch.lengths, int(_filled(batch.lengths.max())))
        else:
            pooled = self._steady(batch)
        vectors: Tensor = self.vector_layers(pooled)
        return vectors

    def train(self, mode: bool = True) -> Self:
        """A frozen transformer has no dropout, in training either."""
        super().train(mode)
        if self.frozen and self.body is not None:
            self.body.eval()
        return self

    def rates(self) -> dict[str, float]:
        """A transformer that learns does so slowly."""
        return {} if self.frozen else {"body.": self.rate}

    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values, but for `cache`, which is no part of a model."""
        return {
            "model": self.model,
            "download": self.download,
            "pooling": self.pooling,
            "max_tokens": self.max_tokens,
            "frozen": self.frozen,
            "rate": self.rate,
            "standardise": self.standardise,
            "hidden": [*self.hidden],
            "dropout": self.dropout,
        }

    def learned(self) -> dict[str, Json]:
        """The configuration and the tokenizer, or for a member that has no transformer, the width alone."""
        self.check_fitted()
        pieces = self._pieces
        return {
            "config": self._config,
            "tokenizer": None if pieces is None else pieces.description,
            "width": len(self.vector_layers.mean),
        }

    @classmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """An encoder of the same shape, ready for `load_state_dict`. Neither hub nor folder is looked at."""
        encoder = cls(**checked_options(cls, settings))
        width, given = learned.get("width"), learned.get("config")
        if type(width) is not int or not 1 <= width <= MOST_WIDTH:
            raise ModelError("a transformer encoder has learned 'width', a whole number, but the model has not")
        if given is not None:
            config = checked_config(given)
            if encoder._build(config, learned.get("tokenizer"), build(config)) != width:
                raise ModelError(f"the transformer gives vectors of another width than {width}")
        elif not encoder.frozen:
            raise ModelError("a transformer encoder that is not frozen has learned a 'config', but the model has not")
        encoder._finish(width)
        return encoder

    # -- inside -----------------------------------------------------------------------------------------------------

    def _build(self, config: dict[str, Json], description: Any, body: nn.Module) -> int:
        """Put the parts together, and try them on the longest document that may come; the width of its vector."""
        size = body.get_input_embeddings().num_embeddings  # type: ignore[operator]
        self._pieces = Pieces(description, vocabulary=int(size), special=True)
        self._config = config
        pad = config.get("pad_token_id")
        self._pad = pad if type(pad) is int and 0 <= pad < size else 0
        self.body = body.requires_grad_(not self.frozen)
        self.body.train(self.training and not self.frozen)
        length = _filled(torch.tensor([self.max_tokens]))
        longest = torch.full((int(length),), (self._pad + 1) % int(size))
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                return int(self._pooled(longest, length, int(length)).shape[1])
        except HilapError:
            raise
        except Exception as fault:  # positions that the transformer has no vector for, or a shape that cannot be
            limit = config.get("max_position_embeddings", "unknown")
            raise ModelError(
                f"it cannot read max_tokens = {self.max_tokens}, filled up to {int(length)} pieces (its "
                f"max_position_embeddings: {limit}; {(str(fault).splitlines() or [''])[0]:.100}); give fewer"
            ) from None

    def _finish(self, width: int) -> None:
        self.vector_layers = VectorLayers(width, self.hidden, dropout=self.dropout)
        self.dim = self.vector_layers.dim

    def _rows(self, texts: Sequence[str]) -> PieceRows:
        if self._pieces is None:
            raise ModelError("this encoder keeps no transformer of its own; the network's first member prepares")
        rows = self._pieces.rows(texts, self.max_tokens)
        if (rows.lengths > 0).all():
            return rows
        # A text without any piece: one to fill, so that there is a vector to pool.
        empty = rows.starts[:-1][rows.lengths == 0]
        lengths = np.maximum(rows.lengths, 1)
        return PieceRows(np.insert(rows.ids, empty, self._pad), np.concatenate([[0], np.cumsum(lengths)]))

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, D) the pooled vectors of texts; each different text is encoded once."""
        if self.body is None or self._pieces is None:
            raise ModelError("this encoder keeps no transformer of its own; the network's first member prepares")
        about: dict[str, Any] = {"config": self._config, "tokenizer": self._pieces.description}
        about |= {"pooling": self.pooling, "max_tokens": self.max_tokens}
        return self._memory.vectors(texts, self._encode, self.body, about, len(self.vector_layers.mean))

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = self._rows(texts)
        assert self.body is not None  # noqa: S101 - `_rows` has said so already
        training = self.body.training
        self.body.eval()
        try:
            with torch.no_grad():
                return self._steady(rows.batch(np.arange(len(rows)))).numpy()
        finally:
            self.body.train(training)

    def _steady(self, batch: PieceBatch) -> Tensor:
        """(B, D) without gradients; a document's bits do not depend on what else is in the batch.

        Documents of one length, filled up, go together, so that the shape of a document's own computation depends on
        that document alone.
        """
        ends = batch.lengths.cumsum(0)
        filled = _filled(batch.lengths)
        result: Tensor | None = None
        for size in sorted({*filled.tolist()}):
            for some in (filled == size).nonzero().squeeze(1).split(max(1, _PIECES // size)):
                lengths = batch.lengths[some]
                gaps = (ends[some] - lengths.cumsum(0)).repeat_interleave(lengths)
                ids = batch.ids[gaps + torch.arange(len(gaps), device=gaps.device)]
                pooled = self._pooled(ids, lengths, size)
                result = pooled.new_empty(len(batch), pooled.shape[1]) if result is None else result
                result[some] = pooled
        return torch.zeros(0, len(self.vector_layers.mean)) if result is None else result

    def _pooled(self, ids: Tensor, lengths: Tensor, length: int) -> Tensor:
        """(B, D) the pooled vectors of documents, each filled up to this length."""
        assert self.body is not None  # noqa: S101 - batches of pieces come from `prepare`
        mask = torch.arange(length, device=ids.device) < lengths.unsqueeze(1)
        filled = ids.new_full(mask.shape, self._pad).masked_scatter_(mask, ids)
        hidden: Tensor = self.body(input_ids=filled, attention_mask=mask.long()).last_hidden_state
        if self.pooling == "cls":
            return hidden[:, 0]
        if self.pooling == "max":
            return hidden.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(1)
        weight = mask.unsqueeze(2).to(hidden.dtype)
        return (hidden * weight).sum(1) / weight.sum(1)


def _filled(lengths: Tensor) -> Tensor:
    """Lengths, filled up."""
    return lengths + -lengths % _STEP
