"""NYT from the New York Times Annotated Corpus: a sample of 36,107 articles, three levels of online categories.

Categories are the taxonomic classifiers of the online producers (`Top/News/Sports`). `Top` is the root; a label's id is
the path below it (`News/Sports`), its name the last step.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hilap.corpus.datasets.nitf import Article, articles, parse
from hilap.corpus.datasets.preparation import (
    Plan,
    check_count,
    check_share,
    check_target,
    kept_taxonomy,
    parts_of,
    source_folder,
    write,
)
from hilap.corpus.splits import split_rows
from hilap.errors import CorpusError
from hilap.taxonomy.formats.building import complaint
from hilap.taxonomy.graph import Taxonomy

ROOT = "Top"


def prepare(
    source: str | Path,
    target: str | Path,
    *,
    seed: int = 0,
    train: int = 25_279,
    test: int = 10_828,
    levels: int = 3,
    min_documents: int = 40,
    valid_share: float = 0.1,
) -> dict[str, Any]:
    """Write a sample of the corpus into a folder of our own format.

    Parameters
    ----------
    source
        The corpus: a folder tree of `.xml` articles, or of its month archives (`.tgz`), read in place.
    target
        A new or empty folder: `taxonomy.jsonl`, `train.jsonl.gz`, `valid.jsonl.gz`, `test.jsonl.gz`, `about.json`.
    seed
        Draws the sample and divides it. The same articles and seed give the same sample, whatever order they are in.
    train, test
        The numbers of articles to draw, the paper's by default; where there are fewer, they are divided in this ratio.
    levels
        Categories are cut to so many levels below the root.
    min_documents
        Labels of fewer articles of the sample, those below them included, are removed.
    valid_share
        The share of the training articles that becomes the validation set and leaves the training set.
    """
    settings = _Settings(seed, train, test, levels, min_documents, valid_share)
    settings.check()
    check_target(target)
    folder = source_folder(source)
    sample, left_out = _draw(folder, settings)
    if not sample:
        raise CorpusError(
            f"{source}: no article with a category below {ROOT} is here; .xml files or .tgz archives are expected"
        )
    plan = _plan(sample, left_out, folder, settings)
    return write(plan, _texts(folder, sample, plan), target)


@dataclass(frozen=True)
class _Settings:
    seed: int
    train: int
    test: int
    levels: int
    min_documents: int
    valid_share: float

    def check(self) -> None:
        for name in ("train", "test", "levels", "min_documents"):
            check_count(name, getattr(self, name), 1)
        check_count("seed", self.seed, 0)
        check_share("valid_share", self.valid_share)

    @property
    def size(self) -> int:
        return self.train + self.test


class _Drawn(NamedTuple):
    key: int  # negative: the heap gives up the largest key first
    id: str
    where: str
    labels: tuple[str, ...]


def _draw(folder: Path, settings: _Settings) -> tuple[list[_Drawn], dict[str, int]]:
    """The articles with the smallest keys: a random sample that depends on ids and seed only. One pass, no texts."""
    heap: list[_Drawn] = []
    seen: set[str] = set()
    left_out = {"other_files": 0, "documents_without_labels": 0, "documents_without_text": 0}
    known: dict[str, str] = {}  # one string for each label, however many articles have it
    for where, raw in articles(folder):
        article = parse(raw, where)
        if article is None:
            left_out["other_files"] += 1
            continue
        name = _id(article, where)
        if name in seen:
            raise CorpusError(
                f"{where}: an article with the id {name!r} came before; "
                "if archives and unpacked files stand side by side, keep one of them"
            )
        seen.add(name)
        labels = tuple(_checked(path, known, where) for path in paths(article.categories, settings.levels))
        if not labels:
            left_out["documents_without_labels"] += 1
        elif not article.text:
            left_out["documents_without_text"] += 1
        else:
            _push(heap, _Drawn(-_key(settings.seed, name), name, where, labels), settings.size)
    found = len(seen) - left_out["documents_without_labels"] - left_out["documents_without_text"]
    left_out["documents_not_drawn"] = found - len(heap)
    return sorted(heap, key=lambda drawn: drawn.id), left_out


def _checked(path: str, known: dict[str, str], where: str) -> str:
    """The path itself, once it is known that it can be the id of a label."""
    if path not in known:
        fault = complaint(path, "label")
        if fault:
            raise CorpusError(f"{where}: {fault}")
        known[path] = path
    return known[path]


def _push(heap: list[_Drawn], drawn: _Drawn, size: int) -> None:
    if len(heap) < size:
        heapq.heappush(heap, drawn)
    else:
        heapq.heappushpop(heap, drawn)


def _key(seed: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}\n{name}".encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _id(article: Article, where: str) -> str:
    return article.id or Path(where.rpartition("!")[2]).name.partition(".")[0]


def paths(categories: Iterable[str], levels: int) -> list[str]:
    """The label ids in an article's categories, cut to some levels below the root.

    Examples
    --------
    >>> paths(["Top/News/World/Europe/Italy", "Top/News", "Top"], levels=3)
    ['News', 'News/World/Europe']
    """
    found = set()
    for category in categories:
        steps = [step.strip() for step in category.split("/")]
        if steps[0] == ROOT and all(steps) and len(steps) > 1:
            found.add("/".join(steps[1 : levels + 1]))
    return sorted(found)


def _plan(sample: list[_Drawn], left_out: dict[str, int], folder: Path, settings: _Settings) -> Plan:
    whole = _taxonomy(drawn.labels for drawn in sample)
    labels = whole.encode([drawn.labels for drawn in sample], close=True)
    keep = np.asarray(labels.sum(axis=0)).ravel() >= settings.min_documents
    taxonomy, columns = kept_taxonomy(whole, keep)
    labels = labels[:, columns]
    rows = np.flatnonzero(np.diff(labels.indptr) > 0)
    if len(rows) < 3:
        raise CorpusError(
            f"{folder}: {len(rows)} articles are left with labels of at least {settings.min_documents} articles; "
            "too few to divide"
        )
    labels = labels[rows]
    shares = {"train": settings.train / settings.size, "test": settings.test / settings.size}
    halves = split_rows(labels, shares, seed=settings.seed)
    parts = parts_of(labels, halves["train"], halves["test"], valid_share=settings.valid_share, seed=settings.seed)
    lost = {"labels_of_few_documents": int((~keep).sum()), "documents_of_such_labels_only": len(sample) - len(rows)}
    notes = (f"{settings.size:,} articles were asked for and {len(rows):,} could be used: divided in the same ratio",)
    return Plan(
        "nyt",
        taxonomy,
        [sample[i].id for i in rows],
        labels,
        parts,
        asdict(settings),
        left_out | lost,
        notes if len(rows) < settings.size else (),
    )


def _taxonomy(label_sets: Iterable[tuple[str, ...]]) -> Taxonomy:
    """The tree of all paths that occur, with every step on the way."""
    everything: set[str] = set()
    for path in {path for labels in label_sets for path in labels}:
        steps = path.split("/")
        everything.update("/".join(steps[:i]) for i in range(1, len(steps) + 1))
    order = sorted(everything, key=lambda path: path.split("/"))
    above = [[path.rpartition("/")[0]] if "/" in path else [] for path in order]
    return Taxonomy(order, above, [path.rpartition("/")[2] for path in order])


def _texts(folder: Path, sample: Iterable[_Drawn], plan: Plan) -> Iterator[tuple[int, str]]:
    """The second pass: only the articles of the sample are opened."""
    row_of = {name: row for row, name in enumerate(plan.ids)}
    rows = {drawn.where: row_of[drawn.id] for drawn in sample if drawn.id in row_of}
    for where, raw in articles(folder, rows):
        article = parse(raw, where)
        if article is not None:
            yield rows[where], article.text
