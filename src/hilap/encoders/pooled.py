"""What encoders of pretrained vectors share: standardisation, layers, reading of their files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hilap.encoders.layers import FeedForward, checked_hidden
from hilap.errors import SettingError
from hilap.files import read_text

MEASURED = 2_000  # documents whose vectors give the mean and the deviation


class VectorLayers(nn.Module):
    """(B, D) vectors with mean 0 and deviation 1 in the training data, through feed-forward layers, if there are any.

    Parameters
    ----------
    width
        D.
    hidden
        The width of each layer; none gives the vectors themselves.
    dropout
        The share of values dropped in training, after each layer or of the vectors.
    """

    mean: Tensor
    rate: Tensor

    def __init__(self, width: int, hidden: tuple[int, ...], *, dropout: float) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("rate", torch.ones(width))
        self.layers = FeedForward(width, hidden, dropout=dropout, input_dropout=0.0) if hidden else None
        self.dropout = nn.Dropout(dropout)
        self.dim = hidden[-1] if hidden else width

    def measure(self, vectors: NDArray[np.float32]) -> None:
        """Take the mean and the deviation of these vectors; what never varies is held at 0."""
        mean, deviation = vectors.mean(0, dtype=np.float64), vectors.std(0, dtype=np.float64)
        rate = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-6)
        self.mean.copy_(torch.from_numpy(mean))
        self.rate.copy_(torch.from_numpy(rate))

    def draw(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        if self.layers is not None:
            self.layers.draw(generator)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, dim) the last layer."""
        scaled = (vectors - self.mean) * self.rate
        result: Tensor = self.dropout(scaled) if self.layers is None else self.layers(scaled)
        return result


def checked_layers(hidden: int | Iterable[int] | None) -> tuple[int, ...]:
    """The widths of the layers as a tuple; None, or nothing, is no layer."""
    if hidden is None or (isinstance(hidden, (list, tuple)) and not hidden):
        return ()
    return checked_hidden(hidden)


def some_rows(n: int) -> NDArray[np.int64]:
    """At most `MEASURED` of n documents, evenly spread."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, MEASURED)).astype(np.int64))


def read_json(path: Path, parameter: str) -> dict[str, Any]:
    """A JSON object from a file of a pretrained model."""
    try:
        value = json.loads(read_text(path, SettingError, most_bytes=200_000_000))
    except (ValueError, RecursionError) as fault:
        if isinstance(fault, SettingError):
            raise SettingError(f"{parameter}: {fault}") from None
        raise SettingError(f"{parameter}: {path} is no valid JSON; get it again") from None
    if not isinstance(value, dict):
        raise SettingError(f"{parameter}: {path} holds no JSON object; get it again")
    return value
