"""What is written is read again as it was, in every format, and never half."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hilap.corpus import Corpus, Examples, read, write
from hilap.errors import CorpusError, HilapError, SettingError
from hilap.taxonomy import Taxonomy

TAXONOMY = Taxonomy.of(
    {"a": [], "b": ["a"], "c|d": ["a"], " e, ": ["b"], "[f]": [], "g": ["b", "c|d"]}, {"a": "A name"}
)
LABELS = st.lists(st.lists(st.sampled_from(TAXONOMY.labels), max_size=4), min_size=1, max_size=6)
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\r\0")


@st.composite
def examples(draw) -> Examples:
    labels = draw(LABELS)
    n = len(labels)
    texts = draw(st.lists(st.text(CHARACTERS, max_size=20), min_size=n, max_size=n))
    number = st.floats(width=32, allow_infinity=False, allow_nan=True)
    rows = draw(st.lists(st.lists(number, min_size=3, max_size=3), min_size=n, max_size=n))
    features = draw(st.sampled_from([None, np.array(rows, dtype=np.float32)]))
    groups = draw(st.sampled_from([None, [f"g{k % 2}" for k in range(n)]]))
    return Examples.of(TAXONOMY, labels, texts=texts, features=features, ids=[f"i{k}" for k in range(n)], groups=groups)


def same(one: Examples, two: Examples) -> None:
    assert list(one.ids) == list(two.ids)
    assert one.label_sets == two.label_sets
    assert list(one.texts) == list(two.texts)
    assert one.groups == two.groups
    if one.features is None:
        assert two.features is None
    else:
        np.testing.assert_array_equal(one.features, two.features)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".csv", ".tsv", ".csv.gz", ".parquet"])
@given(given=examples())
def test_what_is_written_is_read_again(tmp_path_factory, suffix, given):
    if suffix.endswith(".zst"):
        pytest.importorskip("zstandard")
    path = tmp_path_factory.mktemp("round") / f"x{suffix}"
    write(given, path)
    columns = {"features": ["f*"]} if given.features is not None and suffix[1:4] in ("csv", "tsv") else {}
    group = {"group": "group"} if given.groups is not None else {}
    same(given, read(path, TAXONOMY, **columns, **group).load())


@given(labels=st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3), min_size=1, max_size=5), data=st.data())
def test_svmlight_is_read_again(tmp_path_factory, labels, data):
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": []})
    number = st.floats(width=32, allow_infinity=False, allow_nan=False) | st.just(0.0)
    rows = data.draw(st.lists(st.lists(number, min_size=4, max_size=4), min_size=len(labels), max_size=len(labels)))
    features = sparse.csr_array(np.array(rows, dtype=np.float32))
    given = Examples.of(taxonomy, labels, features=features, ids=[f"i {k}" for k in range(len(labels))])
    path = (
        tmp_path_factory.mktemp("round") / "x.svmlight"
    )  # a first line without features could be of any format, so it is named below
    write(given, path)
    again = read(path, taxonomy, format="svmlight", n_features=4).load()
    np.testing.assert_array_equal(again.features.toarray(), features.toarray())
    assert (again.ids, again.label_sets) == (given.ids, given.label_sets)


def test_carriage_returns_inside_a_cell_are_kept(tmp_path):
    given = Examples.of(TAXONOMY, [["a"], []], texts=["one\rtwo", "\rx"])
    write(given, tmp_path / "x.csv")
    assert read(tmp_path / "x.csv", TAXONOMY).load().texts == ["one\rtwo", "\rx"]


def test_the_most_specific_labels_are_written_or_all_of_them(tree, tmp_path):
    given = Examples.of(tree, [["beer", "shops"]], texts=["x"])
    for closed, wanted in ((False, ["beer", "shops"]), (True, ["food", "bars", "beer", "shops"])):
        write(given, tmp_path / "x.jsonl", closed=closed)
        assert json.loads((tmp_path / "x.jsonl").read_text())["labels"] == wanted


def test_a_corpus_is_written_block_after_block(tree, tmp_path):
    rows = [{"id": f"d{k}", "text": f"t{k}", "labels": ["beer"]} for k in range(9000)]
    for suffix in (".jsonl", ".csv", ".parquet"):
        write(read(rows, tree), tmp_path / f"x{suffix}")
        assert read(tmp_path / f"x{suffix}", tree).load().ids == [f"d{k}" for k in range(9000)]


def test_nothing_is_left_behind_where_a_corpus_breaks(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "x", "labels": []}\nbroken\n')
    for suffix in ("jsonl", "csv", "parquet"):
        target = tmp_path / "out" / f"y.{suffix}"
        target.parent.mkdir(exist_ok=True)
        with pytest.raises(CorpusError, match=r"x\.jsonl:2: not valid JSON"):
            write(read(path, tree), target)
        assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("examples", "name", "message"),
    [
        ({"texts": ["x"]}, "x.svm", "svmlight needs features, but these documents have none; write them as jsonl"),
        ({"features": np.array([[np.nan]])}, "x.svm", "svmlight cannot hold missing features; fill them"),
        ({"features": sparse.csr_array([[1.0]])}, "x.csv", "sparse features are not written as CSV; write them as"),
        ({"features": sparse.csr_array([[1.0]])}, "x.jsonl", "sparse features are not written as JSONL"),
        ({"texts": ["x"]}, "x.doc", "x.doc: the name does not tell the format; name it with format="),
        ({"texts": ["\ud800"]}, "x.jsonl", "is no character that UTF-8 can hold"),
    ],
)
def test_what_cannot_be_written_gets_a_clear_error(tree, tmp_path, examples, name, message):
    with pytest.raises(HilapError) as caught:
        write(Examples.of(tree, [["beer"]], **examples), tmp_path / name)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_label_that_svmlight_would_misread_is_refused(tmp_path):
    given = Examples.of(Taxonomy.of({"a b": []}), [["a b"]], features=np.array([[1.0]], dtype=np.float32))
    with pytest.raises(CorpusError, match="label 'a b' cannot be written as svmlight"):
        write(given, tmp_path / "x.svm")


def test_an_unknown_format_is_refused(tree, tmp_path):
    with pytest.raises(SettingError, match="format must be one of jsonl, csv, tsv, parquet, svmlight, got 'xls'"):
        write(Corpus.of(["x"], [[]], tree), tmp_path / "x", format="xls")
