"""The corpus as a whole: lazy, in order, readable again, in parts, from standard input, with a true report."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from hilap.corpus import Corpus, read
from hilap.corpus.report import SeenIds
from hilap.errors import CorpusError, SettingError
from hilap.taxonomy import Taxonomy


def write_lines(path, rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def documents(n: int, start: int = 0, label: str = "beer") -> list[dict]:
    return [{"id": f"d{k}", "text": f"text {k}", "labels": [label]} for k in range(start, start + n)]


# -- laziness --------------------------------------------------------------------------------------------------------


def test_nothing_beyond_the_asked_block_is_read(tree):
    taken = []

    def source():
        for row in documents(100):
            taken.append(row["id"])
            yield row

    blocks = read(source(), tree).batches(10)
    assert taken == []
    assert len(next(blocks)) == 10
    assert len(taken) == 10


def test_an_error_behind_the_asked_block_does_not_come_early(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in documents(5)) + "broken\n")
    blocks = read(path, tree).batches(5)
    assert len(next(blocks)) == 5
    with pytest.raises(CorpusError, match=r"x\.jsonl:6: not valid JSON"):
        next(blocks)


def peak_of(path, taxonomy) -> int:
    corpus = read(path, taxonomy)
    tracemalloc.start()
    try:
        assert sum(len(block) for block in corpus.batches(512)) > 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_file(tree, tmp_path):
    """Eight bytes a document are kept to count repeated ids; texts are not."""
    peaks = []
    for n in (2_000, 16_000):
        path = tmp_path / f"{n}.jsonl"
        with path.open("w") as out:
            for k in range(n):
                out.write(json.dumps({"id": f"d{k}", "text": "word " * 60, "labels": ["beer"]}) + "\n")
        peaks.append(peak_of(path, tree))
    assert peaks[1] < peaks[0] + 24 * 14_000, peaks  # the text of the longer file alone is over 4 MB more
    assert peaks[1] < 3_000_000


@pytest.mark.slow
def test_jsonl_is_read_at_more_than_50_000_documents_a_second(tmp_path):
    taxonomy = Taxonomy.of({f"L{k}": [f"L{(k - 1) // 3}"] if k else [] for k in range(500)})
    path = tmp_path / "x.jsonl"
    write_lines(
        path, [{"id": k, "text": "a short text of a few words", "labels": [f"L{k % 500}"]} for k in range(100_000)]
    )
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        n = sum(len(block) for block in read(path, taxonomy).batches())
        best = max(best, n / (time.perf_counter() - start))
    assert best > 50_000


# -- reading again, in order, in parts -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_blocks_keep_the_order_whatever_their_size(tree, tmp_path, size):
    path = tmp_path / "x.jsonl"
    write_lines(path, documents(20))
    corpus = read(path, tree)
    for _ in range(2):  # and a corpus can be read again
        blocks = list(corpus.batches(size))
        assert [len(b) for b in blocks[:-1]] == [size] * (len(blocks) - 1)
        assert [i for b in blocks for i in b.ids] == [f"d{k}" for k in range(20)]


def test_iterating_and_loading_agree(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    write_lines(path, documents(5) + documents(3, 5, "shops"))
    corpus = read(path, tree)
    assert list(corpus) == list(corpus.load())


def test_what_is_added_to_the_file_is_there_the_next_time(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    write_lines(path, documents(2))
    corpus = read(path, tree)
    assert len(corpus.load()) == 2
    write_lines(path, documents(3))
    assert len(corpus.load()) == 3


@pytest.mark.parametrize("as_pattern", [True, False])
def test_parts_are_read_one_after_another(tree, tmp_path, as_pattern):
    paths = [tmp_path / f"part-{k}.jsonl" for k in range(3)]
    write_lines(paths[0], documents(3))
    paths[1].write_text("")  # as distributed writers leave behind
    write_lines(paths[2], documents(2, 3))
    corpus = read(str(tmp_path / "part-*.jsonl") if as_pattern else paths, tree)
    assert [i for b in corpus.batches(2) for i in b.ids] == ["d0", "d1", "d2", "d3", "d4"]
    assert corpus.name == f"{paths[0]} and 2 more"


def test_documents_of_several_files_without_ids_get_different_ones(tree, tmp_path):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in paths:
        write_lines(path, [{"text": "x", "labels": []}])
    corpus = read(paths, tree)
    assert corpus.load().ids == [f"{paths[0]}:1", f"{paths[1]}:1"]
    assert corpus.report.duplicate_ids == 0


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tree, tmp_path):
    path = tmp_path / "x[1].jsonl"
    write_lines(path, documents(1))
    assert len(read(str(path), tree).load()) == 1


def test_labels_are_closed_like_one_document_at_a_time(dag):
    rng = np.random.default_rng(1)
    sets = [list(rng.choice(dag.labels, size=rng.integers(0, 4))) for _ in range(200)]
    corpus = read([{"text": "x", "labels": [str(label) for label in s]} for s in sets], dag)
    assert [set(e.labels) for e in corpus] == [set(dag.close(map(str, s))) for s in sets]


# -- the report ------------------------------------------------------------------------------------------------------


def test_the_report_counts_what_was_skipped_and_keeps_the_first_ten(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "x", "labels": []}\n' + "broken\n" * 12 + '{"labels": []}\n{"text": 5, "labels": []}\n')
    corpus = read(path, tree, bad_lines="skip")
    corpus.load()
    report = corpus.report
    assert (report.documents, report.skipped, report.without_labels) == (1, 14, 1)
    assert [line.line for line in report.skipped_lines] == list(range(2, 12))
    assert report.skipped_lines[0].where == f"{path}:2"
    assert report.skipped_lines[0].reason == "not valid JSON (Expecting value at column 1)"


def test_the_report_grows_while_reading_and_is_new_each_time(tree, tmp_path):
    path = tmp_path / "x.jsonl"
    write_lines(path, documents(6))
    corpus = read(path, tree)
    blocks = corpus.batches(4)
    next(blocks)
    assert corpus.report.documents == 4
    next(blocks)
    assert corpus.report.documents == 6
    corpus.batches()
    assert corpus.report.documents == 0


def test_the_report_is_plain_json(tree):
    corpus = read([{"text": "x", "labels": ["gone"]}, {"text": 1}], tree, unknown="drop", bad_lines="skip")
    corpus.load()
    assert json.loads(json.dumps(corpus.report.to_json())) == {
        "documents": 1,
        "skipped": 1,
        "skipped_lines": [{"where": "records, row 2", "line": 2, "reason": "'text' must be a string, got 1"}],
        "dropped_labels": {"gone": 1},
        "without_labels": 1,
        "duplicate_ids": 0,
    }


def test_repeated_ids_are_counted_over_all_blocks(tree):
    ids = np.random.default_rng(0).integers(0, 60, size=200)
    corpus = read([{"id": int(k), "text": "x", "labels": []} for k in ids], tree)
    for _ in corpus.batches(7):
        pass
    assert corpus.report.duplicate_ids == 200 - len(set(ids.tolist()))


def test_seen_ids_need_few_bytes_and_few_runs():
    seen = SeenIds()
    for start in range(0, 50_000, 100):
        assert seen.add([f"d{k}" for k in range(start, start + 100)]) == 0
    assert seen.add([f"d{k}" for k in range(49_990, 50_010)]) == 10
    assert sum(run.nbytes for run in seen._runs) == 8 * 50_010
    assert len(seen._runs) < 20


# -- standard input --------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
from hilap.corpus import read
from hilap.taxonomy import Taxonomy
options = {"unknown": "add"} if "add" in sys.argv else {}
corpus = read("-", Taxonomy.of({"food": [], "bars": ["food"]}), **options)
for example in corpus:
    print(example.id, *example.labels, flush=True)
"""


def piped(content: bytes, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        input=content,
        capture_output=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize(
    "content",
    [
        b'{"id": "1", "text": "x", "labels": ["bars"]}\n{"id": "2", "text": "y", "labels": []}\n',
        b'[{"id": "1", "text": "x", "labels": ["bars"]},\n{"id": "2", "text": "y", "labels": []}]',
        b"id,text,labels\n1,x,bars\n2,y,\n",
        b"bars 1:2 # id: 1\n 1:3 # id: 2\n",
    ],
    ids=["jsonl", "json", "csv", "svmlight"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_recognised_like_a_file(content, packed):
    import gzip

    assert piped(gzip.compress(content) if packed else content) == ["1 food bars", "2"]


def test_unknown_labels_of_standard_input_can_be_added():
    assert piped(b'{"id": "1", "text": "x", "labels": ["food > thai"]}\n', "add") == ["1 food food > thai"]


def stdin_of(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input_can_be_read_only_once(tree, monkeypatch):
    stdin_of(monkeypatch, b'{"text": "x", "labels": ["beer"]}\n')
    corpus = read("-", tree)
    assert len(corpus.load()) == 1
    with pytest.raises(CorpusError) as caught:
        corpus.batches()
    assert str(caught.value) == ("standard input: it can be read only once; load it, or save it to a file first")


def test_messages_name_standard_input_and_the_line(tree, monkeypatch):
    for options in ({}, {"unknown": "add"}):
        stdin_of(monkeypatch, b'{"text": "x", "labels": ["beer"]}\nbroken\n')
        with pytest.raises(CorpusError, match=r"^standard input:2: not valid JSON"):
            read("-", tree, **options).load()


def test_an_iterator_can_be_read_only_once(tree):
    corpus = read(iter(documents(2)), tree)
    corpus.load()
    with pytest.raises(CorpusError, match="records: it can be read only once"):
        corpus.load()


# -- from memory -----------------------------------------------------------------------------------------------------


def test_a_corpus_from_memory(tree):
    corpus = Corpus.of(["x", "y", "z"], [["beer"], [], ["Shops", "shops"][1:]], tree, groups=["a", "b", "a"])
    assert [b.ids for b in corpus.batches(2)] == [["0", "1"], ["2"]]
    assert corpus.load().label_sets == [("food", "bars", "beer"), (), ("shops",)]
    assert corpus.report.without_labels == 1
    assert corpus.load().groups == ["a", "b", "a"]


def test_a_corpus_from_memory_may_have_only_features(tree):
    dense = np.array([[1, np.nan], [2, 3]])
    assert Corpus.of(features=dense, taxonomy=tree).load().features.dtype == np.float32
    thin = Corpus.of(features=sparse.csr_matrix(np.eye(2)), labels=[["beer"], []], taxonomy=tree).load()
    np.testing.assert_array_equal(thin.features.toarray(), np.eye(2))


def test_a_corpus_from_memory_may_be_empty(tree):
    assert len(Corpus.of([], [], tree).load()) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": ["x"], "labels": [["Beer Bar"]]}, "row 0: label 'Beer Bar' is not in the taxonomy; did you mean"),
        ({"texts": ["x"], "labels": ["beer"]}, "row 0: a collection of labels is needed, got 'beer'; write"),
        ({"texts": ["x"], "labels": [[None]]}, "row 0: a label must be a string, got null"),
        ({"texts": ["x", None]}, "row 1: the text must be a string, got null"),
        ({"texts": "x"}, "a list of texts is needed, got one string"),
        ({"texts": ["x"], "labels": [[], []]}, "there are 1 ids but 2 rows of labels"),
        ({"features": [[1.0], [np.inf]]}, "row 1: a feature is infinite or too large"),
        ({"features": sparse.csr_array([[1.0], [np.inf]])}, "row 1: a feature is infinite or too large"),
        ({"features": [1.0]}, "features must have two dimensions"),
        ({"features": [["x"]]}, "features must be rows of numbers"),
        ({}, "a corpus needs documents; give texts="),
    ],
)
def test_bad_memory_gets_a_clear_error(tree, arguments, message):
    with pytest.raises(CorpusError) as caught:
        Corpus.of(taxonomy=tree, **arguments)
    assert message in str(caught.value)


def test_labels_need_a_taxonomy():
    with pytest.raises(CorpusError, match="a taxonomy is needed to understand the labels"):
        Corpus.of(["x"], [["beer"]])


def test_a_block_has_at_least_one_document(tree):
    with pytest.raises(SettingError, match="size must be at least 1, got 0"):
        Corpus.of(["x"], [[]], tree).batches(0)


# -- chosen rows, labels as they are ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4, 100])
def test_chosen_rows_are_those_of_the_whole(tree, tmp_path, size):
    path = tmp_path / "x.jsonl"
    write_lines(path, documents(20))
    chosen = read(path, tree).rows([0, 3, 4, 5, 19])
    for _ in range(2):
        assert [i for block in chosen.batches(size) for i in block.ids] == ["d0", "d3", "d4", "d5", "d19"]
    assert chosen.report.documents == 5


def test_rows_that_are_not_there_are_an_error(tree):
    corpus = read(documents(3), tree)
    with pytest.raises(CorpusError, match="records: row 3 was asked for, but there are 3 documents"):
        corpus.rows([1, 3]).load()
    for rows in ([-1], [2, 1], [1, 1]):
        with pytest.raises(CorpusError, match="rows must be positions from 0, ascending, each once"):
            corpus.rows(rows)


def test_labels_can_be_kept_as_they_are(tree):
    corpus = read([{"text": "x", "labels": ["beer", "shops"]}], tree, close=False)
    assert corpus.load().label_sets == [("beer", "shops")]
