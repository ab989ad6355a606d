"""What every encoder is: documents to vectors. Knows nothing of labels.

Documents go through four hands. `fit` learns what is learned by counting (a vocabulary, means) and draws the weights;
`prepare` turns a whole block of documents into columns, once; `Prepared.batch` cuts a batch out of them; `forward`
makes one vector a document, with gradients.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hilap.corpus.examples import Examples
from hilap.corpus.mapped import Strings
from hilap.errors import CorpusError, ModelError, SettingError, did_you_mean, require

if TYPE_CHECKING:
    from typing_extensions import Self

ModuleT = TypeVar("ModuleT", bound=nn.Module)
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Rows: TypeAlias = "Tensor | NDArray[Any]"
"""(B,) whole numbers: which documents of a block."""


class Prepared(Protocol):
    """A block of documents, ready to be cut into batches."""

    def __len__(self) -> int:
        """The number of documents."""

    def batch(self, rows: Rows) -> Any:
        """These documents, in this order, as `Encoder.forward` takes them: a tensor, or something else with `to`."""


class Encoder(nn.Module, ABC):
    """Documents to vectors. Knows nothing of labels.

    A subclass declares `name`, takes plain values in its constructor, and sets `dim` in `fit`. What it has learned is
    either a tensor, then it is a parameter or a buffer and belongs to `state_dict`, or plain JSON, then it is in
    `learned`. Weights are drawn from the generator that `fit` is given, never from torch's global one; dropout, as in
    every torch module, draws from the global one, which is the trainer's to seed.
    """

    name: ClassVar[str]
    _dim: int | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """What it needs of a document: `texts`, `features`, or both."""
        return ("texts",)

    @property
    def dim(self) -> int:
        """The width of a document's vector; known once the encoder is fitted."""
        if self._dim is None:
            raise ModelError(
                f"this {self.name} encoder is not fitted; call fit(examples, generator=...) first, or load a saved one"
            )
        return self._dim

    @dim.setter
    def dim(self, value: int) -> None:
        self._dim = value

    @abstractmethod
    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Count what has to be counted and draw all weights anew; what was learned before is forgotten."""

    @abstractmethod
    def prepare(self, examples: Examples) -> Prepared:
        """A whole block of documents as columns, without gradients."""

    @abstractmethod
    def forward(self, batch: Any) -> Tensor:
        """(B, dim) one vector for each document of a batch that `Prepared.batch` gave."""

    @abstractmethod
    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values."""

    @abstractmethod
    def learned(self) -> dict[str, Json]:
        """What `fit` learned that is no tensor, as plain values."""

    @classmethod
    @abstractmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """An encoder of the same shape, ready for `load_state_dict`. Both mappings may come from a stranger's file."""

    def rates(self) -> dict[str, float]:
        """The beginning of a parameter's name -> the share of the learning rate it learns with; others take all."""
        return {}

    def sibling(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Another encoder, fitted on the same documents, with weights of its own: a further member of a network.

        It encodes what this one has prepared, and need not be able to prepare documents itself.
        """
        return copy.deepcopy(self).fit(examples, generator=generator)

    def check_fitted(self) -> None:
        """Raise an error where `fit` has not been called."""
        _ = self.dim


def parameter_rates(module: nn.Module) -> dict[nn.Parameter, float]:
    """The parameters of all encoders in a module that learn with a share of the learning rate only, and that share."""
    found: dict[nn.Parameter, float] = {}
    encoders = [part for part in module.modules() if isinstance(part, Encoder)]
    for encoder in reversed(encoders):  # an encoder of encoders speaks last
        for start, share in encoder.rates().items():
            found |= {weight: share for name, weight in encoder.named_parameters() if name.startswith(start)}
    return found


def checked_options(encoder: type[Encoder], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a constructor, or an error for a name it does not know."""
    known = [name for name in inspect.signature(encoder.__init__).parameters if name != "self"]
    for name in options:
        if name not in known:
            near = did_you_mean(str(name), known)
            hint = f"did you mean {near!r}?" if near else f"it has: {', '.join(known)}"
            raise SettingError(f"the {encoder.name} encoder has no setting {name!r}; {hint}")
    return dict(options)


def check_whole(name: str, value: object) -> None:
    """Require a whole number of at least 1."""
    require(type(value) is int and value >= 1, name, "a whole number, at least 1", value)


def check_truth(name: str, value: object) -> None:
    """Require True or False."""
    require(isinstance(value, bool), name, "True or False", value)


def check_share(name: str, value: object) -> None:
    """Require a share that can be dropped: from 0 to below 1."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1
    require(good, name, "a number from 0 to below 1", value)


def check_rate(name: str, value: object) -> None:
    """Require a share of the learning rate: above 0, at most 1."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1
    require(good, name, "a number above 0, at most 1", value)


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Require one of some words."""
    require(isinstance(value, str) and value in allowed, name, "one of " + ", ".join(map(repr, allowed)), value)


def texts_of(examples: Examples, encoder: str) -> Sequence[str]:
    """The texts of a block, or an error where there are none. They may lie on disk: go through them block by block."""
    if examples.texts is None:
        raise CorpusError(
            f"the {encoder} encoder reads texts, but these documents have none; give their texts (on the command line, "
            "--text names the column), or train with an encoder of features, such as mlp"
        )
    return examples.texts if isinstance(examples.texts, Strings) else list(examples.texts)


def features_of(examples: Examples, encoder: str) -> Any:
    """The (n, F) features of a block, or an error where there are none."""
    if examples.features is None:
        raise CorpusError(
            f"the {encoder} encoder reads features, but these documents have none; give their features "
            "(Examples.of(..., features=...); on the command line, --features names the columns), or train with an "
            "encoder of texts"
        )
    return examples.features


@contextmanager
def evaluating(module: ModuleT) -> Iterator[ModuleT]:
    """The module in evaluation mode without gradients; afterwards as it was."""
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield module
    finally:
        module.train(was_training)
