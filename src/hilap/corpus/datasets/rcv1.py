"""RCV1-v2 (LYRL2004) from its official files: 804,414 news stories of Reuters, 103 topics on four levels.

`docs.txt` (`docid content`, one story a line) has the stories as they were written; in it, ids up to 26150 are the
training stories, as in LYRL2004. The token files (`lyrl2004_tokens_train.dat`, `lyrl2004_tokens_test_pt0.dat` to
`pt3`), which anybody can have, carry the official split but no texts: they hold stems, without stop words, and equal
ones stand side by side, so there are no sentences and no order of words. Where both are there, `docs.txt` is read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.corpus.datasets.preparation import (
    Plan,
    check_count,
    check_share,
    check_target,
    find_file,
    kept_taxonomy,
    need_file,
    parts_of,
    source_folder,
    write,
)
from hilap.errors import CorpusError, TaxonomyError, require
from hilap.files import read_lines
from hilap.taxonomy.graph import Indicator, Taxonomy
from hilap.taxonomy.readers import read as read_taxonomy

TRAIN_TOKENS = "lyrl2004_tokens_train.dat"
TEST_TOKENS = tuple(f"lyrl2004_tokens_test_pt{i}.dat" for i in range(4))
PLAIN = "docs.txt"
QRELS = ("rcv1-v2.topics.qrels", "rcv1-v2.topics.qrels.txt")
TAXONOMY = ("rcv1.topics.hier.orig", "rcv1.topics.hier.orig.txt")
LAST_TRAIN_ID = 26_150
READ = {  # what the texts are read from -> what `about.json` and the command line say of it
    "docs": f"texts as they were written, from {PLAIN}",
    "tokens": "stems of words without order or sentences, from the token files",
}


def prepare(
    source: str | Path, target: str | Path, *, seed: int = 0, valid_share: float = 0.1, text: str | None = None
) -> dict[str, Any]:
    """Write RCV1 into a folder of our own format.

    Parameters
    ----------
    source
        The folder with the official files, compressed or not.
    target
        A new or empty folder: `taxonomy.jsonl`, `train.jsonl.gz`, `valid.jsonl.gz`, `test.jsonl.gz`, `about.json`.
    seed
        Draws the validation stories.
    valid_share
        The share of the official training stories that becomes the validation set and leaves the training set.
    text
        Where texts come from: `"docs"` (`docs.txt`) or `"tokens"` (the token files). None takes `docs.txt` where it is.
    """
    check_share("valid_share", valid_share)
    check_count("seed", seed, 0)
    require(text is None or text in READ, "text", " or ".join(map(repr, READ)), text)
    check_target(target)
    folder = source_folder(source)
    stories = _Stories(folder, text)
    taxonomy, docs, labels, unused = _topics(folder)
    ids, in_train, unlabelled = _known(stories, docs)
    rows = np.searchsorted(docs, ids)
    chosen = labels[rows]
    train, test = np.flatnonzero(in_train), np.flatnonzero(~in_train)
    for part, mine in (("training", train), ("test", test)):
        if not len(mine):
            raise CorpusError(f"{source}: no {part} story has a topic; do the files belong together?")
    plan = Plan(
        "rcv1",
        taxonomy,
        [str(i) for i in ids.tolist()],
        chosen,
        parts_of(chosen, train, test, valid_share=valid_share, seed=seed),
        {"seed": seed, "valid_share": valid_share, "text": stories.kind},
        {"documents_without_labels": unlabelled, "labels_without_documents": unused},
        (
            READ[stories.kind],
            f"{len(train):,} official training stories, of which {valid_share:.0%} are the validation set",
        ),
    )
    return write(plan, _texts(stories, ids), target)


class _Stories:
    """All stories of the folder in the order of its files: where, id, whether of the training set, text."""

    def __init__(self, folder: Path, kind: str | None) -> None:
        plain, tokens = (find_file(folder, name) for name in (PLAIN, TRAIN_TOKENS))
        if kind is None and plain is None and tokens is None:
            raise CorpusError(f"{folder}: the stories are missing: there is neither {PLAIN} nor {TRAIN_TOKENS}")
        self.kind = kind or ("tokens" if plain is None else "docs")
        names = (PLAIN,) if self.kind == "docs" else (TRAIN_TOKENS, *TEST_TOKENS)
        self._files = [need_file(folder, f"a file of the stories (text={self.kind!r})", name) for name in names]

    def __iter__(self) -> Iterator[tuple[str, int, bool, str]]:
        for i, path in enumerate(self._files):
            if self.kind == "docs":
                yield from ((where, doc, doc <= LAST_TRAIN_ID, text) for where, doc, text in read_docs(path))
            else:
                yield from ((where, doc, i == 0, text) for where, doc, text in read_tokens(path))


def read_docs(path: str | Path) -> Iterator[tuple[str, int, str]]:
    """(file:line, id, text) from `docid content` lines."""
    for number, line in read_lines(path, CorpusError):
        if line.strip():
            pieces = line.split(None, 1)
            yield f"{path}:{number}", _doc_id(pieces[0], path, number), pieces[1].strip() if len(pieces) > 1 else ""


def read_tokens(path: str | Path) -> Iterator[tuple[str, int, str]]:
    """(file:line, id, tokens) from blocks of `.I id`, `.W` and lines of tokens."""
    doc: int | None = None
    words: list[str] | None = None
    start = 0
    for number, line in read_lines(path, CorpusError):
        text = line.strip()
        if text.split(None, 1)[:1] == [".I"]:
            if doc is not None:
                yield f"{path}:{start}", doc, _joined(words, path, start)
            doc, start, words = _doc_id(text[2:].strip(), path, number), number, None
        elif text == ".W" and doc is not None and words is None:
            words = []
        elif text:
            if words is None:
                wanted = "'.I id'" if doc is None else "'.W'"
                raise CorpusError(f"{path}:{number}: {wanted} is expected here, got {text[:40]!r}; is it a token file?")
            words.append(text)
    if doc is not None:
        yield f"{path}:{start}", doc, _joined(words, path, start)


def _joined(words: list[str] | None, path: str | Path, start: int) -> str:
    if words is None:
        raise CorpusError(f"{path}:{start}: this story has no '.W' line; is the file truncated?")
    return " ".join(words)


def _doc_id(text: str, path: str | Path, number: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise CorpusError(f"{path}:{number}: a story's id is a whole number, got {text[:40]!r}")
    return int(text)


def _topics(folder: Path) -> tuple[Taxonomy, NDArray[np.int64], Indicator, int]:
    """The topics that occur (and their ancestors), ids ascending, their topics; how many topics do not occur."""
    whole = read_taxonomy(need_file(folder, "the taxonomy of topics", *TAXONOMY), format="rcv1")
    path = need_file(folder, "the topics of the stories", *QRELS)
    docs, topics = _judgements(path, whole)
    ids, row = np.unique(docs, return_inverse=True)
    order = np.argsort(row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(ids)))])
    labels = whole.from_indices(topics[order], starts, close=True)
    keep = np.asarray(labels.sum(axis=0)).ravel() > 0
    taxonomy, columns = kept_taxonomy(whole, keep)
    return taxonomy, ids, labels[:, columns], int((~keep).sum())


def _judgements(path: Path, taxonomy: Taxonomy) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The pairs of `topic docid 1` lines."""
    docs, topics = array("q"), array("i")
    for number, line in read_lines(path, CorpusError):
        pieces = line.split()
        if not pieces:
            continue
        if len(pieces) != 3 or pieces[2] != "1":
            raise CorpusError(f"{path}:{number}: 'topic docid 1' is expected, got {line[:60]!r}")
        try:
            topics.append(taxonomy.index(pieces[0]))
        except TaxonomyError as fault:
            raise CorpusError(f"{path}:{number}: {fault}") from None
        docs.append(_doc_id(pieces[1], path, number))
    if not docs:
        raise CorpusError(f"{path}: the file is empty; the topics of the stories are expected")
    return np.array(docs, dtype=np.int64), np.array(topics, dtype=np.int32)


def _known(stories: _Stories, labelled: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
    """Ids of the stories with topics in the order of the files, which are for training; how many have no topic."""
    known = set(labelled.tolist())
    seen: set[int] = set()
    ids, in_train, unlabelled = array("q"), array("b"), 0
    for where, doc, train, _ in stories:
        if doc in seen:
            raise CorpusError(f"{where}: story {doc} is given twice; ids must be unique over all files")
        seen.add(doc)
        if doc in known:
            ids.append(doc)
            in_train.append(train)
        else:
            unlabelled += 1
    return np.array(ids, dtype=np.int64), np.array(in_train, dtype=bool), unlabelled


def _texts(stories: Iterable[tuple[str, int, bool, str]], ids: NDArray[np.int64]) -> Iterator[tuple[int, str]]:
    """The second pass: the same stories in the same order, now with their texts."""
    wanted = iter(enumerate(ids.tolist()))
    row, doc = next(wanted, (-1, None))
    for _, at, _, text in stories:
        if at == doc:
            yield row, text
            row, doc = next(wanted, (-1, None))
