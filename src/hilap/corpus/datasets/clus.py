"""FunCat and GO as the makers of Clus give them: three ARFF files each, the taxonomy in the header.

Looked for are `cellcycle_FUN.train.arff` and so on, compressed or not, in the folder itself or where the archives of
the Clus site unpack them (`cellcycle_FUN/`, `datasets_FUN/cellcycle_FUN/`).
"""

from __future__ import annotations

from pathlib import Path

from hilap.corpus.datasets.preparation import PARTS, find_file, source_folder
from hilap.corpus.examples import Examples
from hilap.corpus.readers import read as read_corpus
from hilap.errors import CorpusError
from hilap.taxonomy.readers import read as read_taxonomy


def load_funcat(folder: str | Path) -> dict[str, Examples]:
    """Train, valid and test of FunCat *cellcycle*."""
    return load_clus(folder, "cellcycle_FUN")


def load_go(folder: str | Path) -> dict[str, Examples]:
    """Train, valid and test of Gene Ontology *cellcycle*."""
    return load_clus(folder, "cellcycle_GO")


def load_clus(folder: str | Path, stem: str) -> dict[str, Examples]:
    """Train, valid and test of any data set of the Clus site, such as `derisi_FUN` or `eisen_GO`.

    All three are over the taxonomy of the training file's header; the other two must have the same.
    """
    home = source_folder(folder)
    files = {part: _file(home, stem, part) for part in PARTS}
    taxonomy = read_taxonomy(files["train"], format="clus")
    for part, path in files.items():
        if part != "train" and read_taxonomy(path, format="clus") != taxonomy:
            raise CorpusError(f"{path}: the taxonomy in the header differs from that of {files['train']}")
    return {part: read_corpus(path, taxonomy, format="clus").load() for part, path in files.items()}


def _file(folder: Path, stem: str, part: str) -> Path:
    name = f"{stem}.{part}.arff"
    places = [folder, folder / stem, folder / f"datasets_{stem.rpartition('_')[2]}" / stem]
    for place in places:
        found = find_file(place, name)
        if found is not None:
            return found
    for place in places:
        if (place / f"{name}.zip").is_file():
            raise CorpusError(f"{place / name}.zip: unpack this archive first (unzip)")
    raise CorpusError(f"{folder}: there is no {name} (plain, .gz, .zst, .bz2 or .xz), nor in {stem}/ below it")
