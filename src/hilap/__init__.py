"""Put documents at the right places of a taxonomy: consistent, on several paths, as deep as the evidence goes.

The names below are the whole front door. They are imported when first used, so that `import hilap` and the command
line start at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hilap.version import __version__ as __version__

if TYPE_CHECKING:
    from hilap import metrics, samples
    from hilap.classifier import HiLAPClassifier
    from hilap.corpus.readers import read as read_corpus
    from hilap.corpus.source import Corpus
    from hilap.errors import HilapError
    from hilap.models import load
    from hilap.taxonomy.graph import Taxonomy
    from hilap.taxonomy.readers import read as read_taxonomy

_HOMES = {
    "Corpus": ("hilap.corpus.source", "Corpus"),
    "HiLAPClassifier": ("hilap.classifier", "HiLAPClassifier"),
    "HilapError": ("hilap.errors", "HilapError"),
    "Taxonomy": ("hilap.taxonomy.graph", "Taxonomy"),
    "load": ("hilap.models", "load"),
    "metrics": ("hilap.metrics", None),
    "read_corpus": ("hilap.corpus.readers", "read"),
    "read_taxonomy": ("hilap.taxonomy.readers", "read"),
    "samples": ("hilap.samples", None),
}

__all__ = [
    "Corpus",
    "HiLAPClassifier",
    "HilapError",
    "Taxonomy",
    "load",
    "metrics",
    "read_corpus",
    "read_taxonomy",
    "samples",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hilap' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    home = import_module(module)
    value = home if attribute is None else getattr(home, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
