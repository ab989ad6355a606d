"""C-HMCNN: a network whose labels are at least as probable as any label below them.

Giunchiglia and Lukasiewicz, Coherent Hierarchical Multi-Label Classification Networks, NeurIPS 2020::

    MCM(h)_A    = max of h_B over A and all B below it                                        the max constraint module
    MCLoss      = sum over labels A of
                    - y_A ln max(y_B h_B) - (1 - y_A) ln(1 - max(h_B)),  B as above           the max constraint loss

A sigmoid is monotone, so both are taken on logits, where nothing is lost to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from hilap.baselines.heads import Head, Linear, cross_entropy, sigmoid
from hilap.baselines.neural import NeuralBaseline
from hilap.baselines.values import check_choice
from hilap.encoders import Encoder
from hilap.levels import Levels, highest
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from typing_extensions import Self


class MaxConstraintHead(Head):
    """A linear layer, the max constraint module on it, and the max constraint loss.

    Parameters
    ----------
    dim
        The width of a document's vector.
    taxonomy
        The labels.
    """

    def __init__(self, dim: int, taxonomy: Taxonomy) -> None:
        super().__init__()
        self.output = Linear(dim, len(taxonomy))
        self.levels = Levels(taxonomy)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, L) logits of h, without the constraint."""
        logits: Tensor = self.output(vectors)
        return logits

    def loss(self, outputs: Tensor, gold: Tensor) -> Tensor:
        """MCLoss, as a mean over documents and labels."""
        positive = gold > 0
        both = torch.cat([outputs, outputs.masked_fill(~positive, -torch.inf)])  # h, and y h
        plain, right = highest(both, self.levels).chunk(2)
        return cross_entropy(torch.where(positive, right, plain), gold)

    def chances(self, outputs: Tensor) -> Tensor:
        """(B, L) MCM(h)."""
        return sigmoid(highest(outputs, self.levels))


def _network(width: int, **course: Any) -> dict[str, Any]:
    """The authors' settings: two hidden layers of this width, dropout 0.7, how they chose the epoch, trained anew."""
    return {
        "features": ("mlp", {"hidden": (width, width), "dropout": 0.7}),
        "epochs": 200,
        "batch_size": 4,
        "learning_rate": 1e-4,
        "weight_decay": 1e-5,
        "patience": 20,
        "select": "au_prc",
        "refit": True,
        **course,
    }


class CHMCNN(NeuralBaseline):
    """A coherent network with max constraint; a label is never more probable than a parent.

    Parameters
    ----------
    taxonomy
        The labels.
    preset
        `paper-funcat` and `paper-go`, for features alone: what the authors give for the cellcycle features of FunCat
        and GO (two hidden layers of 500 or 1,000, dropout 0.7, batches of 4, learning rate 1e-4, weight decay 1e-5, the
        epoch chosen by the pooled area under the precision-recall curve, then trained anew on all documents).
        `default`: layers of 1,000, for texts the encoder `tfidf` as it is; batches of 32 and a learning rate of 5e-4,
        which takes a fraction of the time.
    encoder, encoder_options, epochs, batch_size, learning_rate, weight_decay, clip, patience, select
        As of `NeuralBaseline`; None takes the preset's. So `patience=None` does not switch off the patience of 20 that
        `paper-funcat` and `paper-go` have: to train all epochs give as many, `epochs=200, patience=200`.
    refit
        When epoch and thresholds are chosen, train anew, for as many epochs, on training and validation documents
        together, as the authors do. Thresholds stay as they were chosen. None takes the preset's.
    threshold, tune
        The probability above which a label is given (None: 0.5), and what tunes it.
    repair
        With one threshold for all labels sets are consistent by themselves. Where each has its own (`scut`, `scutfbr`):
        `drop` labels without all their ancestors, or `add` the ancestors.
    validation_share, seed, output, progress
        As of every baseline.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> options = {"min_df": 1, "hidden": (20,)}
    >>> model = CHMCNN(taxonomy, encoder_options=options, epochs=40, learning_rate=0.02, validation_share=0.2)
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.set_params(output="labels").predict(["a beer bar"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "c-hmcnn"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": _network(
            1000, epochs=100, batch_size=32, learning_rate=5e-4, patience=None, select="example_f1", refit=False
        ),
        "paper-funcat": _network(500, texts=None),
        "paper-go": _network(1000, texts=None),
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
        repair: str = "drop",
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

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have."""
        super().check()
        check_choice("repair", self.repair, ("drop", "add"))
        return self

    def _head(self, dim: int, taxonomy: Taxonomy) -> Head:
        return MaxConstraintHead(dim, taxonomy)


__all__ = ["CHMCNN", "MaxConstraintHead"]
