"""HMCN: a layer and local outputs for each level of the taxonomy, global outputs at the end, their mean.

Wehrmann, Cerri and Barros, Hierarchical Multi-Label Classification Networks, ICML 2018::

    A_1 = phi(W_1 x), A_h = phi(W_h [A_(h-1) ; x])                    global flow (HMCN-F); an LSTM cell on x (HMCN-R)
    P_L^h = sigmoid(V_h phi(T_h A_h))                                 local outputs: the labels of level h
    P_G   = sigmoid(V A_H)                                            global outputs: all labels
    P_F   = beta P_L + (1 - beta) P_G                                 what is predicted
    loss  = E(P_L, y) + E(P_G, y) + lambda sum max(0, P_F child - P_F parent)^2
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap.baselines.heads import Head, Linear, cross_entropy, sigmoid, tanh
from hilap.baselines.neural import NeuralBaseline
from hilap.baselines.values import check_choice, check_count, check_from_zero, check_truth
from hilap.encoders import Encoder
from hilap.encoders.base import check_share
from hilap.encoders.layers import MOST_WIDTH
from hilap.errors import require
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from typing_extensions import Self

FORMS = ("F", "R")
ORDERS = ("sigmoid-sum", "sum-sigmoid")
OBJECTIVES = ("parts", "final")
_AUTHORS: dict[str, Any] = {
    "features": ("rows", {}),
    "order": "sigmoid-sum",
    "objective": "parts",
    "hidden": 384,
    "dropout": 0.6,
    "batch_norm": True,
    "beta": 0.5,
    "penalty": 0.1,
    "rereads": False,
}


class Normalised(nn.BatchNorm1d):
    """Batch normalisation; in evaluation by plain products, so that a row does not depend on what is beside it."""

    def forward(self, rows: Tensor) -> Tensor:
        """(B, H) with the mean 0 and the deviation 1, scaled and shifted as learned."""
        if self.training and len(rows) > 1:  # one document has no deviation: it gets the running one
            return super().forward(rows)
        assert self.running_mean is not None and self.running_var is not None  # noqa: S101, PT018 - for mypy
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        return rows * scale + (self.bias - self.running_mean * scale)


class Dense(nn.Module):
    """A linear layer, ReLU, batch normalisation if asked, dropout.

    Parameters
    ----------
    below, width
        The widths of what comes in and of what goes out.
    dropout
        The share of values dropped in training.
    batch_norm
        Whether values are normalised after the ReLU.
    """

    def __init__(self, below: int, width: int, *, dropout: float, batch_norm: bool) -> None:
        super().__init__()
        self.linear = Linear(below, width)
        self.norm: nn.Module = Normalised(width) if batch_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor) -> Tensor:
        """(B, width) the layer."""
        found: Tensor = self.dropout(self.norm(F.relu(self.linear(rows))))
        return found


class FeedForwardFlow(nn.Module):
    """The global flow of HMCN-F: a layer for each level, on the layer above it and the document again.

    Parameters
    ----------
    dim, width, depth
        The widths of a document's vector and of a layer, and how many levels there are.
    options
        `dropout` and `batch_norm`, as of `Dense`.
    """

    def __init__(self, dim: int, width: int, depth: int, **options: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Dense(dim + width * bool(level), width, **options) for level in range(depth))
        self.transitions = nn.ModuleList(Dense(width, width, **options) for _ in range(depth))

    def forward(self, vectors: Tensor) -> tuple[list[Tensor], Tensor]:
        """For each level what its local outputs are made of; and what the global outputs are made of."""
        state, local = vectors.new_zeros(len(vectors), 0), []
        for layer, transition in zip(self.layers, self.transitions, strict=True):
            state = layer(torch.cat([state, vectors], dim=1))
            local.append(transition(state))
        return local, state


class RecurrentFlow(nn.Module):
    """The global flow of HMCN-R: one LSTM cell goes down the levels, reading the document at each.

    Its weights, and those of the transition to local outputs, are the same at all levels: the size of the network
    hardly grows with the taxonomy's depth. Normalisation is each level's own: states grow on the way down, and one mean
    for all levels, which is what evaluation would take, is right for none.

    Parameters
    ----------
    dim, width, depth
        The widths of a document's vector and of the state, and how many levels there are.
    options
        `dropout` and `batch_norm`, as of `Dense`.
    """

    def __init__(self, dim: int, width: int, depth: int, **options: Any) -> None:
        super().__init__()
        self.width = width
        self.of_document = Linear(dim, 4 * width)
        self.of_state = Linear(width, 4 * width)
        self.transition = Linear(width, width)
        norms = (Normalised(width) if options["batch_norm"] else nn.Identity() for _ in range(depth))
        self.norms = nn.ModuleList(norms)
        self.dropout = nn.Dropout(options["dropout"])

    def forward(self, vectors: Tensor) -> tuple[list[Tensor], Tensor]:
        """For each level what its local outputs are made of; and what the global outputs are made of."""
        given = self.of_document(vectors)  # the same at every level
        state = memory = vectors.new_zeros(len(vectors), self.width)
        local = []
        for norm in self.norms:
            enter, forget, leave, new = (given + self.of_state(state)).chunk(4, dim=1)
            memory = sigmoid(forget) * memory + sigmoid(enter) * tanh(new)
            state = sigmoid(leave) * tanh(memory)
            local.append(self.dropout(norm(F.relu(self.transition(self.dropout(state))))))
        return local, self.dropout(state)


class HMCNHead(Head):
    """Local and global outputs on a flow down the levels. A label's level is that of its longest way from the root.

    Parameters
    ----------
    dim
        The width of a document's vector.
    taxonomy
        The labels.
    form, order, objective, hidden, dropout, beta, penalty, batch_norm, rereads
        As of `HMCN`.
    """

    def __init__(
        self,
        dim: int,
        taxonomy: Taxonomy,
        *,
        form: str,
        order: str,
        objective: str,
        hidden: int,
        dropout: float,
        beta: float,
        penalty: float,
        batch_norm: bool,
        rereads: bool,
    ) -> None:
        super().__init__()
        self.rereads = rereads
        self.order, self.objective, self.beta, self.penalty = order, objective, beta, penalty
        depth = taxonomy.depth
        flow = FeedForwardFlow if form == "F" else RecurrentFlow
        self.flow = flow(dim, hidden, depth, dropout=dropout, batch_norm=batch_norm)
        sizes = np.bincount(taxonomy.longest_levels, minlength=depth + 1)[1:]
        self.local = nn.ModuleList(Linear(hidden, int(size)) for size in sizes)
        self.whole = Linear(hidden + dim * rereads, len(taxonomy))
        self._place = torch.from_numpy(np.argsort(taxonomy.order).astype(np.int64))  # of each label, level by level
        edges = taxonomy.parent_matrix.tocoo()
        self._child, self._parent = (torch.from_numpy(side.astype(np.int64)) for side in (edges.row, edges.col))

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """(B, L) each: local and global logits."""
        states, last = self.flow(vectors)
        by_level = torch.cat([layer(state) for layer, state in zip(self.local, states, strict=True)], dim=1)
        return by_level[:, self._place], self.whole(torch.cat([last, vectors], dim=1) if self.rereads else last)

    def loss(self, outputs: tuple[Tensor, Tensor], gold: Tensor) -> Tensor:
        """The paper's sum over labels and edges, a mean over documents, divided by the number of labels."""
        local, whole = outputs
        if self.objective == "parts":
            fit = cross_entropy(local, gold) + cross_entropy(whole, gold)
        elif self.order == "sum-sigmoid":
            fit = cross_entropy(self._sum(local, whole), gold)
        else:
            fit = F.binary_cross_entropy(self._final(outputs), gold)
        return fit + self.penalty * self.violation(self._final(outputs)) if self.penalty else fit

    def violation(self, chances: Tensor) -> Tensor:
        """How far children are above their parents, squared; divided by documents and labels."""
        above = (chances[:, self._child] - chances[:, self._parent]).clamp(min=0)
        return above.square().sum() / chances.numel()

    def chances(self, outputs: tuple[Tensor, Tensor]) -> Tensor:
        """(B, L) the weighted mean of local and global outputs."""
        return self._final(outputs)

    def _final(self, outputs: tuple[Tensor, Tensor]) -> Tensor:
        local, whole = outputs
        if self.order == "sum-sigmoid":
            return sigmoid(self._sum(local, whole))
        return self._sum(sigmoid(local), sigmoid(whole))

    def _sum(self, local: Tensor, whole: Tensor) -> Tensor:
        return self.beta * local + (1 - self.beta) * whole


class HMCN(NeuralBaseline):
    """Local and global outputs, with a penalty where a child is more probable than a parent.

    Parameters
    ----------
    taxonomy
        The labels.
    form
        `F`: a layer of its own for each level; `R`: one recurrent layer for all.
    preset
        `default`: as its authors have it, the epoch chosen by the validation loss; `hilap`: as in the HiLAP paper and
        its code, `sum-sigmoid` on `final` outputs without dropout, normalisation and penalty.
    order
        `sigmoid-sum`: sigmoids of local and global outputs, then their weighted mean; `sum-sigmoid`: the mean first.
    objective
        What is fitted to the gold sets: both `parts`, local and global outputs, or the `final` outputs only.
    hidden, dropout, batch_norm
        The width of all layers, the share of values dropped in training, and whether layers are normalised.
    beta
        The weight of local outputs; global ones have the rest.
    penalty
        The weight of violations (lambda).
    rereads
        Whether global outputs are made of the last layer and the document again, as every layer is and as the HiLAP
        paper's code has it, or of the last layer alone.
    encoder, encoder_options, epochs, batch_size, learning_rate, weight_decay, clip, patience, select
        As of `NeuralBaseline`; None takes the preset's, here and above. Features go in as they are (`rows`), texts
        through `tfidf`.
    refit
        When epoch and thresholds are chosen, train anew, for as many epochs, on training and validation documents
        together. Thresholds stay as they were chosen. None takes the preset's: not in any.
    threshold, tune, repair
        The probability above which a label is given (None: 0.5), what tunes it, and what is done to inconsistent sets.
    validation_share, seed, output, progress
        As of every baseline.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    >>> model = HMCN(taxonomy, hidden=20, encoder_options={"min_df": 1}, epochs=40, validation_share=0.2)
    >>> model = model.fit(["beer bar", "court law"] * 20, [["Bars"], ["Law"]] * 20)
    >>> model.set_params(output="labels").predict(["a beer bar"])
    [['Food', 'Bars']]
    """

    kind: ClassVar[str] = "hmcn"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": {**_AUTHORS, "select": "loss"},
        "hilap": {
            **_AUTHORS,
            "order": "sum-sigmoid",
            "objective": "final",
            "dropout": 0.0,
            "batch_norm": False,
            "penalty": 0.0,
            "rereads": True,
        },
    }

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        form: str = "F",
        order: str | None = None,
        objective: str | None = None,
        hidden: int | None = None,
        dropout: float | None = None,
        batch_norm: bool | None = None,
        beta: float | None = None,
        penalty: float | None = None,
        rereads: bool | None = None,
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
        self.form = form
        self.order = order
        self.objective = objective
        self.hidden = hidden
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.beta = beta
        self.penalty = penalty
        self.rereads = rereads

    def check(self) -> Self:
        """Raise an error where a parameter has a value it cannot have."""
        super().check()
        hidden, dropout, beta = (self.setting(name) for name in ("hidden", "dropout", "beta"))
        check_choice("form", self.form, FORMS)
        check_choice("order", self.setting("order"), ORDERS)
        check_choice("objective", self.setting("objective"), OBJECTIVES)
        check_count("hidden", hidden)
        require(hidden <= MOST_WIDTH, "hidden", f"at most {MOST_WIDTH:,}", hidden)
        check_share("dropout", dropout)
        check_truth("batch_norm", self.setting("batch_norm"))
        check_truth("rereads", self.setting("rereads"))
        check_from_zero("beta", beta)
        require(beta <= 1, "beta", "a number from 0 to 1", beta)
        check_from_zero("penalty", self.setting("penalty"))
        return self

    def _head(self, dim: int, taxonomy: Taxonomy) -> Head:
        names = ("order", "objective", "hidden", "dropout", "batch_norm", "beta", "penalty", "rereads")
        return HMCNHead(dim, taxonomy, form=self.form, **{name: self.setting(name) for name in names})


__all__ = ["HMCN", "FeedForwardFlow", "HMCNHead", "RecurrentFlow"]
