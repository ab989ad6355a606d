"""The conditional classifier: each label's probability given its parents, multiplied down the taxonomy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hilap.baselines.heads import Head, Linear, sigmoid
from hilap.baselines.neural import NeuralBaseline
from hilap.baselines.values import check_choice, check_from_zero
from hilap.corpus import Examples
from hilap.encoders import Encoder
from hilap.levels import Levels
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from typing_extensions import Self


class ConditionalHead(Head):
    """A sigmoid for each label: how probable it is for a document that carries all its parents.

    Parameters
    ----------
    dim
        The width of a document's vector.
    taxonomy
        The labels.
    adjust
        How much of a label's conditional prior (as a logit) is added to its logit in training, and so left out of what
        the network learns.
    """

    prior: Tensor  # (L,) logits; only training needs them, so they are not saved

    def __init__(self, dim: int, taxonomy: Taxonomy, adjust: float) -> None:
        super().__init__()
        self.output = Linear(dim, len(taxonomy))
        self.adjust = adjust
        self.levels = Levels(taxonomy)
        edges = taxonomy.parent_matrix.tocoo()
        self._child, self._parent = (torch.from_numpy(side.astype(np.int64)) for side in (edges.row, edges.col))
        self._n_parents = torch.from_numpy(np.diff(taxonomy.parent_matrix.indptr).astype(np.float32))
        self.register_buffer("prior", torch.zeros(len(taxonomy)), persistent=False)

    def begin(self, examples: Examples) -> None:
        """Take the conditional priors: of the documents with all parents of a label, how many carry it."""
        self.prior = torch.from_numpy(conditional_priors(examples).astype(np.float32))

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, L) logits."""
        logits: Tensor = self.output(vectors)
        return logits

    def asked(self, gold: Tensor) -> Tensor:
        """(B, L) 1 where a document carries all parents of a label, so that the label is in question; else 0."""
        carried = torch.zeros_like(gold).index_add_(1, self._child, gold[:, self._parent])
        return (carried == self._n_parents).to(gold.dtype)

    def loss(self, outputs: Tensor, gold: Tensor) -> Tensor:
        """Binary cross-entropy of the labels in question, divided by all documents and labels."""
        logits = outputs + self.adjust * self.prior if self.adjust else outputs
        each = F.binary_cross_entropy_with_logits(logits, gold, weight=self.asked(gold), reduction="sum")
        return each / gold.numel()

    def chances(self, outputs: Tensor) -> Tensor:
        """(B, L) each label's probability given its parents, times that of its least probable parent."""
        return torch.from_numpy(self.levels.product(sigmoid(outputs).numpy()))


def conditional_priors(examples: Examples) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(L,) the logits of how probable a label is among documents with all its parents, with one document each way."""
    labels, parents = examples.labels, examples.taxonomy.parent_matrix
    carried = (labels @ parents.T.astype(np.int32)).tocsr()  # (n, L) how many parents of each label a document has
    n_parents = np.diff(parents.indptr)
    whole = carried.data == n_parents[carried.indices]
    asked = np.bincount(carried.indices[whole], minlength=len(n_parents))
    asked[n_parents == 0] = len(examples)
    held = np.bincount(labels.indices, minlength=len(n_parents))
    return np.asarray(np.log(held + 1) - np.log(asked - held + 1))


class Conditional(NeuralBaseline):
    """A network that learns each label's probability given its parents; a label is never more probable than a parent.

    Only documents that carry all parents of a label teach it. A label's probability is the conditional one times its
    parent's; of several parents, the least probable: all of them must hold, and no more than the least can.

    Parameters
    ----------
    taxonomy
        The labels.
    adjust
        Logit adjustment (tau of Menon et al. 2021): how much of each label's conditional prior is taken out of what the
        network learns. 0 learns plain probabilities; 1 learns how much a document speaks for a label, however rare it
        is: rare labels are given more often, and probabilities are none any more, so a threshold should be tuned.
    encoder, encoder_options, epochs, batch_size, learning_rate, weight_decay, clip, patience, select
        As of `NeuralBaseline`; None takes the default's.
    refit
        As of `NeuralBaseline`.
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
    >>> model = Conditional(taxonomy, encoder_options=options, epochs=40, learning_rate=0.02, validation_share=0.2)
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.set_params(output="labels").predict(["a beer bar"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "conditional"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": {"features": ("mlp", {"hidden": (1000,), "dropout": 0.7})},
    }

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        adjust: float = 0.0,
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
        self.adjust = adjust

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have."""
        super().check()
        check_from_zero("adjust", self.adjust)
        check_choice("repair", self.repair, ("drop", "add"))
        return self

    def _head(self, dim: int, taxonomy: Taxonomy) -> Head:
        return ConditionalHead(dim, taxonomy, float(self.adjust))


__all__ = ["Conditional", "ConditionalHead", "conditional_priors"]
