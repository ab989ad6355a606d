"""Every format gives the same documents, whatever it is recognised from and however it is compressed."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma

import numpy as np
import pytest

from hilap.corpus import read
from hilap.corpus.readers import recognise
from hilap.errors import CorpusError

TEXTS = ["craft beer", 'a "quoted" word,\nand a second line', "", "Ünïcode; tab\there"]
LABELS = [["beer"], ["dominican", "shops"], [], ["Beer Bars", "food"]]
CLOSED = [
    ("food", "bars", "beer"),
    ("food", "caribbean", "dominican", "shops"),
    (),
    ("food", "bars", "beer"),
]
FEATURES = [[1.5, None], [0.25, -2.0], [None, 0.0], [1e-7, 3.0]]
WANTED = np.array([[np.nan if v is None else v for v in row] for row in FEATURES], dtype=np.float32)
RECORDS = [
    {"id": f"d{k}", "text": text, "labels": labels, "features": values, "site": f"s{k % 2}"}
    for k, (text, labels, values) in enumerate(zip(TEXTS, LABELS, FEATURES, strict=True))
]


def jsonl() -> str:
    return "".join(json.dumps(record) + "\n" for record in RECORDS)


def delimited(delimiter: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(["f0", "labels", "id", "text", "f1", "site", "not read"])
    for r in RECORDS:
        f0, f1 = ("" if v is None else v for v in r["features"])
        writer.writerow([f0, "|".join(r["labels"]), r["id"], r["text"], f1, r["site"], "x"])
    return out.getvalue()


def check(corpus, *, features: bool = True, groups: bool = True) -> None:
    examples = corpus.load()
    assert examples.ids == ["d0", "d1", "d2", "d3"]
    assert list(examples.texts) == TEXTS
    assert examples.label_sets == CLOSED
    if features:
        assert examples.features.dtype == np.float32
        np.testing.assert_array_equal(examples.features, WANTED)
    if groups:
        assert examples.groups == ["s0", "s1", "s0", "s1"]


# -- JSON ------------------------------------------------------------------------------------------------------------


def test_jsonl_holds_text_labels_features_and_groups(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(jsonl(), "utf-8")
    check(read(path, tree, group="site"))


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_is_read_like_jsonl(tree, tmp_path, indent):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(RECORDS, indent=indent), "utf-8")
    check(read(path, tree, group="site"))


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + jsonl().replace("\n", "\r\n").encode())
    check(read(path, tree, group="site"))


def test_a_string_in_jsonl_is_one_label(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "x", "labels": "beer"}\n{"text": "y", "labels": {"label": "bars"}}\n')
    assert [e.labels[-1] for e in read(path, tree)] == ["beer", "bars"]


def test_a_question_mark_is_a_missing_feature_in_jsonl(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"features": [1, "?"], "labels": []}\n{"features": [true, 2], "labels": []}\n')
    examples = read(path, tree).load()
    np.testing.assert_array_equal(examples.features, np.array([[1, np.nan], [1, 2]], dtype=np.float32))
    assert examples.texts is None


def test_features_may_stand_under_several_keys(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a1": 1, "b": 5, "a2": null, "labels": []}\n{"a2": 4, "b": 6, "a1": 3, "labels": []}\n')
    features = read(path, tree, features=["b", "a*"]).load().features
    np.testing.assert_array_equal(features, np.array([[5, 1, np.nan], [6, 3, 4]], dtype=np.float32))


def test_a_list_under_features_can_be_left_out(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "x", "features": ["soft", "warm"], "labels": []}\n')
    assert read(path, tree, features=()).load().features is None


def test_several_texts_are_joined_by_line_feeds(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"title": "T", "abstract": "A", "labels": []}\n')
    assert next(iter(read(path, tree, text=("title", "abstract")))).text == "T\nA"


def test_documents_may_have_labels_only(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 1, "labels": [{"label": "beer", "probability": 0.9}]}\n')
    example = next(iter(read(path, tree, text=None)))
    assert (example.id, example.text, example.labels) == ("1", None, ("food", "bars", "beer"))


@pytest.mark.parametrize(
    ("given", "wanted"), [("7", "7"), ('"x"', "x"), ("7.5", "7.5"), ("null", "2"), ('""', "2"), ("0", "0")]
)
def test_an_id_is_a_string_or_else_the_line_number(tree, tmp_path, given, wanted):
    path = tmp_path / "x.jsonl"
    path.write_text(f'\n{{"id": {given}, "text": "x", "labels": []}}\n')
    assert next(iter(read(path, tree))).id == wanted


def test_labels_may_be_absent_for_prediction(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "x"}\n{"text": "y", "labels": null}\n{"text": "z", "labels": ["beer"]}\n')
    assert [len(e.labels) for e in read(path, tree, labelled=False)] == [0, 0, 3]
    assert [len(e.labels) for e in read(path, tree, labels=None)] == [0, 0, 0]


def test_without_labels_no_taxonomy_is_needed(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "x"}\n')
    assert read(path, None, labels=None).load().labels.shape == (1, 0)


# -- CSV and TSV -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
def test_cells_are_read_whatever_divides_them(tree, tmp_path, delimiter):
    path = tmp_path / "x.txt"
    path.write_bytes(delimited(delimiter).encode())
    check(read(path, tree, features=["f*"], group="site"))
    check(read(path, tree, features=["f0", "f1"], group="site"))


def test_the_delimiter_is_the_one_that_gives_the_wanted_columns(tree, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('id;text;labels;"a,b,c,d,e"\n1;x, y;beer;z\n')
    assert next(iter(read(path, tree))).text == "x, y"


def test_a_cell_of_labels_may_be_a_json_list(tree, tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text('text\tlabels\nx\t["beer", "shops"]\ny\t beer | shops |\n')
    assert [e.labels for e in read(path, tree)] == [("food", "bars", "beer", "shops")] * 2


def test_another_label_separator(tree, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text,labels\nx,beer; shops\n")
    assert len(next(iter(read(path, tree, label_separator=";"))).labels) == 4


def test_the_line_of_a_record_is_where_it_starts(tree, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('text,labels\n"one\ntwo",beer\n\nx,shops\n')
    assert [e.id for e in read(path, tree)] == ["2", "5"]


def test_a_cell_may_be_longer_than_the_csv_module_allows(tree, tmp_path):
    path = tmp_path / "x.csv"
    before = csv.field_size_limit()
    path.write_text(f"text,labels\n{'x' * 500_000},beer\n")
    assert len(next(iter(read(path, tree))).text) == 500_000
    assert csv.field_size_limit() == before


# -- Parquet, frames and datasets ------------------------------------------------------------------------------------


def test_parquet_with_lists(tree, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(RECORDS), tmp_path / "x.parquet", row_group_size=3)
    check(read(tmp_path / "x.parquet", tree, group="site"))


def test_parquet_with_a_column_for_each_feature(tree, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {
        "id": ["d0", "d1"],
        "text": ["x", "y"],
        "labels": ["beer|shops", None],
        "f0": [1, None],
        "f1": [0.5, float("nan")],
        "f2": [True, False],
    }
    pq.write_table(pa.table(table), tmp_path / "x.parquet")
    examples = read(tmp_path / "x.parquet", tree, features=["f*"]).load()
    np.testing.assert_array_equal(examples.features, np.array([[1, 0.5, 1], [np.nan, np.nan, 0]], dtype=np.float32))
    assert [len(s) for s in examples.label_sets] == [4, 0]


def test_parquet_reads_only_the_columns_it_needs(tree, tmp_path, monkeypatch):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"text": ["x"], "labels": [["beer"]], "huge": ["y"]}), tmp_path / "x.parquet")
    asked = []
    original = pq.ParquetFile.iter_batches

    def spy(self, *args, **kwargs):
        asked.append(kwargs["columns"])
        return original(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    read(tmp_path / "x.parquet", tree).load()
    assert asked == [["text", "labels"]]


def test_a_pandas_frame_with_lists(tree):
    pd = pytest.importorskip("pandas")
    check(read(pd.DataFrame(RECORDS, index=[9, 9, 8, 8]), tree, group="site"))


def test_a_pandas_frame_with_a_column_for_each_feature(tree):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "id": [10, 11, None],
            "text": ["x", "y", "z"],
            "labels": ["beer|shops", None, float("nan")],
            "f0": [1.0, None, 2.0],
            "f1": pd.array([3, None, 5], dtype="Int64"),
        }
    )
    examples = read(frame, tree, features=["f0", "f1"]).load()
    np.testing.assert_array_equal(examples.features, np.array([[1, 3], [np.nan, np.nan], [2, 5]], dtype=np.float32))
    assert examples.ids == ["10", "11", "3"]
    assert [len(s) for s in examples.label_sets] == [4, 0, 0]


def test_numbers_with_gaps_are_labels_in_pandas():
    pd = pytest.importorskip("pandas")
    from hilap.taxonomy import Taxonomy

    frame = pd.DataFrame({"text": ["x", "y"], "labels": [7, None]})
    assert read(frame, Taxonomy.of({"7": []})).load().label_sets == [("7",), ()]


def test_a_polars_frame_with_lists(tree):
    pl = pytest.importorskip("polars")
    check(read(pl.DataFrame(RECORDS), tree, group="site"))


def test_a_polars_frame_with_a_column_for_each_feature(tree):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"text": ["x", "y"], "labels": ["beer|shops", None], "f0": [1, None], "f1": [0.5, 2.0]})
    examples = read(frame, tree, features=["f*"]).load()
    np.testing.assert_array_equal(examples.features, np.array([[1, 0.5], [np.nan, 2]], dtype=np.float32))
    assert [len(s) for s in examples.label_sets] == [4, 0]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_hugging_face_dataset(tree, streamed):
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list(RECORDS)
    check(read(dataset.to_iterable_dataset() if streamed else dataset.with_format("numpy"), tree, group="site"))


def test_coded_labels_of_a_hugging_face_dataset_are_known_by_their_names(tree):
    datasets = pytest.importorskip("datasets")
    codes = datasets.ClassLabel(names=["shops", "beer"])
    many = datasets.Features({"text": datasets.Value("string"), "labels": datasets.Sequence(codes)})
    one = datasets.Features({"text": datasets.Value("string"), "labels": codes})
    several = datasets.Dataset.from_dict({"text": ["x", "y"], "labels": [[0, 1], []]}, features=many)
    single = datasets.Dataset.from_dict({"text": ["x", "y"], "labels": [0, -1]}, features=one)
    assert read(several, tree).load().label_sets == [("food", "bars", "beer", "shops"), ()]
    assert read(single, tree).load().label_sets == [("shops",), ()]


def test_an_iterable_of_dicts(tree):
    check(read(RECORDS, tree, group="site"))
    check(read(iter(RECORDS), tree, group="site"))


# -- svmlight --------------------------------------------------------------------------------------------------------

SVM = "beer,shops 1:0.5 7:1\n# a comment\n 3:2 1:1 # id: mine\nshops\n2:4\n"


def test_svmlight_gives_sparse_rows(tree, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(SVM)
    examples = read(path, tree).load()
    wanted = [[0.5, 0, 0, 0, 0, 0, 1], [1, 0, 2, 0, 0, 0, 0], [0] * 7, [0, 4, 0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(examples.features.toarray(), np.array(wanted, dtype=np.float32))
    assert examples.features.dtype == np.float32
    assert examples.ids == ["1", "mine", "4", "5"]
    assert [len(s) for s in examples.label_sets] == [4, 0, 1, 0]


def test_svmlight_agrees_with_scikit_learn(tmp_path):
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    from hilap.taxonomy import Taxonomy

    rng = np.random.default_rng(0)
    features = rng.random((50, 9)).round(3) * (rng.random((50, 9)) < 0.3)
    gold = (rng.random((50, 4)) < 0.4).astype(int)
    taxonomy = Taxonomy.of({str(k): [] for k in range(4)})
    for zero_based in (True, False):
        path = str(tmp_path / f"{zero_based}.svm")
        dump_svmlight_file(features, gold, path, zero_based=zero_based, multilabel=True)
        theirs, labels = load_svmlight_file(path, multilabel=True, n_features=9, zero_based=zero_based)
        examples = read(path, taxonomy, n_features=9, index_base=int(not zero_based)).load()
        np.testing.assert_allclose(examples.features.toarray(), theirs.toarray(), rtol=1e-6)
        assert [{float(x) for x in s} for s in examples.label_sets] == [set(s) for s in labels]


def test_the_width_of_svmlight_is_that_of_all_files_in_every_block(tree, tmp_path):
    (tmp_path / "a.svm").write_text("beer 1:1\nbeer 2:1\n")
    (tmp_path / "b.svm").write_text("beer 0:1\nbeer 5:1\n")
    blocks = list(read(str(tmp_path / "*.svm"), tree).batches(1))
    assert [b.features.shape for b in blocks] == [(1, 6)] * 4
    assert [b.features.indices.tolist() for b in blocks] == [[1], [2], [0], [5]]


# -- Clus ARFF -------------------------------------------------------------------------------------------------------

ARFF = """% a comment
@RELATION 'toy'
@ATTRIBUTE a numeric
@ATTRIBUTE colour {red, 'dark blue'}
@ATTRIBUTE class hierarchical 01,01/01,02
@ATTRIBUTE b real
@DATA
1.5,red,01/01@02,?
?,'dark blue',02,-2e3
% nothing
"""


def test_clus_gives_features_and_its_own_taxonomy(tmp_path):
    path = tmp_path / "x.arff"
    path.write_text(ARFF + "3,?,?,4\n")
    corpus = read(path)
    examples = corpus.load()
    assert corpus.taxonomy.parents("01/01") == ("01",)
    assert examples.label_sets == [("01", "01/01", "02"), ("02",), ()]
    wanted = [[1.5, 1, 0, np.nan], [np.nan, 0, 1, -2000], [3, np.nan, np.nan, 4]]
    np.testing.assert_array_equal(examples.features, np.array(wanted, dtype=np.float32))
    assert examples.ids == ["8", "9", "11"]


def test_sparse_rows_of_clus_are_the_dense_ones(tmp_path):
    header = ARFF[: ARFF.index("1.5,red")]
    dense, thin = tmp_path / "dense.arff", tmp_path / "thin.arff"
    dense.write_text(header + "1.5,red,01/01@02,?\n0,'dark blue',02,7\n0,red,?,0\n")
    thin.write_text(header + "{0 1.5, 2 01/01@02, 3 ?}\n{1 'dark blue', 2 02, 3 7}\n{}\n")
    a, b = read(dense, None).load(), read(thin, None).load()
    assert a.label_sets == b.label_sets
    np.testing.assert_array_equal(a.features, b.features.toarray())


def test_sparse_and_dense_rows_of_clus_may_be_mixed(tmp_path):
    header = ARFF[: ARFF.index("1.5,red")]
    one, two = tmp_path / "one.arff", tmp_path / "two.arff"
    one.write_text(header + "1.5,red,02,2\n{3 4}\n")
    two.write_text(header + "{3 4}\n1.5,red,02,2\n")
    a, b = read(one, None).load(), read(two, None).load()
    np.testing.assert_array_equal(a.features, b.features.toarray()[::-1])


def test_keys_and_texts_of_clus(tmp_path):
    path = tmp_path / "x.arff"
    path.write_text(
        "@relation x\n@attribute gene key\n@attribute text string\n@attribute class hierarchical a,a/b\n@data\n"
        "YAL1,'it''s',a/b\n".replace("it''s", "it\\'s")
        + 'YAL2,"x, y",a\n'
    )
    examples = read(path, None).load()
    assert examples.ids == ["YAL1", "YAL2"]
    assert examples.texts == ["it's", "x, y"]
    assert examples.features is None


@pytest.mark.data
def test_the_papers_files_are_read_whole(data_folder):
    corpus = read(data_folder / "go" / "cellcycle_GO.valid.arff.gz", None)
    examples = corpus.load()
    assert (len(examples), examples.features.shape[1], len(corpus.taxonomy)) == (848, 77, 4125)
    assert np.isnan(examples.features).any()
    assert not corpus.taxonomy.inconsistent_rows(examples.labels).any()


# -- recognition and compression -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "format"),
    [
        (b'{"a": 1}\n', "jsonl"),
        (b'\xef\xbb\xbf  {"a": 1}', "jsonl"),
        (b'garbage\n{"a": 1}\n{"a": 2}\n', "jsonl"),
        (b'\n [\n{"a": 1}]', "json"),
        (b"id,text,labels\n1,x,y\n", "csv"),
        (b"id\ttext\n", "csv"),
        (b"id;text\n", "csv"),
        (b"% c\n\n@relation x\n", "clus"),
        (b"a,b 1:0.5 2:1 # c\n", "svmlight"),
        (b"GO:1,GO:2 1:0.5\n", "svmlight"),
        (b"1:0.5\n", "svmlight"),
        (b"PAR1\x15\x04", "parquet"),
        (b"", None),
        (b"nothing known\n", None),
        (b"\x00\x01,\x02", None),
    ],
)
def test_a_format_is_recognised_from_its_first_bytes(head, format):
    assert recognise(head) == format


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, "zst"])
@pytest.mark.parametrize("content", [jsonl, lambda: delimited(",")])
def test_compressed_files_are_recognised_too(tree, tmp_path, pack, content):
    if pack == "zst":
        pack = pytest.importorskip("zstandard").ZstdCompressor().compress
    path = tmp_path / "no suffix"
    path.write_bytes(pack(content().encode()))
    features = ["f*"] if content is not jsonl else None
    check(read(path, tree, group="site", features=features))


def test_a_named_format_is_not_guessed(tree, tmp_path):
    path = tmp_path / "x"
    path.write_text("text\n[not json\n")
    assert next(iter(read(path, tree, format="csv", labelled=False))).text == "[not json"
    with pytest.raises(CorpusError, match="not valid JSON"):
        read(path, tree, format="jsonl").load()
