"""What neural baselines are made of: an encoder, and a head that says how document vectors become probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap import products
from hilap.corpus import Examples
from hilap.encoders import MLP, Encoder, make, restore
from hilap.encoders.base import Json, checked_options
from hilap.encoders.rows import SparseBatch
from hilap.errors import ModelError

Outputs = Any
"""What a head makes of a batch: a tensor with a row for each document, or several."""


class Head(nn.Module, ABC):
    """From document vectors to a probability for each label."""

    def begin(self, examples: Examples) -> None:
        """Count what has to be counted in the training documents, before the first epoch; nothing by default."""

    @abstractmethod
    def forward(self, vectors: Tensor) -> Outputs:
        """What loss and probabilities are made of, from (B, D) document vectors."""

    @abstractmethod
    def loss(self, outputs: Outputs, gold: Tensor) -> Tensor:
        """The loss of a batch, from what `forward` gave and (B, L) gold sets of zeros and ones."""

    @abstractmethod
    def chances(self, outputs: Outputs) -> Tensor:
        """(B, L) the probabilities of the labels, without gradients."""


class Network(nn.Module):
    """An encoder with a head.

    Parameters
    ----------
    encoder
        A fitted encoder.
    head
        What stands on it.
    """

    def __init__(self, encoder: Encoder, head: Head) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, batch: Any) -> Outputs:
        """What the head makes of a batch that the encoder has prepared."""
        return self.head(self.encoder(batch))


class Linear(nn.Linear):
    """A linear layer which, in evaluation, says the same of a row whatever rows are beside it."""

    def forward(self, rows: Tensor) -> Tensor:
        """(R, N) of rows (R, K)."""
        return products.linear(rows, self.weight, self.bias)


def draw(module: nn.Module, generator: torch.Generator) -> None:
    """Draw the weights of all linear layers anew, uniformly within 1 / sqrt(width of the layer below)."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            bound = layer.in_features**-0.5
            for weight in (layer.weight, layer.bias):
                nn.init.uniform_(weight, -bound, bound, generator=generator)


def sigmoid(logits: Tensor) -> Tensor:
    """Probabilities from logits; where no gradient is wanted, the same of a row whatever rows are beside it."""
    return torch.sigmoid(logits) if torch.is_grad_enabled() else products.sigmoid(logits)


def tanh(values: Tensor) -> Tensor:
    """The hyperbolic tangent, with the same promise."""
    return torch.tanh(values) if torch.is_grad_enabled() else 2 * products.sigmoid(2 * values) - 1


def cross_entropy(logits: Tensor, gold: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over documents and labels."""
    return F.binary_cross_entropy_with_logits(logits, gold)


# -- encoders ---------------------------------------------------------------------------------------------------------


class FeatureRows(MLP):
    """Feature rows as they are: nothing missing, standardised if asked, no layers. For heads with layers of their own.

    Parameters
    ----------
    standardise
        As of the encoder `mlp`.
    """

    name = "rows"

    def __init__(self, *, standardise: bool = True) -> None:
        super().__init__((1,), standardise=standardise)

    def forward(self, batch: Tensor | SparseBatch) -> Tensor:
        """(B, F) the rows, dense."""
        self.check_fitted()
        if not isinstance(batch, SparseBatch):
            return batch
        rows = torch.repeat_interleave(torch.arange(len(batch)), batch.starts.diff())
        dense = torch.zeros(len(batch), self.dim)
        dense[rows, batch.columns] = batch.values
        return dense

    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values."""
        return {"standardise": self.standardise}

    def _build(self, n_features: int, is_sparse: bool) -> None:
        super()._build(n_features, is_sparse)
        self.layers = _NoLayers()  # type: ignore[assignment]
        self.dim = n_features


class _NoLayers(nn.Module):
    def draw(self, generator: torch.Generator) -> None:
        """There is nothing to draw."""


def made(encoder: str | Encoder, options: Mapping[str, Any]) -> Encoder:
    """An encoder by its name with these options, as of `hilap.encoders.make`; `rows` is known here too."""
    if encoder == FeatureRows.name:
        return FeatureRows(**checked_options(FeatureRows, options))
    return make(encoder, **options)


def described(encoder: Encoder) -> dict[str, Any]:
    """What `restored` needs beside tensors."""
    return {"name": encoder.name, "settings": encoder.settings(), "learned": encoder.learned()}


def restored(facts: Any) -> Encoder:
    """The encoder that a saved model describes, ready for `load_state_dict`."""
    name, settings, learned = (facts[key] for key in ("name", "settings", "learned"))
    if name != FeatureRows.name:
        return restore(name, settings, learned)
    if not isinstance(settings, dict) or not isinstance(learned, dict):
        raise ModelError(f"the settings and the learned values of an encoder must be objects, got {facts!r:.200}")
    return FeatureRows.restore(settings, learned)


__all__ = [
    "FeatureRows",
    "Head",
    "Linear",
    "Network",
    "Outputs",
    "cross_entropy",
    "described",
    "draw",
    "made",
    "restored",
    "sigmoid",
    "tanh",
]
