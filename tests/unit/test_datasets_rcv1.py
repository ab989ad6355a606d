"""RCV1-v2: files of the official shape, made here, and what becomes of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hilap.corpus.datasets import load, prepare
from hilap.corpus.datasets.rcv1 import read_docs, read_tokens
from hilap.errors import CorpusError, SettingError

HIER = """parent: None child: Root child-description: Root
parent: Root child: CCAT                   child-description: CORPORATE/INDUSTRIAL
parent: CCAT child: C15                    child-description: PERFORMANCE
parent: C15 child: C151                   child-description: ACCOUNTS/EARNINGS
parent: Root child: ECAT                   child-description: ECONOMICS
parent: Root child: GCAT                   child-description: GOVERNMENT/SOCIAL
parent: GCAT child: GMIL                   child-description: MILLENNIUM ISSUES
"""
TOPICS = {0: ["C151", "C15", "CCAT"], 1: ["ECAT"], 2: ["CCAT", "ECAT"], 3: ["GCAT"]}


def tokens(ids: list[int]) -> str:
    return "".join(f".I {i}\n.W\nrecov word{i} excit\nsecond line\n\n" for i in ids)


def collection(folder: Path, n_train: int = 20, n_test: int = 12, *, plain: bool = False) -> Path:
    folder.mkdir()
    train = [2286 + i for i in range(n_train)]
    test = [26151 + i for i in range(n_test)]
    (folder / "rcv1.topics.hier.orig").write_text(HIER)
    lines = [f"{topic} {doc} 1\n" for doc in train + test for topic in TOPICS[doc % 4]]
    with gzip.open(folder / "rcv1-v2.topics.qrels.gz", "wt") as stream:
        stream.writelines(reversed(lines))
    if plain:
        (folder / "docs.txt").write_text("".join(f"{doc} recov word{doc}\n" for doc in test + train))
    else:
        (folder / "lyrl2004_tokens_train.dat").write_text(tokens(train))
        for i in range(4):
            with gzip.open(folder / f"lyrl2004_tokens_test_pt{i}.dat.gz", "wt") as stream:
                stream.write(tokens(test[i::4]))
    return folder


def written(folder: Path) -> dict[str, list[dict]]:
    parts = {}
    for part in ("train", "valid", "test"):
        with gzip.open(folder / f"{part}.jsonl.gz", "rt", encoding="utf-8") as stream:
            parts[part] = [json.loads(line) for line in stream]
    return parts


def test_the_whole_by_hand(tmp_path: Path) -> None:
    about = prepare("rcv1", collection(tmp_path / "source"), tmp_path / "rcv1", seed=4)
    parts = written(tmp_path / "rcv1")
    assert {part: len(records) for part, records in parts.items()} == {"train": 18, "valid": 2, "test": 12}
    assert sorted(int(r["id"]) for r in parts["train"] + parts["valid"]) == list(range(2286, 2306))
    assert sorted(int(r["id"]) for r in parts["test"]) == list(range(26151, 26163))
    for record in parts["train"] + parts["valid"] + parts["test"]:
        doc = int(record["id"])
        assert record["text"] == f"recov word{doc} excit second line"
        assert record["labels"] == [["C151"], ["ECAT"], ["CCAT", "ECAT"], ["GCAT"]][doc % 4]  # the most specific
    assert about["statistics"]["labels"] == 5  # the root is no label, GMIL has no story
    assert about["statistics"]["levels"] == 3
    assert about["left_out"] == {"documents_without_labels": 0, "labels_without_documents": 1}
    assert about["notes"] == [
        "stems of words without order or sentences, from the token files",
        "20 official training stories, of which 10% are the validation set",
    ]


def test_what_is_prepared_can_be_loaded(tmp_path: Path) -> None:
    prepare("rcv1", collection(tmp_path / "source"), tmp_path / "rcv1")
    parts = load("rcv1", tmp_path / "rcv1")
    assert {part: len(examples) for part, examples in parts.items()} == {"train": 18, "valid": 2, "test": 12}
    taxonomy = parts["train"].taxonomy
    assert taxonomy.name("C151") == "ACCOUNTS/EARNINGS"
    assert all(part.taxonomy is taxonomy for part in parts.values())
    for example in parts["test"]:
        assert set(example.labels) == set(TOPICS[int(example.id) % 4])


def test_plain_documents_are_divided_by_their_id(tmp_path: Path) -> None:
    prepare("rcv1", collection(tmp_path / "source", plain=True), tmp_path / "rcv1")
    parts = written(tmp_path / "rcv1")
    assert {part: len(records) for part, records in parts.items()} == {"train": 18, "valid": 2, "test": 12}
    assert min(int(record["id"]) for record in parts["test"]) == 26151


def test_where_both_are_there_the_written_stories_are_read_unless_the_others_are_asked_for(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")  # tokens
    written_as = "".join(f"{doc} The recovery of word{doc}.\n" for doc in (*range(2286, 2306), *range(26151, 26163)))
    (source / "docs.txt").write_text(written_as)
    wanted = {"docs": "The recovery of word{}.", "tokens": "recov word{} excit second line"}
    for text, kind in ((None, "docs"), ("docs", "docs"), ("tokens", "tokens")):
        options = {} if text is None else {"text": text}
        about = prepare("rcv1", source, tmp_path / f"{text}", **options)
        parts = written(tmp_path / f"{text}")
        assert {part: len(records) for part, records in parts.items()} == {"train": 18, "valid": 2, "test": 12}
        assert {r["text"] for r in parts["test"]} == {wanted[kind].format(r["id"]) for r in parts["test"]}
        assert about["parameters"]["text"] == kind
        assert ("docs.txt" if kind == "docs" else "the token files") in about["notes"][0]


def test_another_source_of_texts_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"text must be 'docs' or 'tokens', got 'words'"):
        prepare("rcv1", tmp_path / "nowhere", tmp_path / "rcv1", text="words")


@pytest.mark.parametrize(
    ("plain", "text", "message"),
    [
        (True, "tokens", r"stories \(text='tokens'\) is missing: there is no lyrl2004_tokens_train\.dat"),
        (False, "docs", r"stories \(text='docs'\) is missing: there is no docs\.txt"),
    ],
)
def test_texts_that_are_asked_for_and_not_there_are_not_taken_from_elsewhere(
    tmp_path: Path, plain: bool, text: str, message: str
) -> None:
    with pytest.raises(CorpusError, match=message):
        prepare("rcv1", collection(tmp_path / "source", plain=plain), tmp_path / "rcv1", text=text)


def test_the_seed_draws_the_validation_stories(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    drawn = []
    for i, seed in enumerate((1, 1, 2)):
        prepare("rcv1", source, tmp_path / str(i), seed=seed)
        drawn.append([record["id"] for record in written(tmp_path / str(i))["valid"]])
    assert drawn[0] == drawn[1] != drawn[2]


def test_stories_without_topics_are_left_out_and_counted(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    (source / "lyrl2004_tokens_train.dat").write_text(tokens([7, *range(2286, 2306), 8]))
    about = prepare("rcv1", source, tmp_path / "rcv1")
    assert about["left_out"]["documents_without_labels"] == 2
    assert about["documents"]["train"] == 18


def test_a_token_file_may_end_without_an_empty_line(tmp_path: Path) -> None:
    path = tmp_path / "tokens.dat"
    path.write_text(".I 1\n.W\na b\nc\n.I 2\n.W\n\n.I 3\n.W\nd")
    assert [(doc, text) for _, doc, text in read_tokens(path)] == [(1, "a b c"), (2, ""), (3, "d")]


def test_documents_are_an_id_and_the_rest_of_the_line(tmp_path: Path) -> None:
    path = tmp_path / "docs.txt"
    path.write_text("1 a  b\n\n2\tc d \n3\n")
    assert [(doc, text) for _, doc, text in read_docs(path)] == [(1, "a  b"), (2, "c d"), (3, "")]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("lyrl2004_tokens_train.dat", "recov\n", r"train\.dat:1: '\.I id' is expected here, got 'recov'"),
        ("lyrl2004_tokens_train.dat", ".I 2286\nrecov\n", r"train\.dat:2: '\.W' is expected here, got 'recov'"),
        ("lyrl2004_tokens_train.dat", ".I x\n", r"train\.dat:1: a story's id is a whole number, got 'x'"),
        ("lyrl2004_tokens_train.dat", ".I 2286\n", r"train\.dat:1: this story has no '\.W' line"),
        ("lyrl2004_tokens_train.dat", tokens([2286, 2286]), r"train\.dat:6: story 2286 is given twice"),
        ("lyrl2004_tokens_train.dat", tokens([5]), r"no training story has a topic"),
        ("rcv1-v2.topics.qrels", "C151 2286\n", r"qrels:1: 'topic docid 1' is expected, got 'C151 2286'"),
        ("rcv1-v2.topics.qrels", "C151 2286 1\n\nC152 1 1\n", r"qrels:3: label 'C152' is not in the taxonomy"),
        ("rcv1-v2.topics.qrels", "C151 -1 1\n", r"qrels:1: a story's id is a whole number, got '-1'"),
        ("rcv1-v2.topics.qrels", "", r"qrels: the file is empty"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path: Path, file: str, content: str, message: str) -> None:
    source = collection(tmp_path / "source")
    (source / file).write_text(content)
    with pytest.raises(CorpusError, match=message):
        prepare("rcv1", source, tmp_path / "rcv1")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("rcv1.topics.hier.orig", "the taxonomy of topics is missing: there is no rcv1.topics.hier.orig"),
        ("rcv1-v2.topics.qrels.gz", "the topics of the stories is missing: there is no rcv1-v2.topics.qrels"),
        ("lyrl2004_tokens_train.dat", "there is neither docs.txt nor lyrl2004_tokens_train.dat"),
        ("lyrl2004_tokens_test_pt2.dat.gz", "there is no lyrl2004_tokens_test_pt2.dat"),
    ],
)
def test_a_missing_file_is_named(tmp_path: Path, missing: str, message: str) -> None:
    source = collection(tmp_path / "source")
    (source / missing).unlink()
    with pytest.raises(CorpusError, match=message):
        prepare("rcv1", source, tmp_path / "rcv1")
