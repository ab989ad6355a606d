"""HR-DGCNN: a graph CNN over words whose output weights are drawn to their parents' (Peng et al. 2018).

Hao Peng et al., "Large-scale hierarchical text classification with recursively regularized deep graph-CNN", WWW 2018.
The encoder is `hilap.encoders.WordGraph`. Labels that are parent and child are to have similar weights in the output
layer: half the sum, over all edges, of the squared distance of their weights is added to the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from hilap.baselines.flat import FlatHead
from hilap.baselines.heads import Head
from hilap.baselines.neural import NeuralBaseline
from hilap.baselines.values import check_from_zero
from hilap.encoders import Encoder
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from typing_extensions import Self


class RecursiveHead(FlatHead):
    """A linear layer and a sigmoid for each label; the weights of parent and child are drawn together.

    Parameters
    ----------
    dim
        The width of a document's vector.
    taxonomy
        The labels.
    coupling
        What a distance of weights costs against the cross-entropy.
    """

    parent: Tensor
    child: Tensor

    def __init__(self, dim: int, taxonomy: Taxonomy, coupling: float) -> None:
        super().__init__(dim, len(taxonomy))
        self.coupling = coupling
        edges = taxonomy.child_matrix.tocoo()
        self.register_buffer("parent", torch.from_numpy(edges.coords[0]).long(), persistent=False)
        self.register_buffer("child", torch.from_numpy(edges.coords[1]).long(), persistent=False)

    def apart(self) -> Tensor:
        """Half the sum of squared distances of the weights of parents and children."""
        weight = self.output.weight
        distances = weight.index_select(0, self.child) - weight.index_select(0, self.parent)
        return distances.square().sum() / 2

    def loss(self, outputs: Tensor, gold: Tensor) -> Tensor:
        """Binary cross-entropy summed over labels, the mean over documents, and the coupling of weights."""
        entropy = super().loss(outputs, gold) * gold.shape[1]
        return entropy + self.coupling * self.apart() if self.coupling else entropy


class HRDGCNN(NeuralBaseline):
    """A text's graph of words, filters over its neighbourhoods, and an output layer that knows the taxonomy.

    Parameters
    ----------
    taxonomy
        The labels.
    coupling
        The weight of the recursive regularisation; 0 leaves it out.
    encoder, encoder_options
        None takes the encoder `wordgraph`; any other is possible too.
    epochs, batch_size, learning_rate, weight_decay, clip, patience, select
        As of `NeuralBaseline`.
    refit
        As of `NeuralBaseline`.
    threshold, tune, repair
        The probability above which a label is given (None: 0.5), what tunes it, and what is done to inconsistent sets.
    validation_share, seed, output, progress
        As of every baseline.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> options = {"preset": "light", "hidden": [16], "dropout": 0.0}
    >>> model = HRDGCNN(taxonomy, encoder_options=options, epochs=20, learning_rate=0.01, validation_share=0.2)
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.set_params(output="labels").predict(["beer bar"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "hr-dgcnn"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": {
            "features": ("wordgraph", {}),  # there is no graph of words in features: the encoder says so
            "texts": ("wordgraph", {}),
            "epochs": 20,
        }
    }

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        coupling: float = 5e-5,
        encoder: str | Encoder | None = None,
        encoder_options: Mapping[str, Any] | None = None,
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
        self.coupling = coupling

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have."""
        super().check()
        check_from_zero("coupling", self.coupling)
        return self

    def _head(self, dim: int, taxonomy: Taxonomy) -> Head:
        return RecursiveHead(dim, taxonomy, float(self.coupling))


__all__ = ["HRDGCNN", "RecursiveHead"]
