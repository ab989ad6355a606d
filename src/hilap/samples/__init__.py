"""Data sets that come with the package, small and free: to try everything without a download."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from hilap.corpus.datasets.folder import load_folder
from hilap.corpus.examples import Examples
from hilap.errors import CorpusError, SettingError, did_you_mean
from hilap.files import read_text

_NAMES = ("pypi_topics",)


def names() -> tuple[str, ...]:
    """The samples that there are.

    Examples
    --------
    >>> names()
    ('pypi_topics',)
    """
    return _NAMES


def load(name: str) -> dict[str, Examples]:
    """The parts `train`, `valid` and `test` of a sample, over one taxonomy.

    Examples
    --------
    >>> {part: len(examples) for part, examples in load("pypi_topics").items()}
    {'train': 2931, 'valid': 419, 'test': 838}
    """
    return load_folder(path(name))


def about(name: str) -> str:
    """Where a sample comes from and what may be done with it."""
    return read_text(path(name) / "ABOUT.txt", CorpusError)


def path(name: str) -> Path:
    """The folder of a sample: `taxonomy.jsonl`, the three parts, `ABOUT.txt` and `LICENSES.tsv`."""
    if name not in _NAMES:
        near = did_you_mean(str(name), _NAMES)
        hint = f"did you mean {near!r}?" if near else f"there is {', '.join(_NAMES)}"
        raise SettingError(f"there is no sample {name!r}; {hint}")
    return Path(str(files("hilap.samples") / name))


__all__ = ["about", "load", "names", "path"]
