"""The paper's five data sets from their official files, and folders in our own format.

FunCat and GO are small and read as they are. RCV1, NYT and Yelp are under licence and large: `prepare` writes them once
into a folder of our own format, with the paper's preprocessing, and `load` reads that folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilap.corpus.datasets import clus, nyt, rcv1, yelp
from hilap.corpus.datasets.folder import load_folder
from hilap.corpus.datasets.preparation import PARTS, TAXONOMY_FILE
from hilap.corpus.examples import Examples
from hilap.errors import CorpusError, SettingError, did_you_mean


@dataclass(frozen=True)
class Dataset:
    """One data set of the paper."""

    name: str
    what: str
    official: Callable[[str | Path], dict[str, Examples]] | None = None  # reads the official files
    prepare: Callable[..., dict[str, Any]] | None = None  # turns the official files into a folder of ours


DATASETS = {
    data.name: data
    for data in (
        Dataset("rcv1", "RCV1-v2: news stories of Reuters, 103 topics, a tree", prepare=rcv1.prepare),
        Dataset("nyt", "New York Times Annotated Corpus: a sample, three levels of a tree", prepare=nyt.prepare),
        Dataset("yelp", "Yelp: businesses as their reviews, a DAG of categories", prepare=yelp.prepare),
        Dataset("funcat", "yeast genes (cellcycle) in FunCat, a tree", official=clus.load_funcat),
        Dataset("go", "yeast genes (cellcycle) in the Gene Ontology, a DAG", official=clus.load_go),
    )
}
"""Name -> data set, in the order of the paper's Table 1."""


def load(name: str, folder: str | Path) -> dict[str, Examples]:
    """The parts `train`, `valid` and `test` of a data set, over one taxonomy.

    Parameters
    ----------
    name
        One of `DATASETS`.
    folder
        For funcat and go the folder with the official ARFF files; for rcv1, nyt and yelp the one `prepare` has written.
    """
    data = _named(name)
    if data.official is not None:
        return data.official(folder)
    if Path(folder).is_dir() and not (Path(folder) / TAXONOMY_FILE).is_file():
        raise CorpusError(
            f"{folder}: there is no {TAXONOMY_FILE}; write this folder first: prepare({name!r}, official_files, folder)"
        )
    return load_folder(folder)


def prepare(name: str, source: str | Path, target: str | Path, *, seed: int = 0, **options: Any) -> dict[str, Any]:
    """Turn the official files of rcv1, nyt or yelp into a folder of our own format; gives what `about.json` says.

    Parameters
    ----------
    name
        `rcv1`, `nyt` or `yelp`.
    source
        The folder with the official files.
    target
        A new or empty folder, not the one of the official files. It appears when all of it is written, or not at all.
    seed
        Draws samples and splits.
    **options
        The thresholds and sizes of this data set; see `hilap.corpus.datasets.rcv1.prepare`, `nyt.prepare` and
        `yelp.prepare`. The paper's are the defaults.
    """
    data = _named(name)
    if data.prepare is None:
        raise SettingError(f"{name} needs no preparation: load({name!r}, folder) reads its official files")
    known = set(data.prepare.__kwdefaults__ or ())
    for option in options:
        if option not in known:
            near = did_you_mean(option, known)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(known))}"
            raise SettingError(f"{name} has no option {option!r}; {hint}")
    if Path(source).resolve() == Path(target).resolve():
        raise SettingError(f"{target}: this is the folder with the official files; name another to write (--out)")
    return data.prepare(source, target, seed=seed, **options)


def _named(name: str) -> Dataset:
    if name not in DATASETS:
        near = did_you_mean(str(name), DATASETS)
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(DATASETS)}"
        raise SettingError(f"there is no data set {name!r}; {hint} (load_folder reads any folder of our own format)")
    return DATASETS[name]


__all__ = ["DATASETS", "PARTS", "Dataset", "load", "load_folder", "prepare"]
