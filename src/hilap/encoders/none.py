"""No encoder: every document is the same to it. For a flat model that is its wide part alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hilap.corpus.examples import Examples
from hilap.encoders.base import Encoder, Json, Rows, checked_options

if TYPE_CHECKING:
    from typing_extensions import Self


class NothingRows:
    """A block of documents of which nothing is known but their number."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    def batch(self, rows: Rows) -> Tensor:
        """(B, 1) zeros."""
        return torch.zeros(len(rows), 1)


class Nothing(Encoder):
    """Documents to zeros: whatever is said of a document is said by the wide part (`wide=True`)."""

    name = "none"

    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """There is nothing to learn."""
        self.dim = 1
        return self

    def prepare(self, examples: Examples) -> NothingRows:
        """As many zeros as there are documents."""
        self.check_fitted()
        return NothingRows(len(examples))

    def forward(self, batch: Tensor) -> Tensor:
        """(B, 1) the zeros."""
        self.check_fitted()
        return batch

    def settings(self) -> dict[str, Json]:
        """It has none."""
        return {}

    def learned(self) -> dict[str, Json]:
        """Nothing."""
        self.check_fitted()
        return {}

    @classmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """The same again."""
        encoder = cls(**checked_options(cls, settings))
        encoder.dim = 1
        return encoder
