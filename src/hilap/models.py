"""Every kind of model: its name in a model folder, and the classifier that opens it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from hilap.baselines import METHODS
from hilap.errors import ModelError
from hilap.storage import Stored, load_folder

KINDS = {"hilap": ("hilap.classifier", "HiLAPClassifier"), **METHODS}
"""Kind -> the module and the name of its classifier, which has a `from_stored`. Imported when needed."""


def load(folder: str | Path) -> Any:
    """Open any saved classifier. Nothing in the folder is executed.

    Parameters
    ----------
    folder
        What a classifier's `save`, or `hilap train`, wrote.
    """
    return opened(load_folder(folder))


def opened(stored: Stored) -> Any:
    """The classifier in a model folder that is read already."""
    if stored.kind not in KINDS:
        raise ModelError(
            f"{stored.folder}: a model of kind {stored.kind!r} (hilap {stored.hilap}) is not known here; update hilap"
        )
    module, name = KINDS[stored.kind]
    return getattr(import_module(module), name).from_stored(stored)


__all__ = ["KINDS", "load", "opened"]
