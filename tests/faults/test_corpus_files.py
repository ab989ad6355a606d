"""Every bad corpus gets one sentence: what, where, what was given, what to do. Each promised sentence is here."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from hilap.corpus import read
from hilap.errors import CorpusError, HilapError, SettingError
from hilap.files import MOST_LINE_BYTES, read_lines

GOOD = '{"id": "g", "text": "x", "labels": ["beer"]}\n'


def complaint(source, taxonomy, **options) -> str:
    with pytest.raises(HilapError) as caught:
        read(source, taxonomy, **options).load()
    return str(caught.value)


def skipped(source, taxonomy, **options) -> list[tuple[int, str]]:
    corpus = read(source, taxonomy, bad_lines="skip", **options)
    corpus.load()
    return [(line.line, line.reason) for line in corpus.report.skipped_lines]


# -- lines of JSON ---------------------------------------------------------------------------------------------------

BAD_JSONL = {
    '{"text": "x", "labels": [}': "not valid JSON (Expecting value at column 26)",
    '{"text": "x", "labels": ["beer"]': "not valid JSON (Expecting ',' delimiter at column 33)",
    '{"text": "x", "labels": []} {}': "not valid JSON (Extra data at column 29)",
    "[1]": "a JSON object is needed on every line, got a list",
    "null": "a JSON object is needed on every line, got null",
    "17": "a JSON object is needed on every line, got a number",
    '"x"': "a JSON object is needed on every line, got a string",
    "true": "a JSON object is needed on every line, got true or false",
    '{"text": "x", "labels": [], "n": NaN}': "NaN is not JSON; write null for a missing value",
    '{"text": "x", "labels": [], "n": -Infinity}': "-Infinity is not JSON; write null for a missing value",
    "[" * 100_000: "not valid JSON (nested too deeply)",
    '{"text": "x", "labels": [], "n": ' + "9" * 5000 + "}": "not valid JSON (a number has too many digits)",
    '{"text": "cut \\ud83d", "labels": []}': "'\\ud83d' is half of a character; the text was cut in the middle of one",
    '{"labels": []}': "there is no 'text'; every document needs one, an empty string at least",
    '{"text": null, "labels": []}': "'text' must be a string, got null",
    '{"text": 5, "labels": []}': "'text' must be a string, got 5",
    '{"text": "x"}': "'labels' is missing; write [] for a document without labels",
    '{"text": "x", "labels": null}': "'labels' is null; write [] for a document without labels",
    '{"text": "x", "labels": true}': "'labels' must be a list of labels, got True",
    '{"text": "x", "labels": [null]}': "a label must be a string, got null",
    '{"text": "x", "labels": [""]}': "a label is an empty string",
    '{"text": "x", "labels": [[]]}': "a label is an empty list; a path needs at least one step",
    '{"text": "x", "labels": [{"name": "beer"}]}': "a label must be a string, got {'name': 'beer'}",
    '{"id": [1], "text": "x", "labels": []}': "'id' must be a string or a number, got [1]",
    '{"id": true, "text": "x", "labels": []}': "'id' must be a string or a number, got True",
}


@pytest.mark.parametrize(("line", "reason"), BAD_JSONL.items(), ids=range(len(BAD_JSONL)))
def test_a_bad_line_of_json_is_an_error_or_is_skipped(tree, tmp_path, line, reason):
    path = tmp_path / "reviews.jsonl"
    path.write_text(GOOD + line + "\n" + GOOD)
    assert complaint(path, tree) == f"{path}:2: {reason}"
    assert skipped(path, tree) == [(2, reason)]


def test_the_house_sentence_for_an_unknown_label(tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews.jsonl").write_text(GOOD * 16 + '{"text": "x", "labels": ["Beer Bar"]}\n')
    sentence = "reviews.jsonl:17: label 'Beer Bar' is not in the taxonomy; did you mean 'Beer Bars'?"
    assert complaint("reviews.jsonl", tree) == sentence
    assert complaint("reviews.jsonl", tree, bad_lines="skip") == sentence  # it has a policy of its own


def test_an_ambiguous_name_is_an_error_with_file_and_line(tmp_path):
    from hilap.taxonomy import Taxonomy

    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "x", "labels": ["N"]}\n')
    twice = Taxonomy.of({"a": [], "b": []}, {"a": "N", "b": "N"})
    for policy in ("error", "drop", "add"):
        message = complaint(path, twice, unknown=policy)
        assert message == f"{path}:1: label 'N' is ambiguous; give one of the ids 'a', 'b'"


def test_a_missing_key_names_the_keys_that_are_there(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"Text": "x", "labels": []}\n')
    assert complaint(path, tree) == (
        f"{path}:1: there is no key 'text'; the keys are 'Text', 'labels'; did you mean 'Text'?"
    )


def test_a_document_without_group_is_bad(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "x", "labels": [], "site": "a"}\n{"text": "x", "labels": []}\n')
    assert complaint(path, tree, group="site") == f"{path}:2: there is no 'site'; every document needs a group"


BAD_FEATURES = {
    "[1, 2, 3]": "there are 3 features, but the documents before have 2",
    "[1]": "there are 1 features, but the documents before have 2",
    '[1, "x"]': "feature 2 must be a number, got 'x'; write null for a missing value",
    "[1, [2]]": "feature 2 must be a number, got [2]; write null for a missing value",
    "[1, 1e999]": "feature 2 is infinite or too large; give a finite number, or none where it is missing",
    "[1, 1e39]": "feature 2 is infinite or too large; give a finite number, or none where it is missing",
    "[1, " + "9" * 400 + "]": "feature 2 is infinite or too large; give a finite number, or none where it is missing",
    "5": "'features' must be a list of numbers, got 5",
    "null": "'features' must be a list of numbers, got null",
    "[NaN, 1]": "NaN is not JSON; write null for a missing value",
}


@pytest.mark.parametrize(("features", "reason"), BAD_FEATURES.items(), ids=range(len(BAD_FEATURES)))
def test_bad_features_are_an_error_or_the_line_is_skipped(tree, tmp_path, features, reason):
    path = tmp_path / "x.jsonl"
    good = '{"text": "x", "labels": ["beer"], "features": [1, 2]}\n'
    path.write_text(good + f'{{"text": "y", "labels": [], "features": {features}}}\n' + good)
    assert complaint(path, tree) == f"{path}:2: {reason}"
    corpus = read(path, tree, bad_lines="skip")
    examples = corpus.load()
    assert [(line.line, line.reason) for line in corpus.report.skipped_lines] == [(2, reason)]
    np.testing.assert_array_equal(examples.features, np.array([[1, 2], [1, 2]], dtype=np.float32))
    assert examples.label_sets == [("food", "bars", "beer")] * 2


def test_features_in_one_part_only_are_an_error(tree, tmp_path):
    with_, without = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with_.write_text('{"text": "x", "labels": [], "features": [1]}\n')
    without.write_text('{"text": "x", "labels": []}\n')
    assert "b.jsonl:1: there are no features, but the documents before have 1" in complaint([with_, without], tree)
    assert "a.jsonl:1: there are features, but the documents before have none" in complaint([without, with_], tree)


def test_texts_in_one_part_only_are_an_error(tree, tmp_path):
    with_, without = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with_.write_text('{"text": "x", "labels": [], "features": [1]}\n')
    without.write_text('{"labels": [], "features": [1]}\n')
    assert "b.jsonl:1: there is no text here, but the documents before have" in complaint([with_, without], tree)
    assert "a.jsonl:1: there is a text here, but the documents before have none" in complaint([without, with_], tree)


# -- a JSON array ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"text": "x", "labels": []}\n{"text": "y"}]', ":2: not valid JSON (',' or ']' is needed after an object)"),
        ('[{"text": "x", "labels": []},\n{"text": }]', ":2: not valid JSON (Expecting value at column 10)"),
        ('[{"text": "x", "labels": []},\n\n5]', ":3: a JSON object is needed on every line, got a number"),
        ('[{"text": "x", "labels": []}', ":1: not valid JSON (',' or ']' is needed after an object)"),
        ('[{"text": "x", "labels": []}] x', ":1: not valid JSON (something follows the array)"),
        ('[{"text": "x", "labels": [], "n": NaN}]', ":1: NaN is not JSON; write null for a missing value"),
        ('[{"text": "\\ud83d", "labels": []}]', ":1: '\\ud83d' is half of a character"),
        ("[" * 100_000, ":1: not valid JSON (nested too deeply)"),
        ("[" + "9" * 5000 + "]", ":1: not valid JSON (a number has too many digits)"),
        ("[]", ": no document could be read; it is empty"),
    ],
    ids=range(10),
)
def test_a_bad_array_is_an_error_with_its_line(tree, tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_text(content)
    assert complaint(path, tree).startswith(f"{path}{message}")


def test_no_array_where_one_was_named(tree, tmp_path):
    path = tmp_path / "x.json"
    path.write_text("\n{}")
    assert complaint(path, tree, format="json") == f"{path}:2: a JSON array is needed, which starts with '['"


# -- cells -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {},
            "there is no column 'text'; the columns are 'id', 'body', 'labels', 'f0'; say which one it is with text=",
        ),
        (
            {"text": "bod"},
            "there is no column 'bod'; the columns are 'id', 'body', 'labels', 'f0'; did you mean 'body'?",
        ),
        ({"text": "body", "labels": "l"}, "there is no column 'l'; the columns are 'id', 'body', 'labels', 'f0'; say"),
        ({"text": "body", "id": "key"}, "there is no column 'key'; the columns are"),
        ({"text": "body", "group": "site"}, "there is no column 'site'; the columns are"),
        (
            {"text": "body", "features": ["g*"]},
            "no column starts with 'g'; the columns are 'id', 'body', 'labels', 'f0'",
        ),
        ({"text": "body", "features": ["g"]}, "there is no column 'g'; the columns are"),
    ],
)
def test_a_missing_column_names_the_columns_that_are_there(tree, tmp_path, options, message):
    path = tmp_path / "x.csv"
    path.write_text("id,body,labels,f0\n1,x,beer,1\n")
    for policy in ("error", "skip"):
        assert complaint(path, tree, bad_lines=policy, **options).startswith(f"{path}:1: {message}")


BAD_CSV = {
    "1,x": "there are 2 cells, but the header has 4",
    "1,x,beer,1,2": "there are 5 cells, but the header has 4",
    "1,x,\"['beer']\",1": 'the labels [\'beer\'] are not a JSON list; write ["a", "b"] or a|b',
    '1,"x"y,beer,1': "something follows a closing quote; write a quote inside a quoted cell twice",
    "1,x,beer,one": "column 'f0' must hold a number, got 'one'",
    "1,x,beer,nan": "column 'f0' must hold a number, got 'nan'; leave the cell empty for a missing value",
    "1,x,beer,NaN": "column 'f0' must hold a number, got 'NaN'; leave the cell empty for a missing value",
    "1,x,beer,-inf": "column 'f0' must hold a finite number, got '-inf'",
    "1,x,beer,1_000": "column 'f0' must hold a number, got '1_000'",
}


@pytest.mark.parametrize(("line", "reason"), BAD_CSV.items(), ids=range(len(BAD_CSV)))
def test_a_bad_record_is_an_error_or_is_skipped(tree, tmp_path, line, reason):
    path = tmp_path / "x.csv"
    path.write_text(f'id,text,labels,f0\n1,"two\nlines",beer,?\n{line}\n2,y,beer,1\n')
    assert complaint(path, tree, features=["f0"]) == f"{path}:4: {reason}"
    assert skipped(path, tree, features=["f0"]) == [(4, reason)]


def test_a_quote_that_is_never_closed_names_the_line_where_it_opens(tree, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('text,labels\nx,beer\n"y,beer\nz,beer\n')
    reason = "a quote is opened but never closed; write a quote inside a quoted cell twice"
    assert complaint(path, tree) == f"{path}:3: {reason}"


def test_a_column_that_is_there_twice_is_an_error(tree, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text,labels,text\nx,beer,y\n")
    assert complaint(path, tree) == f"{path}:1: column 'text' is there 2 times; name every column differently"


def test_a_header_alone_is_no_corpus(tree, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,text,labels\n")
    assert complaint(path, tree) == f"{path}: no document could be read; it is empty"


# -- svmlight and Clus -----------------------------------------------------------------------------------------------

BAD_SVM = {
    "beer qid:3 1:2": "'qid:' is for rankings and has no meaning here; remove it",
    "beer 1:2:3": "the value of index 1 must be a number, got '2:3'",
    "beer 1": "index:value is needed, got '1'",
    "beer x:1": "index:value is needed, got 'x:1'",
    "beer 1:x": "the value of index 1 must be a number, got 'x'",
    "beer 1:nan": "the value of index 1 must be a finite number, got 'nan'; leave missing values out",
    "beer 1:inf": "the value of index 1 must be a finite number, got 'inf'; leave missing values out",
    "beer 1:1e39": "a value is infinite or too large; give finite numbers",
    "beer 1:2 1:3": "index 1 is there twice",
    "beer 9999999999:1": "index 9999999999 is larger than 2,000,000,000",
    "beer -1:3": "index:value is needed, got '-1:3'",
}


@pytest.mark.parametrize(("line", "reason"), BAD_SVM.items(), ids=range(len(BAD_SVM)))
def test_a_bad_line_of_svmlight_is_an_error_or_is_skipped(tree, tmp_path, line, reason):
    path = tmp_path / "x.svm"
    path.write_text(f"beer 1:2 3:4\n{line}\n")
    for options in ({}, {"n_features": 5, "index_base": 1}):
        assert complaint(path, tree, **options) == f"{path}:2: {reason}"
        assert skipped(path, tree, **options) == [(2, reason)]


def test_an_index_beyond_the_given_width_is_bad(tree, tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("beer 1:2\nbeer 4:1\n")
    assert complaint(path, tree, n_features=3) == f"{path}:2: an index must be from 1 to 3, got 4"
    path.write_text("beer 1:2\nbeer 0:1\n")
    assert complaint(path, tree, n_features=3, index_base=1) == f"{path}:2: an index must be from 1 to 3, got 0"


HEADER = "@relation x\n@attribute a numeric\n@attribute c {r,g}\n@attribute class hierarchical p,p/q\n@data\n"
BAD_CLUS = {
    "1,r": "there are 2 values, but the header has 3 attributes",
    "1,r,p,p": "there are 4 values, but the header has 3 attributes",
    "x,r,p": "column 'a' must hold a number, got 'x'",
    "nan,r,p": "column 'a' must hold a number, got 'nan'; leave the cell empty for a missing value",
    "1,b,p": "attribute 'c' must be one of r, g, got 'b'",
    "1,'r,p": "a quote is not closed, or something follows it, at column 3",
    "{0 1, 2 p": "a sparse row starts with '{' but does not end with '}'",
    "{7 1}": "a sparse row needs positions from 0 to 2, got '7'",
    "{x 1}": "a sparse row needs positions from 0 to 2, got 'x'",
    "{0 1, 0 2}": "position 0 is there twice",
    "{0}": "position 0 has no value",
    "{1 'r}": "a quote is not closed, or a pair is empty, at column 2",
}


@pytest.mark.parametrize(("line", "reason"), BAD_CLUS.items(), ids=range(len(BAD_CLUS)))
def test_a_bad_row_of_clus_is_an_error_or_is_skipped(tmp_path, line, reason):
    path = tmp_path / "x.arff"
    path.write_text(f"{HEADER}1,r,p/q\n{line}\n")
    assert complaint(path, None) == f"{path}:7: {reason}"
    assert skipped(path, None) == [(7, reason)]


def test_an_attribute_that_can_be_no_feature_is_an_error(tmp_path):
    path = tmp_path / "x.arff"
    path.write_text("@relation x\n@attribute when date\n@attribute class hierarchical p\n@data\n1,p\n")
    assert complaint(path, None).startswith(f"{path}: attribute 'when' is of type 'date'; numeric, real, integer or")


@pytest.mark.parametrize(("kind", "reason"), [("{}", "there are none"), ("{'r}", "a quote is not closed")])
def test_choices_that_cannot_be_read_are_an_error(tmp_path, kind, reason):
    path = tmp_path / "x.arff"
    path.write_text(f"{HEADER}1,r,p/q\n".replace("{r,g}", kind))
    message = complaint(path, None)
    assert message.startswith(f"{path}: the choices {kind!r:.60} of attribute 'c' cannot be read: {reason}")


def test_files_of_clus_with_other_attributes_are_an_error(tmp_path):
    one, two = tmp_path / "1.arff", tmp_path / "2.arff"
    one.write_text(f"{HEADER}1,r,p/q\n")
    two.write_text(f"{HEADER}1,r,p/q\n".replace("{r,g}", "{g,r}"))
    assert complaint([one, two], None) == f"{two}: the attributes are not those of {one}; read the files apart"


def test_a_header_without_taxonomy_is_an_error(tmp_path):
    path = tmp_path / "x.arff"
    path.write_text("@relation x\n@attribute a numeric\n@data\n1\n")
    assert complaint(path, None).startswith(f"{path}:3: there is no attribute with labels")


# -- Parquet and frames ----------------------------------------------------------------------------------------------


def test_a_damaged_parquet_file_is_an_error(tree, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["x"] * 50, "labels": [["beer"]] * 50}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    for policy in ("error", "skip"):
        assert complaint(path, tree, bad_lines=policy).startswith(f"{path}: the Parquet file is damaged (")


def test_a_bad_row_of_parquet_is_an_error_or_is_skipped(tree, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["x", None], "labels": [["beer"], []], "f": ["1", "2"]}), path)
    assert complaint(path, tree) == f"{path}, row 2: 'text' must be a string, got null"
    assert skipped(path, tree) == [(2, "'text' must be a string, got null")]
    assert complaint(path, tree, features=["f"]) == f"{path}: column 'f' must hold numbers, but is of type string"
    assert complaint(path, tree, text="t").startswith(f"{path}: there is no column 't'; the columns are 'text'")


def test_a_bad_frame_is_an_error_with_its_row(tree):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    data = {"text": ["x", "y"], "labels": ["beer", "bear"], "f": ["a", "b"], "g": [1.0, float("inf")]}
    for frame in (pd.DataFrame(data), pl.DataFrame(data)):
        assert complaint(frame, tree).startswith("DataFrame, row 2: label 'bear' is not in the taxonomy; did you mean")
        assert complaint(frame, tree, text="t").startswith("DataFrame: there is no column 't'; the columns are 'text'")
        message = complaint(frame, tree, features=["f"], unknown="drop")
        assert message == "DataFrame, row 1: feature 'f' must be a number, got 'a'; write null for a missing value"
        message = complaint(frame, tree, features=["g"], unknown="drop")
        assert message.startswith("DataFrame, row 2: feature 1 is infinite or too large")
        assert complaint(frame.head(0), tree) == "DataFrame: no document could be read; it is empty"


def test_relatives_of_frames_are_refused(tree):
    pl, datasets = pytest.importorskip("polars"), pytest.importorskip("datasets")
    assert "got a polars LazyFrame; call .collect() on it" in complaint(pl.LazyFrame({"text": ["x"]}), tree)
    splits = datasets.DatasetDict({"train": datasets.Dataset.from_dict({"text": ["x"]})})
    assert complaint(splits, tree) == "a single split is needed, got a DatasetDict; choose one of 'train'"


def test_what_is_no_document_in_an_iterable_is_bad(tree):
    rows = [{"text": "x", "labels": []}, "beer", ["x"]]
    assert complaint(rows, tree) == "records, row 2: a dict is needed for every document, got 'beer'"
    assert [line for line, _ in skipped(rows, tree)] == [2, 3]


@pytest.mark.parametrize("source", [None, 5, b"x", {"text": "x"}])
def test_what_is_no_source_is_refused(tree, source):
    assert complaint(source, tree).startswith("a corpus is a path, a frame, a dataset or an iterable of dicts, got ")


# -- files -----------------------------------------------------------------------------------------------------------


def test_an_empty_file_is_an_error(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    for content in ("", "\n \n"):
        path.write_text(content)
        assert complaint(path, tree) == f"{path}: the file is empty; a corpus needs at least one document"
        assert complaint(path, tree, format="jsonl") == f"{path}: no document could be read; it is empty"
        assert complaint([path, path], tree) == f"{path} and 1 more: all files are empty"


def test_a_missing_file_and_a_folder_are_errors(tree, tmp_path):
    assert complaint(tmp_path / "no.jsonl", tree) == f"{tmp_path / 'no.jsonl'}: there is no such file; check the path"
    assert complaint(tmp_path, tree) == f"{tmp_path}: this is a folder; a file is needed"
    pattern = str(tmp_path / "*.jsonl")
    assert complaint(pattern, tree) == f"{pattern}: no file is of this pattern; check the path"
    assert complaint([], tree) == "no file and no document was given; a corpus needs at least one"
    assert complaint(["-", "x"], tree) == "standard input cannot be one of several files; give it alone"


def test_a_file_of_no_known_format_is_an_error(tree, tmp_path):
    path = tmp_path / "x"
    path.write_text("Lorem ipsum\n")
    assert complaint(path, tree).startswith(f"{path}:1: the format is not recognised; name it with format=..., one of")
    path.write_bytes("{}".encode("utf-16"))
    assert complaint(path, tree) == f"{path}: the file is in UTF-16; save it as UTF-8"


def test_parts_of_different_formats_are_an_error(tree, tmp_path):
    (tmp_path / "a").write_text(GOOD)
    (tmp_path / "b").write_text("id,text,labels\n")
    message = complaint([tmp_path / "a", tmp_path / "b"], tree)
    assert message.startswith(f"{tmp_path / 'b'}: this is csv, but {tmp_path / 'a'} is jsonl; give files of one format")


def test_invalid_utf8_is_an_error_or_is_skipped(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(GOOD.encode() + b'{"text": "\xff"}\n' + GOOD.encode())
    reason = "not valid UTF-8 (byte 0xff); save the file as UTF-8"
    assert complaint(path, tree) == f"{path}:2: {reason}"
    assert skipped(path, tree) == [(2, reason)]


def test_a_10_mb_line_is_an_error_or_is_skipped(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(GOOD + json.dumps({"text": "x" * 10_000_000, "labels": []}) + "\n" + GOOD)
    assert complaint(path, tree).startswith(f"{path}:2: the line is longer than 8,000,000 bytes; is this the right")
    assert [line for line, _ in skipped(path, tree)] == [2]


@pytest.mark.parametrize("length", [1, 9, 10, 11, 25, 30, 31])
@pytest.mark.parametrize("ended", [True, False])
def test_the_rest_of_a_line_that_is_too_long_is_passed_over(tmp_path, length, ended):
    path = tmp_path / "x"
    path.write_bytes(b"a\n" + b"x" * length + (b"\nb\n" if ended else b""))
    bad = []
    lines = list(read_lines(path, CorpusError, most_bytes=10, on_bad=lambda number, fault: bad.append(number)))
    long = length + ended > 10
    assert bad == ([2] if long else [])
    assert lines == [(1, "a"), *([] if long else [(2, "x" * length)]), *([(3, "b")] if ended else [])]


def test_a_truncated_gz_is_an_error_always(tree, tmp_path):
    path = tmp_path / "x.jsonl.gz"
    rng = np.random.default_rng(0)
    rows = [json.dumps({"text": rng.bytes(40).hex(), "labels": ["beer"]}) for _ in range(3000)]
    whole = gzip.compress("\n".join(rows).encode())
    path.write_bytes(whole[: len(whole) // 2])
    for policy in ("error", "skip"):
        message = complaint(path, tree, bad_lines=policy)
        assert message == f"{path}: the compressed file ends too early; it is truncated, get it again"


def test_where_every_line_is_bad_the_first_reason_is_told(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("{\n{\n")
    assert complaint(path, tree, bad_lines="skip").startswith(
        f"{path}: no document could be read; all 2 were bad, the first at {path}:1: not valid JSON ("
    )


# -- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unknown": "keep"}, "unknown must be 'error', 'drop' or 'add', got 'keep'"),
        ({"bad_lines": "ignore"}, "bad_lines must be 'error' or 'skip', got 'ignore'"),
        ({"label_separator": ""}, "label_separator must be at least one character, got ''"),
        ({"path_separator": ""}, "path_separator must be at least one character, or None, got ''"),
        (
            {"format": "cvs"},
            "format must be one of jsonl, json, csv, tsv, parquet, clus, svmlight; did you mean 'csv'?",
        ),
        ({"n_features": 0}, "n_features must be at least 1, or None, got 0"),
        ({"n_features": 3}, "n_features must be None for jsonl: it is for svmlight, got 3"),
        ({"index_base": 2}, "index_base must be 'auto', 0 or 1, got 2"),
        ({"index_base": 1}, "index_base must be 'auto' for jsonl: it is for svmlight, got 1"),
    ],
)
def test_a_bad_parameter_is_told(tree, tmp_path, options, message):
    path = tmp_path / "x.jsonl"
    path.write_text(GOOD)
    with pytest.raises(SettingError) as caught:
        read(path, tree, **options)
    assert str(caught.value).startswith(message)


def test_parameters_that_a_source_cannot_use_are_told(tree, tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("beer 1:1\n")
    assert complaint(path, tree, group="g") == "group must be None, as svmlight has no groups, got 'g'"
    assert "features must be None, as svmlight has no named columns" in complaint(path, tree, features=["a"])
    assert complaint([{}], tree, format="jsonl") == "format must be None for documents in memory, got 'jsonl'"
    assert "n_features must be None for documents in memory" in complaint([{}], tree, n_features=2)


def test_labels_need_a_taxonomy(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(GOOD)
    assert complaint(path, None) == (
        f"{path}: a taxonomy is needed to understand the labels; "
        "give one, or build it from the labels with unknown='add'"
    )


def test_the_longest_line_is_what_the_messages_say():
    assert MOST_LINE_BYTES == 8_000_000
