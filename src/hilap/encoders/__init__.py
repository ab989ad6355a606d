"""Encoders: documents to vectors. A new one is one file and one line in the table."""

from __future__ import annotations

from typing import Any

from torch import nn

from hilap.encoders.base import Encoder, Prepared, checked_options, evaluating, parameter_rates
from hilap.encoders.bowcnn import BowCNN
from hilap.encoders.han import HAN
from hilap.encoders.hashed import Hashed
from hilap.encoders.mlp import MLP
from hilap.encoders.none import Nothing
from hilap.encoders.own import ModuleEncoder
from hilap.encoders.several import Several
from hilap.encoders.static import Static
from hilap.encoders.textcnn import TextCNN
from hilap.encoders.tfidf import TfIdf
from hilap.encoders.transformer import Transformer
from hilap.encoders.wordgraph import WordGraph
from hilap.errors import SettingError, did_you_mean

ENCODERS: dict[str, type[Encoder]] = {
    "mlp": MLP,
    "tfidf": TfIdf,
    "textcnn": TextCNN,
    "han": HAN,
    "bowcnn": BowCNN,
    "several": Several,
    "transformer": Transformer,
    "static": Static,
    "hashed": Hashed,
    "wordgraph": WordGraph,
    "none": Nothing,
}
"""The encoders by name. One of your own is put here too, so that its models can be opened again."""


class UnknownEncoderError(SettingError):
    """There is no encoder of this name; one of a user's own is known once its module is imported."""

    def __init__(self, name: object, hint: str) -> None:
        self.name = f"{name!r:.100}"
        super().__init__(f"there is no encoder {self.name}; {hint}")


def make(encoder: str | Encoder, **options: Any) -> Encoder:
    """An encoder by its name with these options; an encoder itself is given back as it is.

    Examples
    --------
    >>> make("mlp", hidden=(20, 10)).settings()["hidden"]
    [20, 10]
    >>> make("mpl")
    Traceback (most recent call last):
    hilap.encoders.UnknownEncoderError: there is no encoder 'mpl'; did you mean 'mlp'?
    """
    if isinstance(encoder, Encoder):
        if options:
            raise SettingError(
                f"options ({', '.join(options)}) go with an encoder's name, but an encoder that is made already was "
                "given; give them where it is made"
            )
        return encoder
    kind = _named(encoder)
    return kind(**checked_options(kind, options))


def _named(name: object) -> type[Encoder]:
    if isinstance(name, str) and name in ENCODERS:
        return ENCODERS[name]
    _check_no_module(name)
    near = did_you_mean(name, ENCODERS) if isinstance(name, str) else None
    hint = (
        f"did you mean {near!r}?"
        if near
        else f"there are: {', '.join(ENCODERS)}; one of your own is given as an Encoder, or by name once its module "
        "has put it into hilap.encoders.ENCODERS (on the command line: --import MODULE)"
    )
    raise UnknownEncoderError(name, hint)


def _check_no_module(given: object) -> None:
    """Say what to do with a class of encoders, or a torch module that is none."""
    kind = given if isinstance(given, type) else type(given)
    if issubclass(kind, Encoder):
        raise SettingError(f"an encoder is needed, got its class {kind.__name__}; write {kind.__name__}(...)")
    if issubclass(kind, nn.Module):
        raise SettingError(
            f"a torch module ({kind.__name__}) is no encoder by itself; a subclass of hilap.encoders.ModuleEncoder, "
            "which also says how documents become its input, makes it one: see examples/own_encoder.py"
        )


def restore(name: str, settings: Any, learned: Any) -> Encoder:
    """The encoder that a saved model describes, ready for `load_state_dict`."""
    for what, value in (("settings", settings), ("learned", learned)):
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise SettingError(f"the {what} of an encoder must be an object, got {value!r}")
    return _named(name).restore(settings, learned)


__all__ = [
    "ENCODERS",
    "HAN",
    "MLP",
    "BowCNN",
    "Encoder",
    "Hashed",
    "ModuleEncoder",
    "Nothing",
    "Prepared",
    "Several",
    "Static",
    "TextCNN",
    "TfIdf",
    "Transformer",
    "UnknownEncoderError",
    "WordGraph",
    "evaluating",
    "make",
    "parameter_rates",
    "restore",
]
