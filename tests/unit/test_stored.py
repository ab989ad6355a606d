"""Corpora over a memory limit: kept on disk, never stale, and to the same model as from memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import hilap
from hilap import HiLAPClassifier
from hilap.cli import main
from hilap.corpus import Corpus, Examples, read, stored
from hilap.corpus.mapped import Pile, Strings, Workplace, positions
from hilap.corpus.stored import StoredExamples, bytes_of, clear, in_memory
from hilap.encoders import hashed, make, streamed, terms, token_cache
from hilap.encoders.own import ModuleEncoder
from hilap.encoders.streamed import MadeWhenNeeded, prepare_streamed
from hilap.errors import CorpusError, HilapError, SettingError
from hilap.taxonomy import Taxonomy
from hilap.training import TrainingData
from hilap.training.callbacks import Callback

TREE = Taxonomy.of({"food": [], "bars": ["food"], "beer": ["bars"], "law": []})
WORDS = {"food": "dinner Menu.", "bars": "cocktails bár.", "beer": "craft beer pub", "law": "court lawyer"}


def records(n: int) -> list[dict]:
    made = []
    for i in range(n):
        labels = [label for k, label in enumerate(WORDS) if (i >> k) & 1]
        text = " ".join([f"we{i % 5}", *(WORDS[label] for label in labels)]) if i % 13 else ""
        made.append({"id": f"d{i}", "text": text, "labels": labels, "topic": f"g{i % 3}"})
    return made


def lines(path: Path, given: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in given), encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    return read(lines(tmp_path / "train.jsonl", records(90)), TREE)


@pytest.fixture
def all_on_disk(monkeypatch):
    """Nothing is few, and blocks are small."""
    monkeypatch.setattr(stored, "FEWEST_DOCUMENTS", 2)
    monkeypatch.setattr(stored, "_BLOCK", 32)
    monkeypatch.setattr(token_cache, "FEWEST_DOCUMENTS", 2)
    monkeypatch.setattr(token_cache, "_BLOCK", 16)
    monkeypatch.setattr(streamed, "BLOCK", 16)


def same(found: Examples, expected: Examples) -> bool:
    columns = [(found.ids, expected.ids), (found.texts, expected.texts), (found.groups, expected.groups)]
    strings = all((a is None) == (b is None) and (a is None or [*a] == [*b]) for a, b in columns)
    arrays = [(found.labels.indptr, expected.labels.indptr), (found.labels.indices, expected.labels.indices)]
    numbers = all(np.array_equal(a, b) for a, b in arrays) and np.array_equal(found.labels.data, expected.labels.data)
    return strings and numbers and found.labels.shape == expected.labels.shape and found.taxonomy == expected.taxonomy


# -- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1", 1),
        ("500MB", 500_000_000),
        ("2 GB", 2_000_000_000),
        ("1.5kb", 1_500),
        ("1 KiB", 1_024),
        ("3TiB", 3 * 1024**4),
        (" 7 b ", 7),
        (np.int64(12), 12),
    ],
)
def test_sizes_are_read_in_words_and_numbers(given, expected):
    assert bytes_of(given) == expected


@pytest.mark.parametrize("given", ["", "MB", "-1GB", "1 XB", "1e9", "0", 0, -5, True, 1.5, None, "१MB", "9" * 5000])
def test_what_is_no_size_is_refused(given):
    with pytest.raises(SettingError, match="memory must be a size such as '500MB' or '2GB', or a number of bytes"):
        bytes_of(given)


def test_the_size_of_documents_is_what_python_needs_for_them(corpus):
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    whole = corpus.load()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.5 * taken < in_memory(whole) < 1.5 * taken


# -- the limit ------------------------------------------------------------------------------------------------------


def test_below_the_limit_nothing_changes(corpus, tmp_path):
    whole = corpus.load()
    found = corpus.load(memory="1GB", folder=tmp_path / "work")
    assert type(found) is Examples
    assert isinstance(found.texts, list)
    assert same(found, whole)
    assert not (tmp_path / "work").exists()


def test_the_limit_is_met_to_the_byte(corpus, monkeypatch):
    size = in_memory(Examples.join([*corpus.batches(stored._BLOCK)]))
    assert type(corpus.load(memory=size)) is Examples
    assert type(corpus.load(memory=size - 1)) is StoredExamples


def gzipped(folder: Path, given: list[dict]) -> Path:
    path = folder / "x.jsonl.gz"
    path.write_bytes(gzip.compress(lines(folder / "x.jsonl", given).read_bytes()))
    return path


def zst(folder: Path, given: list[dict]) -> Path:
    zstandard = pytest.importorskip("zstandard")
    path = folder / "x.jsonl.zst"
    path.write_bytes(zstandard.compress(lines(folder / "x.jsonl", given).read_bytes()))
    return path


def table(folder: Path, given: list[dict]) -> Path:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(given)
    frame["labels"] = frame["labels"].map("|".join)
    frame.to_csv(folder / "x.csv", index=False)
    return folder / "x.csv"


def parquet(folder: Path, given: list[dict]) -> Path:
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(given).to_parquet(folder / "x.parquet")
    return folder / "x.parquet"


KINDS = {
    "jsonl": lambda folder, given: lines(folder / "x.jsonl", given),
    "gzip": gzipped,
    "zstandard": zst,
    "csv": table,
    "parquet": parquet,
    "array": lambda folder, given: (folder / "x.json").write_text(json.dumps(given)) and folder / "x.json",
    "records": lambda folder, given: given,
    "several": lambda folder, given: [lines(folder / "a.jsonl", given[:40]), lines(folder / "b.jsonl", given[40:])],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_from_disk(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(stored, "_BLOCK", 32)
    source = KINDS[kind](tmp_path, records(90))
    corpus = read(source, TREE, group="topic")
    whole, report = corpus.load(), corpus.report
    for _ in range(2):  # written, then found
        again = read(source, TREE, group="topic")
        found = again.load(memory=1, folder=tmp_path / "work")
        assert type(found) is StoredExamples
        assert same(found, whole)
        assert again.report == report


def test_a_corpus_that_can_be_read_only_once_is_kept_while_it_is_used(tmp_path, monkeypatch):
    text = "".join(json.dumps(record) + "\n" for record in records(90))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    expected = read(records(90), TREE).load()
    found = read("-", TREE, format="jsonl").load(memory=1, folder=tmp_path / "work")
    assert same(found, expected)
    assert [*(tmp_path / "work").iterdir()] == []  # no one could find it again


def test_what_was_skipped_and_dropped_is_told_also_when_the_corpus_is_found(tmp_path):
    path = lines(tmp_path / "x.jsonl", [*records(9), {"id": "d1", "text": "x", "labels": ["planets", "law"]}])
    path.write_text("{broken\n" + path.read_text())
    told = []
    for memory in (None, 1, 1):
        corpus = read(path, TREE, unknown="drop", bad_lines="skip")
        corpus.load(memory, None if memory is None else tmp_path / "work")
        told.append(corpus.report)
    assert told[0].skipped == told[0].duplicate_ids == 1
    assert told[0].dropped_labels == {"planets": 1}
    assert told[0] == told[1] == told[2]


def test_without_a_folder_everything_goes_when_no_one_needs_it(corpus):
    found = corpus.load(memory=1)
    texts, folder = found.texts[3:5], found.workplace.path
    assert folder.is_dir()
    del found
    assert [*texts] == [record["text"] for record in records(90)[3:5]]
    assert folder.is_dir()
    del texts
    assert not folder.exists()


# -- as in memory ---------------------------------------------------------------------------------------------------


def mapped(given: list[str]) -> Strings:
    raw = [text.encode("utf-8", "surrogatepass") for text in given]
    starts = np.cumsum([0, *map(len, raw)])
    return Strings(np.frombuffer(b"".join(raw), dtype=np.uint8), starts, Workplace())


@given(st.lists(st.text(st.characters(), max_size=5), max_size=12), st.data())
def test_strings_on_disk_are_a_list_of_strings(given, data):
    found = mapped(given)
    assert [*found] == given
    assert len(found) == len(given)
    for i in range(-len(given), len(given)):
        assert found[i] == given[i]
    cut = data.draw(st.slices(len(given)))
    assert [*found[cut]] == given[cut]
    assert [*found[cut][::-1]] == given[cut][::-1]
    for i in (len(given), -len(given) - 1):
        with pytest.raises(IndexError):
            found[i]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(rows=st.lists(st.integers(-90, 89), max_size=40), few=st.sampled_from([0, 5, 1000]))
def test_documents_are_taken_as_from_memory(corpus, monkeypatch, rows, few):
    monkeypatch.setattr(stored, "FEWEST_DOCUMENTS", max(few, 1))
    whole, found = corpus.load(), corpus.load(memory=1)
    taken = found.take(rows)
    assert same(taken, whole.take(rows))
    assert isinstance(taken, StoredExamples) == (len(rows) >= max(few, 1))
    if rows:
        assert taken[-1] == whole.take(rows)[-1]
        again = [*range(len(rows) - 1, -1, -1), 0]
        assert same(taken.take(again), whole.take(rows).take(again))


@given(st.integers(0, 9), st.lists(st.integers(-12, 12), max_size=5))
def test_positions_are_numpys(n, rows):
    try:
        expected = np.arange(n)[np.array(rows, dtype=np.int64)]
    except IndexError:
        with pytest.raises(IndexError, match=r"row -?[0-9]+ of"):
            positions(rows, n)
    else:
        assert np.array_equal(positions(rows, n), expected)


def test_labels_and_texts_are_mapped_and_not_copied(corpus, all_on_disk):
    found = corpus.load(memory=1)
    for examples in (found, found.take(np.arange(80))):
        for array in (examples.labels.data, examples.labels.indices):
            while not isinstance(array, np.memmap):
                assert array.base is not None
                array = array.base


# -- never stale ----------------------------------------------------------------------------------------------------


def folders(work: Path) -> list[str]:
    return sorted(path.name for path in work.iterdir())


def test_a_corpus_in_the_folder_is_not_written_again(corpus, tmp_path, monkeypatch):
    corpus.load(memory=1, folder=tmp_path / "work")
    monkeypatch.setattr(stored, "_write", lambda *_: pytest.fail("written again"))
    assert same(corpus.load(memory=1, folder=tmp_path / "work"), corpus.load())


def test_another_content_of_the_same_size_and_time_is_another_corpus(tmp_path):
    path = lines(tmp_path / "x.jsonl", records(20))
    read(path, TREE).load(memory=1, folder=tmp_path / "work")
    state = os.stat(path)
    path.write_text(path.read_text().replace("dinner", "supper"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert os.stat(path).st_size == state.st_size
    found = read(path, TREE).load(memory=1, folder=tmp_path / "work")
    assert same(found, read(path, TREE).load())
    assert len(folders(tmp_path / "work")) == 2


def test_anything_else_that_documents_depend_on_is_another_corpus(tmp_path):
    path = lines(tmp_path / "x.jsonl", records(20))
    other_order = Taxonomy.of({"law": [], "food": [], "bars": ["food"], "beer": ["bars"]})
    assert other_order.fingerprint == TREE.fingerprint
    ways = [
        (TREE, {}),
        (other_order, {}),
        (TREE.extended({"new": []}), {}),
        (TREE, {"text": ["id", "text"]}),
        (TREE, {"id": "topic"}),
        (TREE, {"group": "topic"}),
        (TREE, {"labels": None}),
        (TREE, {"path_separator": "#"}),
        (TREE, {"unknown": "drop"}),
        (TREE, {"bad_lines": "skip"}),
        (TREE, {"close": False}),
    ]
    for count, (taxonomy, options) in enumerate(ways, 1):
        found = read(path, taxonomy, **options).load(memory=1, folder=tmp_path / "work")
        assert same(found, read(path, taxonomy, **options).load())
        assert len(folders(tmp_path / "work")) == count


NAMES = ["texts.utf8", "texts.starts", "ids.utf8", "ids.starts", "labels.indptr", "labels.indices", "labels.data"]
DAMAGES = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "cut by a number": lambda path: path.write_bytes(path.read_bytes()[:-8]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + bytes(8)),
    "first bit": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "last bit": lambda path: path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*NAMES, "about.json"])
def test_damage_is_noticed_and_repaired(corpus, tmp_path, name, damage):
    corpus.load(memory=1, folder=tmp_path / "work")
    (place,) = (tmp_path / "work").iterdir()
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    assert sorted(before) == sorted([*NAMES, "about.json"])
    DAMAGES[damage](place / name)
    assert same(corpus.load(memory=1, folder=tmp_path / "work"), corpus.load())
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["files", "seal", "report"]), inner),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(content=st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_stranger_writes_there_is_not_taken(corpus, tmp_path, content):
    corpus.load(memory=1, folder=tmp_path / "work")
    (place,) = (tmp_path / "work").iterdir()
    (place / "about.json").write_bytes(content)
    assert same(corpus.load(memory=1, folder=tmp_path / "work"), corpus.load())


def test_a_corpus_of_another_source_under_this_name_is_not_taken(corpus, tmp_path):
    other = read(lines(tmp_path / "other.jsonl", records(90)[::-1]), TREE)
    corpus.load(memory=1, folder=tmp_path / "a")
    other.load(memory=1, folder=tmp_path / "b")
    (mine,), (theirs,) = (tmp_path / "a").iterdir(), (tmp_path / "b").iterdir()
    for path in theirs.iterdir():
        (mine / path.name).write_bytes(path.read_bytes())
    assert same(corpus.load(memory=1, folder=tmp_path / "a"), corpus.load())


def test_a_kept_corpus_may_be_deleted_while_it_is_used(corpus, tmp_path):
    found = corpus.load(memory=1, folder=tmp_path / "work")
    clear(tmp_path / "work")
    assert not (tmp_path / "work").exists()
    assert same(found, corpus.load())


# -- faults ---------------------------------------------------------------------------------------------------------


def test_a_bad_line_is_named_and_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "_BLOCK", 16)
    path = lines(tmp_path / "x.jsonl", [*records(60), {"id": "x", "labels": []}])
    with pytest.raises(CorpusError, match=r"x\.jsonl:61: .*'text'"):
        read(path, TREE).load(memory=1, folder=tmp_path / "work")
    assert [*tmp_path.iterdir()] == [path]
    (tmp_path / "work").mkdir()
    with pytest.raises(CorpusError, match=r"x\.jsonl:61"):
        read(path, TREE).load(memory=1, folder=tmp_path / "work")
    assert folders(tmp_path / "work") == []


@pytest.mark.parametrize("name", ["file", "file/below", "zero\0byte"])
def test_a_working_folder_that_cannot_be_one_is_said(corpus, tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(SettingError, match=r"the working folder: .* cannot be used as a folder .*; give another"):
        corpus.load(memory=1, folder=f"{tmp_path}/{name}")


def test_a_place_that_is_taken_by_a_file_is_said(corpus, tmp_path):
    corpus.load(memory=1, folder=tmp_path / "work")
    (place,) = (tmp_path / "work").iterdir()
    clear(tmp_path / "work")
    place.parent.mkdir()
    place.write_text("x")
    with pytest.raises(CorpusError, match=r"cannot be made a folder .*; give another working folder"):
        corpus.load(memory=1, folder=tmp_path / "work")


def test_a_file_that_changes_while_it_is_read_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "_BLOCK", 16)
    path = lines(tmp_path / "x.jsonl", records(60))
    corpus = read(path, TREE)
    key = stored._key

    def changed(given):
        found = key(given)
        os.utime(path, (1, 1))
        return found

    monkeypatch.setattr(stored, "_key", changed)
    with pytest.raises(CorpusError, match=r"x\.jsonl: the file has changed while it was read; read it again"):
        corpus.load(memory=1, folder=tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_what_cannot_be_read_again_is_said(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "_opened", lambda *_: None)
    with pytest.raises(CorpusError, match="cannot be read again; give another working folder"):
        corpus.load(memory=1, folder=tmp_path / "work")


def test_more_labels_than_a_sparse_matrix_can_count_are_refused(corpus, tmp_path):
    class Huge:
        indices = range(2**31)

    from contextlib import ExitStack

    block = Examples.of(TREE, [["law"]], texts=["x"])
    object.__setattr__(block, "labels", Huge())
    with ExitStack() as stack, pytest.raises(CorpusError, match="more than 2,147,483,647 labels"):
        stored._Files(stack, tmp_path).add(block)


def test_features_are_refused_over_the_limit_and_fine_below(tmp_path):
    rows = [{"id": str(i), "features": [1.0, i], "labels": ["law"]} for i in range(9)]
    corpus = read(lines(tmp_path / "x.jsonl", rows), TREE)
    assert corpus.load(memory="1MB").features.shape == (9, 2)
    with pytest.raises(CorpusError, match="only texts without features can be kept on disk; give more memory, or no"):
        corpus.load(memory=1, folder=tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_a_folder_without_a_limit_is_refused(corpus, tmp_path):
    with pytest.raises(SettingError, match="folder must be None where there is no limit of memory"):
        corpus.load(folder=tmp_path)


def test_a_full_disk_is_said(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    pile = Pile(Workplace(tmp_path), np.int64)
    pile._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    with pytest.raises(HilapError, match=r"cannot be written to .*; make room there"):
        pile.add(np.arange(9))


def test_a_folder_where_nothing_can_be_written_is_said(tmp_path):
    workplace = Workplace(tmp_path / "work")
    (tmp_path / "work").rmdir()
    with pytest.raises(HilapError, match="nothing can be written there"):
        workplace.file()


def test_clearing_leaves_strangers_alone(corpus, tmp_path):
    work = tmp_path / "work"
    corpus.load(memory=1, folder=work)
    (work / ".x.tokens.abc.part").write_text("half")
    (work / f"{'0' * 64}.tokens").write_text("x")
    (work / "thesis.corpus").mkdir()
    clear(work, drafts=True)
    assert len(folders(work)) == 3
    clear(work)
    assert folders(work) == ["thesis.corpus"]


# -- training -------------------------------------------------------------------------------------------------------


def test_what_is_counted_block_by_block_is_what_is_counted_at_once(corpus, monkeypatch):
    found = []
    for block in (1_000, 4):
        monkeypatch.setattr(terms, "_BLOCK", block)
        monkeypatch.setattr(terms, "_TALLIES", 3)
        monkeypatch.setattr(hashed, "_BLOCK", block)
        documents = corpus.load(memory=1)
        encoders = [make(*kind).fit(documents, generator=torch.Generator()) for kind in (("tfidf",), ("hashed",))]
        found.append((encoders[0].terms, encoders[0].idf, encoders[1].idf_weight))
    assert found[0][0] == found[1][0]
    assert torch.equal(found[0][1], found[1][1])
    assert torch.equal(found[0][2], found[1][2])


class Letters(ModuleEncoder):
    """A user's own: the first letters."""

    name = "letters"

    def tensor(self, examples: Examples) -> torch.Tensor:
        return torch.tensor([[*text.encode()[:6].ljust(6)] for text in examples.texts], dtype=torch.float32)

    def module(self) -> nn.Module:
        return nn.Linear(6, 4)


OPTIONS = {
    "textcnn": {"preset": "light", "filters": 4, "dimensions": 6},
    "bowcnn": {"preset": "light", "filters": 4},
    "han": {"preset": "light", "hidden": 3},
    "hashed": {"features": 64, "hidden": [6]},
    "tfidf": {"hidden": [6]},
    "several": {
        "parts": [{"encoder": "tfidf", "options": {"hidden": 4}}, {"encoder": "textcnn", "options": {"filters": 4}}]
    },
}


def classifier(name: str, **more) -> HiLAPClassifier:
    small = {"hidden": 8, "width": 4, "batch_size": 16, "supervised_epochs": 2, "reinforced_epochs": 1}
    return HiLAPClassifier(encoder=name, encoder_options=OPTIONS[name], **{**small, **more})


def weights(trained: HiLAPClassifier) -> dict[str, torch.Tensor]:
    return trained.network_.state_dict()


def equal(one: HiLAPClassifier, other: HiLAPClassifier) -> bool:
    mine, theirs = weights(one), weights(other)
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_model_is_the_same_to_the_last_bit(corpus, tmp_path, name, all_on_disk):
    from_memory = classifier(name).fit(corpus.load())
    from_disk = classifier(name).fit(corpus.load(memory=1, folder=tmp_path / "work"))
    assert equal(from_memory, from_disk)
    assert from_disk.fingerprints_ == from_memory.fingerprints_
    assert from_disk.decode_ == from_memory.decode_
    assert from_disk.validation_.to_json() == from_memory.validation_.to_json()


def test_a_saved_model_does_not_tell_how_it_was_trained(corpus, tmp_path, all_on_disk):
    for name, documents in (("a", corpus.load()), ("b", corpus.load(memory=1))):
        trained = classifier("hashed", variant="flat", flat_epochs=1).fit(documents)
        for record in trained.history_:
            record.pop("seconds", None)
        trained.save(tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_validation_documents_may_lie_on_disk_too(corpus, tmp_path, all_on_disk):
    valid = read(lines(tmp_path / "valid.jsonl", records(30)), TREE)
    kind = {"variant": "flat", "flat_epochs": 1}
    from_memory = classifier("textcnn", **kind).fit(corpus.load(), valid=valid.load())
    from_disk = classifier("textcnn", **kind).fit(corpus.load(memory=1), valid=valid.load(memory=1))
    assert equal(from_memory, from_disk)
    found = from_disk.predict(valid.load(memory=1))
    assert np.array_equal(found.toarray(), from_memory.predict(valid.load()).toarray())


def test_a_users_own_encoder_is_prepared_when_needed(corpus, all_on_disk):
    whole, found = corpus.load(), corpus.load(memory=1)
    encoder = Letters().fit(whole, generator=torch.Generator().manual_seed(0))
    prepared = prepare_streamed(encoder, found)
    assert isinstance(prepared, MadeWhenNeeded)
    assert len(prepared) == 90
    rows = np.array([5, 88, 0, 5])
    assert torch.equal(prepared.batch(rows), encoder.prepare(whole).batch(rows))


class Interrupted(Callback):
    """Ctrl-C after the second epoch."""

    def __init__(self) -> None:
        self.left = 2

    def on_epoch(self, record):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def test_a_killed_run_goes_on_to_the_same_weights(corpus, tmp_path, all_on_disk):
    unbroken = classifier("textcnn", reinforced_epochs=2).fit(corpus.load())
    documents = corpus.load(memory=1, folder=tmp_path / "work")
    way = {"checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(KeyboardInterrupt):
        classifier("textcnn", reinforced_epochs=2).fit(documents, callbacks=[Interrupted()], **way)
    del documents
    clear(tmp_path / "work")  # even if that is lost
    documents = corpus.load(memory=1, folder=tmp_path / "work")
    resumed = classifier("textcnn", reinforced_epochs=2).fit(documents, resume=True, **way)
    assert equal(unbroken, resumed)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            {"wide": True, "folds": 2, "sees": "flat"},
            "wide must be False for documents that are over the memory limit, got True",
        ),
        ({"folds": 2, "sees": "flat"}, "folds must be 1 for documents that are over the memory limit, got 2"),
        ({"refit": True}, "refit must be False for documents that are over the memory limit, got True: training and"),
        ({"sees": "profile"}, "sees must be 'document' for documents that are over the memory limit, got 'profile'"),
    ],
)
def test_what_needs_all_scores_in_memory_is_refused(corpus, more, says):
    with pytest.raises(SettingError, match=re.escape(says)):
        classifier("tfidf", flat_epochs=1, **more).fit(corpus.load(memory=1))
    with pytest.raises(SettingError, match=re.escape(says)):
        classifier("tfidf", flat_epochs=1, **more).fit(corpus.load(), valid=corpus.load(memory=1))


# -- the command line -----------------------------------------------------------------------------------------------


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Train by the command line in this process; the exit code and what was said."""
    lines(tmp_path / "train.jsonl", records(64))
    lines(tmp_path / "tree.jsonl", [{"label": label, "parents": [*TREE.parents(label)]} for label in TREE.labels])
    small = {"variant": "flat", "flat_epochs": 1, "encoder_options.features": 64, "encoder_options.hidden": [4]}

    def run(*more: object) -> tuple[int, str]:
        words = ["train", tmp_path / "train.jsonl", "-t", tmp_path / "tree.jsonl"]
        sets = [word for name, value in small.items() for word in ("--set", f"{name}={json.dumps(value)}")]
        ours = [] if "--method" in more else ["--encoder", "hashed", *sets]
        monkeypatch.setattr(sys, "argv", ["hilap", *map(str, [*words, *ours, *more])])
        try:
            main()
            code = 0
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        return code, capsys.readouterr().err

    return run


def test_the_command_line_trains_the_same_model_from_disk(call, tmp_path, all_on_disk):
    assert call("--out", tmp_path / "a")[0] == 0
    assert call("--out", tmp_path / "b", "--memory", "1kB")[0] == 0
    assert equal(hilap.load(tmp_path / "a"), hilap.load(tmp_path / "b"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "train.jsonl", "tree.jsonl"]


def test_a_working_folder_that_was_asked_for_stays(call, tmp_path, all_on_disk):
    assert call("--out", tmp_path / "a", "--memory", "1kB", "--work", tmp_path / "work")[0] == 0
    assert [path.suffix for path in (tmp_path / "work").iterdir()] == [".corpus"]


def test_an_interrupted_run_keeps_its_folder_and_the_next_one_sweeps_up(call, tmp_path, all_on_disk, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(HiLAPClassifier, "_learn", interrupted)
        assert call("--out", tmp_path / "a", "--memory", "1kB")[0] == 130
    (place,) = (tmp_path / ".a.work").iterdir()
    (place / ".texts.utf8.abc.part").write_text("half")
    assert call("--out", tmp_path / "a", "--memory", "1kB")[0] == 0
    assert not (tmp_path / ".a.work").exists()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--memory", "much"], "--memory must be a size such as '500MB' or '2GB', or a number of bytes"),
        (["--work", "w"], "--work is where documents over a memory limit are kept; give --memory too"),
        (["--memory", "1GB", "--method", "svm"], "--memory: svm learns from documents in memory; leave it out"),
    ],
)
def test_bad_words_get_one_sentence(call, tmp_path, more, says):
    code, said = call("--out", tmp_path / "a", *more)
    assert code == 2
    assert says in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "a").exists()


# -- memory ---------------------------------------------------------------------------------------------------------


def peak_of(path: Path, name: str, memory: int | None) -> int:
    """The most that Python and numpy hold at a time while documents are read and prepared, in bytes."""
    corpus = read(path, TREE)
    tracemalloc.start()
    documents = corpus.load() if memory is None else corpus.load(memory)
    encoder = make(name, **OPTIONS[name]).fit(documents, generator=torch.Generator().manual_seed(0))
    data = TrainingData(documents, encoder)
    data.batch(np.arange(len(data) - 9, len(data)))
    data.label_counts()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("name", ["textcnn", "hashed"])
def test_memory_stays_flat(tmp_path, name, all_on_disk):
    sizes, text = (400, 1_600), " ".join(f"w{i}" for i in range(60))
    for n in sizes:
        lines(tmp_path / f"{n}.jsonl", [{"id": str(i), "text": f"{i % 7} {text}", "labels": ["law"]} for i in range(n)])
    peak_of(tmp_path / f"{sizes[0]}.jsonl", name, 1)  # what is imported and compiled once
    further = {}
    for memory in (None, 1):
        few, many = (peak_of(tmp_path / f"{n}.jsonl", name, memory) for n in sizes)
        further[memory] = (many - few) / (sizes[1] - sizes[0])
    assert further[None] > 400  # a text of 240 letters and its numbers
    assert further[1] < 100  # where each starts, in what order they come
