"""Documents as the rows of a matrix: TF-IDF of texts, or features with nothing missing. For systems without layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from hilap.corpus import Examples
from hilap.encoders import MLP, Encoder, TfIdf, restore
from hilap.encoders.base import checked_options
from hilap.encoders.rows import DenseRows, SparseRows
from hilap.errors import ModelError, SettingError

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Self

_NO_LAYERS = {"hidden": (1,)}  # the encoders' rows are wanted, not their layers
_ROW_OPTIONS: dict[type[Encoder], tuple[str, ...]] = {
    TfIdf: ("max_words", "max_features", "min_df", "bigrams", "sublinear"),
    MLP: ("standardise",),
}


class DocumentRows:
    """Turns documents into rows, and remembers how.

    Parameters
    ----------
    options
        For texts `max_words`, `max_features`, `min_df`, `bigrams` and `sublinear`, as of the encoder `tfidf`; for
        features `standardise`, as of `mlp`. None for the defaults.

    Examples
    --------
    >>> from hilap.taxonomy import Taxonomy
    >>> examples = Examples.of(Taxonomy.of({"A": []}), [["A"], []], features=np.array([[1.0, np.nan], [3.0, 2.0]]))
    >>> DocumentRows({"standardise": False}).fit(examples).matrix(examples).toarray().tolist()
    [[1.0, 0.0], [3.0, 0.0]]
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = dict(options or {})

    def check(self) -> Self:
        """Raise an error where no kind of document has such options."""
        faults = []
        for kind in _ROW_OPTIONS:
            try:
                self._made(kind)
            except SettingError as fault:
                faults.append(fault)
        if len(faults) == len(_ROW_OPTIONS):
            raise faults[0]
        return self

    def fit(self, examples: Examples) -> Self:
        """Count terms, or take means and deviations, of the training documents."""
        kind = TfIdf if examples.features is None else MLP
        self._encoder: Encoder = self._made(kind).fit(examples, generator=torch.Generator().manual_seed(0))
        return self

    def matrix(self, examples: Examples) -> sparse.csr_matrix:
        """(n, F) float64 with 32-bit indices, as liblinear takes it; zeros of features are not stored."""
        rows = self._encoder.prepare(examples)
        if isinstance(rows, DenseRows):
            found = sparse.csr_matrix(rows.values.numpy().astype(np.float64))
        elif isinstance(rows, SparseRows):
            found = sparse.csr_matrix(rows.matrix, dtype=np.float64)
        else:  # pragma: no cover - the two encoders above give nothing else
            raise TypeError(type(rows).__name__)
        return sparse.csr_matrix(
            (found.data, found.indices.astype(np.int32), found.indptr.astype(np.int32)), shape=found.shape
        )

    def stored(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What was counted: tensors, whose names begin with `rows.`, and plain values."""
        keep = ("idf",) if isinstance(self._encoder, TfIdf) else ("mean", "rate")
        tensors = {f"rows.{name}": self._encoder.state_dict()[name] for name in keep}
        return tensors, {
            "name": self._encoder.name,
            "settings": self._encoder.settings(),
            "learned": self._encoder.learned(),
        }

    @classmethod
    def opened(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Self:
        """What `stored` gave; it may come from a stranger's file."""
        encoder = restore(facts["name"], facts["settings"], facts["learned"])
        if not isinstance(encoder, (TfIdf, MLP)):
            raise ModelError(f"rows are made by tfidf or mlp, got {facts['name']!r}")
        given = {name.removeprefix("rows."): value for name, value in tensors.items() if name.startswith("rows.")}
        state = encoder.state_dict()
        for name, value in given.items():
            if name not in state or state[name].shape != value.shape or state[name].dtype != value.dtype:
                raise ModelError(f"tensor 'rows.{name}' does not fit")
        encoder.load_state_dict({**state, **given})
        made = cls()
        made._encoder = encoder
        return made

    def _made(self, kind: type[Encoder]) -> Encoder:
        known = _ROW_OPTIONS[kind]
        for name in self.options:
            if name not in known:
                documents = "texts" if kind is TfIdf else "features"
                raise SettingError(f"row_options of {documents} are {', '.join(known)}; got {name!r}")
        return kind(**checked_options(kind, {**self.options, **_NO_LAYERS}))


__all__ = ["DocumentRows"]
