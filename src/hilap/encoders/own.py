"""A torch module of your own as an encoder, in a dozen lines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from hilap.corpus.examples import Examples
from hilap.encoders.base import Encoder, Json, Rows, checked_options
from hilap.encoders.layers import MOST_WIDTH
from hilap.errors import ModelError

if TYPE_CHECKING:
    from typing_extensions import Self


class TensorRows:
    """A block of documents as one tensor, a row for each."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def batch(self, rows: Rows) -> Tensor:
        """The rows of these documents."""
        return self.values[torch.as_tensor(rows, dtype=torch.long)]


class ModuleEncoder(Encoder):
    """Documents as one tensor, through a torch module. Subclasses say `name`, `tensor` and `module`.

    Settings are the arguments of the subclass' constructor, which hands them on: `super().__init__(width=width)`.
    To open saved models again, put the subclass into `hilap.encoders.ENCODERS` under its name.

    Parameters
    ----------
    options
        The settings, plain values; they are in `self.options`, and saved with the model.

    Examples
    --------
    >>> class Bytes(ModuleEncoder):
    ...     name = "bytes"
    ...     def tensor(self, examples):
    ...         lines = [list(text.encode()[:100].ljust(100)) for text in examples.texts]
    ...         return torch.tensor(lines).view(-1, 100)
    ...     def module(self):
    ...         return nn.Sequential(nn.EmbeddingBag(256, 32), nn.ReLU())
    >>> from hilap.taxonomy import Taxonomy
    >>> examples = Examples.of(Taxonomy.of({"A": []}), [["A"], []], texts=["craft beer", "a lawyer"])
    >>> Bytes().fit(examples, generator=torch.Generator().manual_seed(0)).dim
    32
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    @abstractmethod
    def tensor(self, examples: Examples) -> Tensor:
        """(n, ...) the documents. A row must depend on its own document alone."""

    @abstractmethod
    def module(self) -> nn.Module:
        """A new module: a batch of such rows -> (B, dim). It reads `self.options`; its weights are drawn here."""

    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Make the module anew."""
        seed = int(torch.randint(2**62, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # modules draw their weights from the global generator; it is put back afterwards
            self.inner = self.module()
        self.inner.eval()
        with torch.no_grad():
            found = self.inner(self._checked(examples.take([0]))) if len(examples) else torch.zeros(0)
        self.inner.train(self.training)
        if found.ndim != 2 or not found.shape[1]:
            raise ModelError(
                f"the module of the {self.name} encoder must give one vector for each document, (B, dim); "
                f"for one document it gave shape {tuple(found.shape)}"
            )
        self.dim = found.shape[1]
        return self

    def prepare(self, examples: Examples) -> TensorRows:
        """The documents as one tensor."""
        self.check_fitted()
        return TensorRows(self._checked(examples))

    def forward(self, batch: Tensor) -> Tensor:
        """(B, dim) what the module makes of them."""
        self.check_fitted()
        vectors: Tensor = self.inner(batch)
        if vectors.shape != (len(batch), self.dim):
            raise ModelError(
                f"the module of the {self.name} encoder gave shape {tuple(vectors.shape)} for {len(batch)} documents, "
                f"needed is ({len(batch)}, {self.dim})"
            )
        return vectors

    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values."""
        return dict(self.options)

    def learned(self) -> dict[str, Json]:
        """The width of a document's vector."""
        return {"dim": self.dim}

    @classmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """An encoder of the same shape, ready for `load_state_dict`."""
        options = checked_options(cls, settings)
        dim = learned.get("dim")
        if type(dim) is not int or not 1 <= dim <= MOST_WIDTH:
            raise ModelError(f"a {cls.name} encoder has learned 'dim', a whole number, but the model has not")
        try:
            with torch.random.fork_rng(devices=[]):
                encoder = cls(**options)
                encoder.inner = encoder.module()
        except Exception as fault:  # the user's code on settings that may be a stranger's
            reason = (str(fault).splitlines() or [type(fault).__name__])[0]
            raise ModelError(f"the {cls.name} encoder cannot be made from its settings ({reason:.200})") from fault
        encoder.dim = dim
        return encoder

    def _checked(self, examples: Examples) -> Tensor:
        values = self.tensor(examples)
        if not isinstance(values, Tensor) or values.ndim < 1 or len(values) != len(examples):
            shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise ModelError(
                f"tensor() of the {self.name} encoder must give a row for each of the {len(examples):,} documents, "
                f"got {shape}"
            )
        return values
