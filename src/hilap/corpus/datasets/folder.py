"""A data set in our own format: `taxonomy.jsonl` and `{train,valid,test}.jsonl`, compressed or not, in one folder."""

from __future__ import annotations

from pathlib import Path

from hilap.corpus.datasets.preparation import PARTS, TAXONOMY_FILE, find_file, need_file
from hilap.corpus.examples import Examples
from hilap.corpus.readers import read as read_corpus
from hilap.errors import CorpusError
from hilap.taxonomy.readers import read as read_taxonomy


def load_folder(folder: str | Path) -> dict[str, Examples]:
    """The parts that are there, over one taxonomy. At least one of train, valid and test must be."""
    if not Path(folder).is_dir():
        raise CorpusError(f"{folder}: there is no such folder; check the path")
    taxonomy = read_taxonomy(need_file(folder, "the taxonomy", TAXONOMY_FILE), format="jsonl")
    files = {part: path for part in PARTS if (path := find_file(folder, f"{part}.jsonl")) is not None}
    if not files:
        raise CorpusError(f"{folder}: there is no part of a corpus: train.jsonl, valid.jsonl or test.jsonl is needed")
    return {part: read_corpus(path, taxonomy, format="jsonl").load() for part, path in files.items()}
