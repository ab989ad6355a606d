"""Every kind of model: its name in a model folder, and the classifier that opens it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from hilap.errors import ModelError
from hilap.storage import load_folder

KINDS = {"hilap": ("hilap.classifier", "HiLAPClassifier")}
"""Kind -> the module and the name of its classifier, which has a `from_stored`. Imported when needed."""


def load(folder: str | Path) -> Any:
    """Open any saved classifier. Nothing in the folder is executed.

    Parameters
    ----------
    folder
        What a classifier's `save`, or `hilap train`, wrote.
    """
    stored = load_folder(folder)
    if stored.kind not in KINDS:
        raise ModelError(
            f"{folder}: a model of kind {stored.kind!r} (hilap {stored.hilap}) is not known here; update hilap"
        )
    module, name = KINDS[stored.kind]
    return getattr(import_module(module), name).from_stored(stored)


__all__ = ["KINDS", "load"]
