"""What the preparations of RCV1, NYT and Yelp have in common: a plan of who goes where, and a folder written whole.

The official collections are too large to hold. So every preparation first reads what it needs to decide (ids, labels,
counts), makes a `Plan`, and then streams the texts once more straight into the three files of the target folder.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.corpus.examples import Examples
from hilap.corpus.splits import split_rows
from hilap.corpus.statistics import statistics
from hilap.errors import CorpusError, HilapError, require
from hilap.files import MOST_LINE_BYTES, writing
from hilap.taxonomy.graph import Indicator, Taxonomy

PARTS = ("train", "valid", "test")
TAXONOMY_FILE = "taxonomy.jsonl"
ABOUT_FILE = "about.json"
COMPRESSED = ("", ".gz", ".zst", ".bz2", ".xz")


@dataclass(frozen=True)
class Plan:
    """Which documents are taken, with which labels, into which part. Texts come later, one at a time."""

    name: str
    taxonomy: Taxonomy
    ids: Sequence[str]
    labels: Indicator  # (documents, labels) closed upward
    parts: dict[str, NDArray[np.int64]]  # rows of train, valid and test
    parameters: dict[str, Any]
    left_out: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def about(self) -> dict[str, Any]:
        """What was done and what came out, as plain JSON values."""
        figures = statistics(Examples(self.taxonomy, self.ids, self.labels)).to_json()
        return {
            "name": self.name,
            "parameters": self.parameters,
            "documents": {part: len(self.parts[part]) for part in PARTS},
            "statistics": figures,
            "left_out": self.left_out,
            "notes": list(self.notes),
        }


def find_file(folder: str | Path, *names: str) -> Path | None:
    """The first of these files that is in the folder, compressed or not."""
    for name in names:
        for ending in COMPRESSED:
            path = Path(folder) / f"{name}{ending}"
            if path.is_file():
                return path
    return None


def need_file(folder: str | Path, what: str, *names: str) -> Path:
    """The same, where there must be one."""
    path = find_file(folder, *names)
    if path is None:
        looked = " or ".join(names)
        raise CorpusError(f"{folder}: {what} is missing: there is no {looked} (plain, .gz, .zst, .bz2 or .xz)")
    return path


def source_folder(folder: str | Path) -> Path:
    """The folder with the official files, if it is one."""
    path = Path(folder)
    if not path.is_dir():
        raise CorpusError(f"{folder}: there is no such folder; give the folder with the official files")
    return path


def kept_taxonomy(taxonomy: Taxonomy, keep: NDArray[np.bool_]) -> tuple[Taxonomy, NDArray[np.int64]]:
    """The part of a taxonomy that is kept, with its columns in the old one. A kept label's parents must be kept too."""
    columns = np.flatnonzero(keep)
    labels = [taxonomy.labels[i] for i in columns]
    parents = [taxonomy.parents(label) for label in labels]
    names, meant = ([texts[i] for i in columns] for texts in (taxonomy.names, taxonomy.definitions))
    return Taxonomy(labels, parents, names, definitions=meant), columns


def parts_of(
    labels: Indicator, train: NDArray[np.int64], test: NDArray[np.int64], *, valid_share: float, seed: int
) -> dict[str, NDArray[np.int64]]:
    """Train, valid and test, where valid is drawn at random out of train, as the paper does without a held-out set."""
    shares = {"train": 1 - valid_share, "valid": valid_share}
    inside = split_rows(labels[train], shares, seed=seed)
    return {"train": train[inside["train"]], "valid": train[inside["valid"]], "test": test}


def check_share(name: str, value: float) -> None:
    """A share that leaves something on both sides."""
    require(isinstance(value, (int, float)) and 0 < value < 1, name, "a number between 0 and 1", value)


def check_count(name: str, value: int, least: int) -> None:
    """A whole number that is not too small."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= least, name, f"a whole number, {least} or more", value)


def check_target(folder: str | Path) -> Path:
    """Where the prepared files will stand. Asked before hours of reading, not after."""
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise CorpusError(f"{path}: is there already and not an empty folder; choose another, or remove it")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise CorpusError(f"{path}: cannot be made, {above} is a file and not a folder; choose another")
    return path


def write(plan: Plan, texts: Iterable[tuple[int, str]], target: str | Path) -> dict[str, Any]:
    """Write the folder: taxonomy, three parts, and what was done. Texts are (row of the plan, text), in any order."""
    part_of = np.full(len(plan.ids), -1, dtype=np.int64)
    for i, part in enumerate(PARTS):
        part_of[plan.parts[part]] = i
    specific = plan.taxonomy.most_specific_matrix(plan.labels)
    about = plan.about()
    with _folder(target) as folder:
        with ExitStack() as stack:
            files = [stack.enter_context(writing(folder / f"{part}.jsonl.gz", "wb")) for part in PARTS]
            for row, text in texts:
                columns = specific.indices[specific.indptr[row] : specific.indptr[row + 1]]
                labels = [plan.taxonomy.labels[k] for k in columns]
                files[part_of[row]].write(_line({"id": plan.ids[row], "text": text, "labels": labels}))
        with writing(folder / TAXONOMY_FILE, "wb") as stream:
            stream.writelines(_line(record) for record in plan.taxonomy.records())
        with writing(folder / ABOUT_FILE) as stream:
            stream.write(json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    return about


def _line(record: dict[str, Any]) -> bytes:
    # JSON may hold halves of a surrogate pair, which no UTF-8 file can: they become question marks.
    raw = json.dumps(record, ensure_ascii=False).encode("utf-8", errors="replace") + b"\n"
    if len(raw) > MOST_LINE_BYTES:
        raise CorpusError(
            f"document {record.get('id')!r} is longer than {MOST_LINE_BYTES:,} bytes; it cannot be one line"
        )
    return raw


@contextmanager
def _folder(target: str | Path) -> Iterator[Path]:
    """A folder that appears under its name only when everything in it is written. Folders above it are made."""
    path = check_target(target)
    above = path.absolute().parent
    made = [folder for folder in (above, *above.parents) if not folder.exists()]
    try:
        above.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=above))
    except OSError as fault:
        _remove_empty(made)
        raise HilapError(f"{path}: cannot be written ({fault.strerror})") from None
    try:
        yield draft
        umask = os.umask(0)
        os.umask(umask)
        draft.chmod(0o777 & ~umask)
        if path.exists():
            path.rmdir()  # an empty folder in the way
        draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        _remove_empty(made)
        raise


def _remove_empty(folders: Iterable[Path]) -> None:
    """Take folders away again, from the inside out; one that somebody has put something into stays."""
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
