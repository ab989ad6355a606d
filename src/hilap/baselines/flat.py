"""The flat classifier: an encoder and one sigmoid for each label, the taxonomy unknown to all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from hilap.baselines.heads import Head, Linear, cross_entropy, sigmoid
from hilap.baselines.neural import NeuralBaseline
from hilap.encoders import Encoder
from hilap.taxonomy import Taxonomy


class FlatHead(Head):
    """A linear layer and a sigmoid for each label.

    Parameters
    ----------
    dim
        The width of a document's vector.
    n_labels
        How many labels there are.
    """

    def __init__(self, dim: int, n_labels: int) -> None:
        super().__init__()
        self.output = Linear(dim, n_labels)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, L) logits."""
        logits: Tensor = self.output(vectors)
        return logits

    def loss(self, outputs: Tensor, gold: Tensor) -> Tensor:
        """Binary cross-entropy, the mean over documents and labels."""
        return cross_entropy(outputs, gold)

    def chances(self, outputs: Tensor) -> Tensor:
        """(B, L) probabilities, each label on its own."""
        return sigmoid(outputs)


class Flat(NeuralBaseline):
    """Any encoder with a sigmoid layer, binary cross-entropy.

    Parameters
    ----------
    taxonomy
        The labels.
    preset
        `default`: for features one hidden layer of 1,000 with dropout 0.7, for texts the encoder `tfidf` as it is. For
        features alone: `paper`, one layer of 150 without dropout, 50 epochs, as in the HiLAP paper; `deep`, two of
        1,000 with dropout 0.7, the network of our C-HMCNN.
    encoder, encoder_options, epochs, batch_size, learning_rate, weight_decay, clip, patience, select
        As of `NeuralBaseline`; None takes the preset's.
    refit
        As of `NeuralBaseline`.
    threshold, tune, repair
        The probability above which a label is given (None: 0.5), what tunes it, and what is done to inconsistent sets.
    validation_share, seed, output, progress
        As of every baseline.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> options = {"min_df": 1, "hidden": (20,)}
    >>> model = Flat(taxonomy, encoder_options=options, epochs=40, learning_rate=0.02, validation_share=0.2)
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.set_params(output="labels").predict(["a beer bar"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "flat"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": {"features": ("mlp", {"hidden": (1000,), "dropout": 0.7})},
        "paper": {"features": ("mlp", {"hidden": (150,)}), "texts": None},
        "deep": {
            "features": ("mlp", {"hidden": (1000, 1000), "dropout": 0.7}),
            "texts": None,
            "epochs": 100,
            "learning_rate": 5e-4,
            "weight_decay": 1e-5,
        },
    }

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        encoder: str | Encoder | None = None,
        encoder_options: Mapping[str, Any] | None = None,
        preset: str = "default",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        clip: float | None = None,
        patience: int | None = None,
        select: str | None = None,
        refit: bool | None = None,
        threshold: float | None = None,
        tune: str | None = None,
        repair: str | None = None,
        validation_share: float = 0.1,
        seed: int = 0,
        output: str = "indicator",
        progress: bool = False,
    ) -> None:
        super().__init__(
            taxonomy,
            encoder=encoder,
            encoder_options=encoder_options,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            clip=clip,
            patience=patience,
            select=select,
            refit=refit,
            threshold=threshold,
            tune=tune,
            repair=repair,
            validation_share=validation_share,
            seed=seed,
            output=output,
            progress=progress,
        )
        self.preset = preset

    def _head(self, dim: int, taxonomy: Taxonomy) -> Head:
        return FlatHead(dim, len(taxonomy))


__all__ = ["Flat", "FlatHead"]
