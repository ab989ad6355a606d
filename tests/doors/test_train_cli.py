"""Train, predict, evaluate, explain, inspect: the command line from a corpus to labels, killed and resumed."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import hilap
from hilap.cli import main

TAXONOMY = [
    {"label": "food", "name": "Food", "parents": []},
    {"label": "bars", "name": "Bars", "parents": ["food"]},
    {"label": "beer", "name": "Beer Bars", "parents": ["bars"]},
    {"label": "law", "name": "Law", "parents": []},
]
WORDS = {"beer": "craft beer pub", "bars": "cocktails bar", "food": "dinner menu", "law": "court lawyer"}
SMALL = [
    *("--set", "supervised_epochs=3", "--set", "reinforced_epochs=3", "--set", "hidden=16", "--set", "width=8"),
    *("--set", "encoder_options.hidden=[16]", "--set", "batch_size=8", "--set", "learning_rate=0.01"),
]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def documents(n: int, offset: int = 0) -> list[dict]:
    labels = list(WORDS)
    made = []
    for i in range(offset, offset + n):
        mine = [label for k, label in enumerate(labels) if (i >> k) & 1]
        made.append({"id": f"d{i}", "text": " ".join(["we", *(WORDS[label] for label in mine)]), "labels": mine})
    return made


def lines(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    lines(folder / "taxonomy.jsonl", TAXONOMY)
    lines(folder / "train.jsonl", documents(64))
    lines(folder / "valid.jsonl", documents(16))
    lines(folder / "test.jsonl", documents(16, offset=16))
    rows = np.random.default_rng(0).normal(size=(40, 4)).round(3)
    labels = [["beer"] if row[0] > 0 else ["law"] for row in rows]
    featured = [{"id": str(i), "features": [*row], "labels": labels[i]} for i, row in enumerate(rows.tolist())]
    lines(folder / "features.jsonl", featured)
    return folder


@pytest.fixture(scope="module")
def model(files, tmp_path_factory) -> Path:
    """A model trained by the command line, in a process of its own."""
    out = tmp_path_factory.mktemp("models") / "deep" / "model"
    done = subprocess.run(
        [sys.executable, "-m", "hilap", *train_words(files, out, "--json", "--tensorboard", out.parent / "board")],
        capture_output=True,
        env=ENVIRONMENT,
        check=True,
    )
    (out / "said.json").write_bytes(done.stdout)
    (out / "said.err").write_bytes(done.stderr)
    return out


def train_words(files: Path, out: Path, *more: object) -> list[str]:
    words = ["train", files / "train.jsonl", "-t", files / "taxonomy.jsonl", "--valid", files / "valid.jsonl"]
    return [*map(str, words), "--out", str(out), *SMALL, *map(str, more)]


class Said:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def call(capsys, monkeypatch):
    """Run a command in this process, as `hilap` would."""

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["hilap", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


def refused(said: Said, *, says: str) -> None:
    assert said.code == 2
    assert re.search(says, said.err), said.err
    assert said.err.startswith("error: ")
    assert len(said.err.strip().splitlines()) == 1
    assert said.out == ""


# -- from a corpus to labels --------------------------------------------------------------------------------------


def test_train_writes_a_model_a_log_and_its_figures(model):
    said = json.loads((model / "said.json").read_text())
    assert said["documents"] == 64
    assert [phase["name"] for phase in said["phases"]] == ["supervised", "reinforced"]
    assert said["validation"]["documents"] == 16
    log = [json.loads(line) for line in (model / "log.jsonl").open()]
    assert [(record["phase"], record["epoch"]) for record in log] == [
        *(("supervised", k) for k in (1, 2, 3)),
        *(("reinforced", k) for k in (0, 1, 2, 3)),
    ]
    shown = (model / "said.err").read_text().splitlines()
    assert len(shown) == 7
    assert re.match(r"supervised epoch 1/3 loss \d\.\d+ example_f1 \d+\.\d\d", shown[0])
    assert not (model / "checkpoint.safetensors").exists()
    assert "Taxonomy fingerprint" in (model / "README.md").read_text()


def test_tensorboard_gets_the_figures_of_the_log(model):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(model.parent / "board")).Reload()
    shown = {(tag, p.step): p.value for tag in board.Tags()["scalars"] for p in board.Scalars(tag)}
    log = [json.loads(line) for line in (model / "log.jsonl").open()]
    expected = {
        (f"{record['phase']}/{name}", step): pytest.approx(value, rel=1e-6)
        for step, record in enumerate(log, start=1)
        for name, value in record.items()
        if name not in ("phase", "epoch")
    }
    assert shown == expected
    assert ("reinforced/micro_f1", 7) in shown


def test_the_command_line_and_python_train_the_same_model(model, files):
    taxonomy = hilap.read_taxonomy(files / "taxonomy.jsonl")
    train, valid = (hilap.read_corpus(files / f"{part}.jsonl", taxonomy).load() for part in ("train", "valid"))
    settings = {"supervised_epochs": 3, "reinforced_epochs": 3, "hidden": 16, "width": 8, "learning_rate": 0.01}
    made = hilap.HiLAPClassifier(encoder_options={"hidden": [16]}, batch_size=8, **settings).fit(train, valid=valid)
    assert np.array_equal(made.predict_proba(train), hilap.load(model).predict_proba(train))


def test_predict_writes_what_python_says_in_the_order_of_the_input(call, model, files, tmp_path):
    said = call("predict", model, files / "test.jsonl", "--out", tmp_path / "p.jsonl", "--json")
    assert json.loads(said.out) == {"file": str(tmp_path / "p.jsonl"), "documents": 16, "skipped": 0}
    assert said.err == ""
    opened = hilap.load(model)
    test = hilap.read_corpus(files / "test.jsonl", opened.taxonomy_).load()
    expected = [prediction.to_json() for prediction in opened.predict_labels(test)]
    assert [json.loads(line) for line in (tmp_path / "p.jsonl").open()] == expected
    assert [record["id"] for record in expected] == [f"d{i}" for i in range(16, 32)]


def test_predictions_can_be_evaluated_with_their_scores(call, model, files, tmp_path):
    out = tmp_path / "p.jsonl.gz"
    assert call("predict", model, files / "test.jsonl", "--out", out, "--scores").code == 0
    first = json.loads(gzip.decompress(out.read_bytes()).splitlines()[0])
    assert set(first) == {"id", "labels", "scores"}
    said = call("evaluate", out, files / "test.jsonl", "-t", files / "taxonomy.jsonl", "--scores", out, "--json")
    scores = json.loads(said.out)["scores"]
    opened = hilap.load(model)
    test = hilap.read_corpus(files / "test.jsonl", opened.taxonomy_).load()
    assert scores["example_f1"] == pytest.approx(opened.score(test))
    assert scores["inconsistent_share"] == 0
    assert scores["au_prc_pooled"] > 0


def test_parquet_and_zstandard_hold_the_same_as_jsonl(call, model, files, tmp_path):
    import zstandard
    from pyarrow import parquet

    for name in ("p.jsonl", "p.jsonl.zst", "p.parquet"):
        flags = ["--walks", "--scores"]
        assert call("predict", model, files / "test.jsonl", "--out", tmp_path / name, *flags).code == 0
    plain = (tmp_path / "p.jsonl").read_bytes()
    assert zstandard.ZstdDecompressor().stream_reader((tmp_path / "p.jsonl.zst").read_bytes()).read() == plain
    rows = parquet.read_table(tmp_path / "p.parquet").to_pylist()
    for row, line in zip(rows, plain.splitlines(), strict=True):
        record = json.loads(line)
        assert [scored["label"] for scored in row["labels"]] == [scored["label"] for scored in record["labels"]]
        assert dict(row["scores"]) == record["scores"]
        assert row["walk"] == record["walk"]


def test_predict_streams_to_standard_output_from_standard_input(model, files):
    done = subprocess.run(
        [sys.executable, "-m", "hilap", "predict", model, "-", "--labels-only"],
        input=(files / "test.jsonl").read_bytes(),
        capture_output=True,
        env=ENVIRONMENT,
        check=True,
    )
    records = [json.loads(line) for line in done.stdout.splitlines()]
    opened = hilap.load(model)
    test = hilap.read_corpus(files / "test.jsonl", opened.taxonomy_).load()
    assert [record["labels"] for record in records] == [
        [*labels] for labels in test.taxonomy.decode(opened.predict(test))
    ]
    assert done.stderr == b""


def test_predict_changes_how_labels_are_read_off(call, model, files, tmp_path):
    def labels(*more: str) -> list[list[str]]:
        assert (
            call("predict", model, files / "test.jsonl", "--out", tmp_path / "p.jsonl", "--labels-only", *more).code
            == 0
        )
        return [json.loads(line)["labels"] for line in (tmp_path / "p.jsonl").open()]

    assert all(not mine for mine in labels("--set", "stop_bias=900"))
    assert all(len(mine) <= 1 for mine in labels("--set", "max_labels=1"))
    assert all(mine for mine in labels("--set", "min_labels=1", "--set", "single_path=true"))


def test_documents_need_no_labels_and_labels_are_not_looked_at(call, model, tmp_path):
    lines(tmp_path / "in.jsonl", [{"id": "1", "text": "craft beer pub"}, {"text": "court", "labels": ["unheard of"]}])
    said = call("predict", model, tmp_path / "in.jsonl", "--out", "-", "--labels-only")
    assert [json.loads(line)["id"] for line in said.out.splitlines()] == ["1", "2"]


def test_bad_lines_stop_prediction_or_are_skipped(call, model, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id": "1", "text": "beer"}\nnot json\n{"id": "3", "text": "law"}\n')
    out = tmp_path / "p.jsonl"
    refused(call("predict", model, tmp_path / "in.jsonl", "--out", out), says=r"in\.jsonl:2: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]
    said = call("predict", model, tmp_path / "in.jsonl", "--out", out, "--bad-lines", "skip", "--json")
    assert json.loads(said.out)["skipped"] == 1
    assert "1 bad lines were skipped" in said.err
    assert [json.loads(line)["id"] for line in out.open()] == ["1", "3"]


def test_explain_shows_the_walk_step_by_step(call, model):
    said = call("explain", model, "craft beer pub", "--top", "2")
    assert said.code == 0
    assert said.out.startswith("1. at root")
    assert "labels: " in said.out
    value = json.loads(call("explain", model, "craft beer pub", "--json").out)
    opened = hilap.load(model)
    walk = opened.explain(["craft beer pub"])[0]
    assert value["walk"] == [step.to_json() for step in walk]
    assert value["labels"] == opened.predict_labels(["craft beer pub"])[0].to_json()["labels"]
    assert f"{len(walk)}. at " in said.out


def test_explain_takes_a_document_of_a_corpus(call, model, files):
    value = json.loads(call("explain", model, "--from", files / "test.jsonl", "--document", "d21", "--json").out)
    assert value["id"] == "d21"
    said = call("explain", model, "--from", files / "test.jsonl", "--document", "d99")
    refused(said, says="there is no document 'd99'")


def test_features_are_trained_on_and_explained(call, files, tmp_path):
    words = ("train", files / "features.jsonl", "-t", files / "taxonomy.jsonl", "--out", tmp_path / "m", *SMALL)
    assert call(*words, "--no-progress").err == ""
    value = json.loads(call("explain", tmp_path / "m", "--values", "1, 2.5, ?, -3", "--json").out)
    opened = hilap.load(tmp_path / "m")
    row = np.array([[1, 2.5, np.nan, -3]], dtype=np.float32)
    assert value["walk"] == [step.to_json() for step in opened.explain(row)[0]]
    refused(
        call("explain", tmp_path / "m", "--values", "1,x"), says="--values: feature '2' must hold a number, got 'x'"
    )
    refused(call("explain", tmp_path / "m", "--values", "1"), says="fitted on 4 features, but these documents have 1")
    refused(
        call("explain", tmp_path / "m", "some words"), says="mlp encoder reads features, but these documents have none"
    )


def test_columns_have_the_same_names_for_every_command(call, tmp_path):
    lines(tmp_path / "taxonomy.jsonl", TAXONOMY)
    rows = "".join(f"n{i},{i % 2},{i % 3},{'beer' if i % 2 else 'law'}\n" for i in range(30))
    (tmp_path / "all.csv").write_text("name,a,b,labels\n" + rows)
    columns = ("--id", "name", "--features", "a,b", "--text", "")
    words = ("train", tmp_path / "all.csv", "-t", tmp_path / "taxonomy.jsonl", "--out", tmp_path / "m", *SMALL)
    assert call(*words, *columns, "--no-progress").code == 0
    said = call("predict", tmp_path / "m", tmp_path / "all.csv", *columns)
    predicted = {value["id"]: value for value in map(json.loads, said.out.splitlines())}
    said = call("explain", tmp_path / "m", "--from", tmp_path / "all.csv", "--document", "n7", *columns, "--json")
    assert json.loads(said.out)["labels"] == predicted["n7"]["labels"]


def test_sparse_files_with_fewer_columns_fit(call, files, tmp_path):
    (tmp_path / "train.svm").write_text(
        "".join(f"{'beer' if i % 2 else 'law'} 1:{i % 2} 3:1 7:0.5\n" for i in range(30))
    )
    (tmp_path / "few.svm").write_text("beer 1:1 3:1\n")
    words = ("train", tmp_path / "train.svm", "-t", files / "taxonomy.jsonl", "--out", tmp_path / "m", *SMALL)
    assert call(*words, "--valid", tmp_path / "few.svm", "--no-progress").code == 0
    assert call("predict", tmp_path / "m", tmp_path / "few.svm", "--labels-only").code == 0


def test_inspect_tells_what_a_model_is(call, model):
    value = json.loads(call("inspect", model, "--json").out)
    assert (value["kind"], value["documents"], value["taxonomy"]["labels"]) == ("hilap", 64, 4)
    assert value["encoders"][0]["name"] == "tfidf"
    assert value["settings"]["train"]["supervised_epochs"] == 3
    assert len(value["history"]) == 7
    shown = call("inspect", model).out
    assert all(word in shown for word in ("tfidf", "Micro-F1", "reinforced", "fingerprint"))


def test_settings_come_from_a_file_options_and_set_in_this_order(call, files, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(
        'preset = "original"\nseed = 1\ngamma = 0.5\nclip = 2.0\n[encoder_options]\nhidden = [8]\nmin_df = 1\n'
    )
    words = [
        *train_words(files, tmp_path / "m"),
        "--config",
        config,
        "--seed",
        "2",
        "--set",
        "gamma=0.25",
        "--no-progress",
    ]
    assert call(*words).code == 0
    value = json.loads(call("inspect", tmp_path / "m", "--json").out)
    settings = value["settings"]["train"]
    assert (settings["seed"], settings["gamma"], settings["clip"], settings["stay"]) == (2, 0.25, 2.0, True)
    assert (value["encoders"][0]["hidden"], value["encoders"][0]["min_df"]) == ([16], 1)


# -- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--set", "gama=1"], "--set: there is no setting 'gama'; did you mean 'gamma'"),
        (["--set", "gamma=7"], "gamma must be a number between 0 and 1, got 7"),
        (["--set", "gamma"], "--set must be KEY=VALUE, got 'gamma'"),
        (
            ["--set", "gamma.x=1"],
            "only encoder_options, row_options, wide_options, wide_vector_options and reward hold settings of "
            "their own",
        ),
        (["--set", "stay=maybe"], "stay must be true or false, got 'maybe'"),
        (["--set", "taxonomy=x"], "--set: taxonomy is given with --taxonomy"),
        (["--set", "encoder_options.hiden=3"], "no setting 'hiden'; did you mean 'hidden'"),
        (["--set", "reward.example_f2=1"], "reward must be one of"),
        (["--encoder", "tfdf"], "there is no encoder 'tfdf'; did you mean 'tfidf'"),
        (["--preset", "papre"], "preset must be one of .* did you mean 'paper'"),
        (["--seed", "-1"], "seed must be a whole number, at least 0, got -1"),
        (["--set", "variant=flat", "--set", "stop_bias=1"], "stop_bias means nothing to variant 'flat'"),
        (["--set", "threshold=0.3"], "threshold means nothing to variant 'hilap'"),
        (["--set", "count_bias=0.5"], "count_bias means nothing without flat logits"),
        (["--resume", "--force"], "--resume goes on and --force starts anew; take one"),
        (["--tensorboard", "{m}"], "--tensorboard: .*m is in the model's folder, which holds nothing else; give"),
        (["--tensorboard", "{m}/x/y"], "--tensorboard: .*m/x/y is in the model's folder"),
        (["--tensorboard", __file__], r"\.py: this is a file; TensorBoard's figures need a folder"),
        (["--tensorboard", "x", "--method", "svm"], "--tensorboard: svm reports nothing while it learns; leave it out"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_read(call, tmp_path, more, says):
    words = ["train", tmp_path / "none.jsonl", "--taxonomy", tmp_path / "none.tsv", "--out", tmp_path / "m"]
    refused(call(*words, *(word.replace("{m}", str(tmp_path / "m")) for word in more)), says=says)
    assert not (tmp_path / "m").exists()


def test_tensorboard_that_is_not_installed_is_said_before_anything_is_read(call, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    words = ["train", tmp_path / "none.jsonl", "--out", tmp_path / "m", "--tensorboard", tmp_path / "board"]
    refused(call(*words), says=r"tensorboard is needed here; install it with: pip install 'hilap\[tensorboard\]'")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("gamma = \n", "c.toml: this is no valid TOML"),
        ("gama = 1\n", "c.toml: there is no setting 'gama'; did you mean 'gamma'"),
        ("encoder_options = 3\n", "c.toml: encoder_options must be a table, got 3"),
        ("progress = true\n", "c.toml: progress is given with --progress"),
    ],
)
def test_a_bad_file_of_settings_is_named(call, files, tmp_path, content, says):
    (tmp_path / "c.toml").write_text(content)
    refused(call(*train_words(files, tmp_path / "m"), "--config", tmp_path / "c.toml"), says=says)
    refused(call(*train_words(files, tmp_path / "m"), "--config", tmp_path / "d.toml"), says="no such file")


def test_a_trained_model_a_broken_run_and_a_strange_folder_are_not_overwritten(call, model, files, tmp_path):
    refused(call(*train_words(files, model)), says="there is a trained model already; replace it with --force")
    refused(call(*train_words(files, model), "--resume"), says="there is a trained model already")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "checkpoint.safetensors").write_bytes(b"x")
    refused(call(*train_words(files, tmp_path / "broken")), says="was broken off; go on with --resume")
    refused(call(*train_words(files, tmp_path / "broken"), "--resume"), says="damaged or truncated")
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "thesis.txt").write_text("years of work")
    for flag in ("--force", "--resume"):
        refused(call(*train_words(files, tmp_path / "strange"), flag), says=r"no hilap model \(it holds 'thesis.txt'\)")
    refused(
        call(*train_words(files, tmp_path / "strange" / "thesis.txt")), says="this is a file; give the name of a folder"
    )


def test_force_replaces_a_model_and_a_broken_run(call, files, tmp_path):
    out = tmp_path / "m"
    out.mkdir()
    (out / "checkpoint.safetensors").write_bytes(b"x")
    (out / "anew-checkpoint.safetensors").write_bytes(b"x")
    assert call(*train_words(files, out), "--force", "--no-progress").code == 0
    assert not [*out.glob("*checkpoint*")]
    (out / "anew-checkpoint.safetensors").write_bytes(b"x")  # a run was killed just before its end
    refused(call(*train_words(files, out)), says="there is a trained model already")
    assert call(*train_words(files, out), "--force", "--no-progress", "--seed", "5").code == 0
    assert hilap.load(out).seed == 5


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["predict", "{model}", "in.jsonl", "--out", "p.csv"], "p.csv: predictions are written as .jsonl"),
        (["predict", "{model}", "in.jsonl", "--out", "p.parquet.gz"], "Parquet is compressed inside"),
        (["predict", "{model}", "in.jsonl", "--json"], "--json and the predictions would both go to standard output"),
        (["predict", "{model}", "in.jsonl", "--labels-only", "--walks"], "--labels-only gives labels and nothing else"),
        (["predict", "{model}", "in.jsonl"], "in.jsonl: there is no such file"),
        (
            ["predict", "{model}", "in.jsonl", "--set", "stop_bia=1"],
            "'stop_bia' is no setting .* did you mean 'stop_bias'",
        ),
        (["predict", "{model}", "in.jsonl", "--set", "threshold=0.1"], "threshold means nothing to variant 'hilap'"),
        (
            ["predict", "{model}", "in.jsonl", "--set", "gamma=0.1"],
            "'gamma' is no setting that can change after training",
        ),
        (["predict", "nowhere", "in.jsonl"], "nowhere: there is no such folder"),
        (["explain", "{model}"], "one document is needed"),
        (["explain", "{model}", "text", "--values", "1"], "one document is needed"),
        (["explain", "{model}", "text", "--features", "1"], "--features names columns .* numbers go to --values"),
        (["explain", "{model}", "--from", "in.jsonl"], "--from and --document go together"),
        (["inspect", "nowhere"], "nowhere: there is no such folder"),
    ],
)
def test_bad_words_get_one_sentence(call, model, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    refused(call(*(word.format(model=model) for word in words)), says=says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["settings.json", "weights.safetensors", "encoders.json", "training.json"])
def test_a_damaged_model_is_named_by_every_command(call, model, tmp_path, name):
    import shutil

    shutil.copytree(model, tmp_path / "m")
    raw = (tmp_path / "m" / name).read_bytes()
    (tmp_path / "m" / name).write_bytes(raw[: len(raw) // 2])
    for words in (
        ["predict", tmp_path / "m", "x.jsonl"],
        ["explain", tmp_path / "m", "x"],
        ["inspect", tmp_path / "m"],
    ):
        refused(call(*words), says=f"{re.escape(name)}: the file is damaged")


# -- killed and resumed -------------------------------------------------------------------------------------------

# One process imports torch, then forks children that are the command line; each is killed at its moment and resumed.
KILLER = """
import os, signal, sys, time
import torch, hilap.classifier, hilap.saving, hilap.storage
torch.set_num_threads(1)
from hilap.cli import main

def start(words):
    child = os.fork()
    if child == 0:
        sys.argv = ["hilap", *words]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            main()
        except SystemExit as leaving:
            os._exit(leaving.code or 0)
        except BaseException:
            os._exit(99)
        os._exit(0)
    return child

def finished(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

folder, *words = sys.argv[1:]
assert finished(start([*words, "--out", f"{folder}/first"])) == 0  # compiles what is not compiled yet
began = time.monotonic()
assert finished(start([*words, "--out", f"{folder}/whole"])) == 0
whole = time.monotonic() - began
for k, share in enumerate((0.25, 0.5, 0.7, 0.9)):
    out, kills = f"{folder}/broken{k}", 0
    child = start([*words, "--out", out])
    time.sleep(share * whole)
    os.kill(child, signal.SIGKILL)
    code = finished(child)
    if code == -signal.SIGKILL and k % 2:  # killed a second time, a little later
        child = start([*words, "--out", out, "--resume"])
        time.sleep(0.2 * whole)
        os.kill(child, signal.SIGKILL)
        code = finished(child)
    if code != 0 and not os.path.exists(f"{out}/settings.json"):
        assert finished(start([*words, "--out", out, "--resume"])) == 0, out
    print(k, code, flush=True)
"""


@pytest.mark.parametrize("refit", ["false", "true"])
def test_killed_at_any_moment_and_resumed_it_ends_at_the_same_weights(files, tmp_path, refit):
    words = [word for word in train_words(files, tmp_path) if word not in ("--out", str(tmp_path))]
    more = ["--no-progress", *(f"--set={name}=6" for name in ("supervised_epochs", "reinforced_epochs"))]
    more += ["--set", f"refit={refit}"]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, tmp_path, *words, *more], capture_output=True, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    codes = [int(line.split()[1]) for line in done.stdout.splitlines()]
    assert codes.count(-signal.SIGKILL) >= 2, codes  # it really was killed, mostly before its end
    expected = (tmp_path / "whole" / "weights.safetensors").read_bytes()
    log = [(r["phase"], r["epoch"]) for r in map(json.loads, (tmp_path / "whole" / "log.jsonl").open())]
    for k in range(len(codes)):
        out = tmp_path / f"broken{k}"
        assert (out / "weights.safetensors").read_bytes() == expected, k
        assert [(r["phase"], r["epoch"]) for r in map(json.loads, (out / "log.jsonl").open())] == log
        assert {p.name for p in out.iterdir()} - {"checkpoint.safetensors", "anew-checkpoint.safetensors"} == {
            p.name for p in (tmp_path / "whole").iterdir()
        }


@contextmanager
def at_a_terminal(words):
    """A process that Ctrl-C reaches, also where the tests run in the background and SIGINT is ignored and inherited."""
    command = [sys.executable, "-m", "hilap", *words]
    listen = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    running = subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT, preexec_fn=listen)
    try:
        yield running
    finally:
        running.kill()


def _has_lines(path):
    return path.exists() and path.stat().st_size > 0


def test_ctrl_c_says_how_to_go_on_and_leaves_a_usable_checkpoint(call, files, model, tmp_path):
    out = tmp_path / "m"
    words = train_words(files, out, "--no-progress", "--set", "supervised_epochs=4000")
    deadline = time.monotonic() + 90
    with at_a_terminal(words) as running:
        while not _has_lines(out / "log.jsonl") and time.monotonic() < deadline:  # behind the checkpoint
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted; go on with: hilap train " in said.decode()
    assert said.decode().strip().endswith("--resume")
    assert [path.name for path in sorted(out.iterdir())] == ["checkpoint.safetensors", "log.jsonl"]
    done = len([*(out / "log.jsonl").open()])
    assert done >= 1
    # Other settings are not the same run.
    differs = r"written with other settings \(supervised_epochs 4000 instead of 3\); resume with the same"
    refused(call(*train_words(files, out, "--resume")), says=differs)
    with at_a_terminal([*words, "--resume"]) as going_on:
        while len([*(out / "log.jsonl").open()]) <= done and time.monotonic() < deadline:
            time.sleep(0.05)
        going_on.send_signal(signal.SIGINT)
        going_on.communicate(timeout=60)
    records = [json.loads(line)["epoch"] for line in (out / "log.jsonl").open()]
    assert len(records) > done
    assert records == list(range(1, len(records) + 1))  # it went on; nothing is there twice


def test_ctrl_c_before_the_first_epoch_says_that_nothing_is_kept(call, files, tmp_path, monkeypatch):
    from hilap.classifier import HiLAPClassifier

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(HiLAPClassifier, "_learn", interrupted)
    said = call(*train_words(files, tmp_path / "m"))
    assert said.code == 130
    assert "interrupted before the first epoch ended; nothing is kept" in said.err


def test_a_warning_is_one_sentence_without_a_place_in_our_source(files, tmp_path):
    words = ["--taxonomy", files / "taxonomy.jsonl", "--valid", files / "valid.jsonl", "--out", tmp_path / "model"]
    options = ["--method", "hsvm", "--set", "passes=1", "--set", "row_options.min_df=1", "--set", "tolerance=1e-9"]
    command = [sys.executable, "-m", "hilap", "train", files / "train.jsonl", *words, *options]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    (told,) = (line for line in done.stderr.splitlines() if "hsvm" in line)
    assert told.startswith("warning: hsvm: ")
    assert ".py" not in done.stderr
