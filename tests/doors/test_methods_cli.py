"""`--method`: every system to compare with is trained, asked, judged and shown by the command line."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import hilap
from hilap.baselines import METHODS, learning, method
from hilap.cli import main
from hilap.cli.train import PRESETS
from hilap.settings import PRESETS as OURS
from hilap.storage import write_checkpoint
from tests.doors.test_train_cli import ENVIRONMENT, TAXONOMY, Said, documents, lines, refused

NET = ("encoder_options.hidden=[16]", "epochs=12", "learning_rate=0.02", "batch_size=8")
GRAPH = ("encoder_options.preset=light", "encoder_options.nodes=8", "encoder_options.maps=[8]")
QUICK = {  # so that each trains in a fraction of a second
    "flat": (*NET, "tune=mean"),
    "conditional": NET,
    "c-hmcnn": NET,
    "hmcn": ("hidden=16", *NET),
    "hr-dgcnn": (*GRAPH, *NET),
    "hr-svm": ("rounds=3", "tolerance=0.05"),  # it settles: nothing is to be said on standard error
    "clus-hmc": ("min_leaf=2", "significance=1.0", "jobs=1"),
}
READ_FEATURES = [name for name in METHODS if name != "hr-dgcnn"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
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


def train_words(name, files, out, corpus="train.jsonl") -> list[str]:
    settings = QUICK.get(name, ())
    if corpus == "features.jsonl" and name == "hmcn":  # rows of features go in as they are: no layer to set
        settings = [pair for pair in settings if not pair.startswith("encoder_options")]
    valid = ["--valid", files / "valid.jsonl"] if corpus == "train.jsonl" else []
    words = ["train", files / corpus, "-t", files / "taxonomy.jsonl", *valid, "--out", out, "--method", name]
    return [*map(str, words), "--no-progress", "--json", *(word for pair in settings for word in ("--set", pair))]


@pytest.mark.parametrize("name", METHODS)
def test_from_a_corpus_of_texts_to_labels_and_their_scores(call, files, tmp_path, name):
    out, found = tmp_path / "m", tmp_path / "p.jsonl"
    said = call(*train_words(name, files, out))
    assert (said.code, said.err) == (0, "")
    figures = json.loads(said.out)
    assert (figures["documents"], figures["validation"]["documents"]) == (64, 16)
    assert not (out / "checkpoint.safetensors").exists()

    said = call("predict", out, files / "test.jsonl", "--out", found, "--scores", "--json")
    assert json.loads(said.out) == {"file": str(found), "documents": 16, "skipped": 0}
    opened = hilap.load(out)
    test = hilap.read_corpus(files / "test.jsonl", opened.taxonomy_).load()
    records = [json.loads(line) for line in found.open()]
    scores = [record.pop("scores") for record in records]
    assert records == [prediction.to_json() for prediction in opened.predict_labels(test)]
    assert all({*mine} <= {*opened.taxonomy_.labels} and all(0 <= p <= 1 for p in mine.values()) for mine in scores)

    said = call("evaluate", found, files / "test.jsonl", "-t", files / "taxonomy.jsonl", "--scores", found, "--json")
    judged = json.loads(said.out)["scores"]
    assert judged["example_f1"] == pytest.approx(opened.score(test))
    assert judged["example_f1"] > 0.5  # the words give the labels away
    assert json.loads(call("inspect", out, "--json").out)["kind"] == name
    assert f" {name}, written by hilap" in call("inspect", out).out


@pytest.mark.parametrize("name", READ_FEATURES)
def test_from_features_to_labels(call, files, tmp_path, name):
    assert call(*train_words(name, files, tmp_path / "m", "features.jsonl")).code == 0
    said = call("predict", tmp_path / "m", files / "features.jsonl", "--labels-only")
    assert (said.code, said.err) == (0, "")
    opened = hilap.load(tmp_path / "m")
    examples = hilap.read_corpus(files / "features.jsonl", opened.taxonomy_).load()
    sets = [[*labels] for labels in opened.taxonomy_.decode(opened.predict(examples))]
    assert [json.loads(line)["labels"] for line in said.out.splitlines()] == sets
    refused(
        call("explain", tmp_path / "m", "--values", "1,2,3,4"),
        says=f"explain needs a policy that walks; this is a model of kind '{name}'",
    )


def test_a_system_of_words_refuses_features_in_one_sentence(call, files, tmp_path):
    said = call(*train_words("hr-dgcnn", files, tmp_path / "m", "features.jsonl"))
    refused(said, says="the wordgraph encoder reads texts, but these documents have none")


@pytest.mark.parametrize("words", [("--preset", "paper"), ("--set", "preset=deep")])
def test_a_preset_for_features_refuses_texts_in_one_sentence(call, files, tmp_path, words):
    said = call(*train_words("flat", files, tmp_path / "m"), *words)
    refused(said, says=f"preset='{words[1].removeprefix('preset=')}' of flat is made for features, but these documents")
    assert call(*train_words("flat", files, tmp_path / "m", "features.jsonl"), *words).code == 0


def test_a_threshold_is_kept_or_refused_in_one_sentence(call, files, tmp_path):
    words = train_words("clus-hmc", files, tmp_path / "m")
    said = call(*words, "--set", "threshold=0.3", "--set", "tune=mean")
    refused(said, says="threshold=0.3 would be overwritten: tune='mean' chooses it on validation documents; leave it")
    assert call(*words, "--set", "threshold=0.3").code == 0
    assert (hilap.load(tmp_path / "m").thresholds_ == 0.3).all()


def test_a_number_of_labels_leaves_no_place_for_a_threshold(call, files, tmp_path):
    words = train_words("cssa", files, tmp_path / "m")
    both = "threshold=0.3 is not looked at where labels=2 says how many there are; give one of them, and None .on the"
    refused(call(*words, "--set", "labels=2", "--set", "threshold=0.3"), says=both)
    tune = "tune='mean' has nothing to tune where labels=2 says how many there are; leave tune out, or set labels="
    refused(call(*words, "--set", "labels=2", "--set", "tune=mean"), says=tune)
    assert call(*words, "--set", "labels=2").code == 0
    asked = ("predict", tmp_path / "m", files / "test.jsonl", "--labels-only", "--set", "threshold=0.3")
    refused(call(*asked), says=both)
    said = call(*asked, "--set", "labels=null")
    opened = hilap.load(tmp_path / "m").with_decoding(threshold=0.3, labels=None)
    test = hilap.read_corpus(files / "test.jsonl", opened.taxonomy_).load()
    assert [json.loads(line)["labels"] for line in said.out.splitlines()] == [
        [*labels] for labels in opened.taxonomy_.decode(opened.predict(test))
    ]


@pytest.mark.parametrize("name", ["svm", "hr-dgcnn"])  # one that is solved, one that learns epoch by epoch
def test_a_process_of_its_own_writes_the_same_model(call, files, tmp_path, name):
    assert call(*train_words(name, files, tmp_path / "here")).code == 0
    command = [sys.executable, "-m", "hilap", *train_words(name, files, tmp_path / "there")]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=True)
    assert json.loads(done.stdout)["documents"] == 64
    assert done.stderr == b""
    one, other = ((tmp_path / place / "weights.safetensors").read_bytes() for place in ("here", "there"))
    assert one == other


def test_ctrl_c_says_how_to_go_on_and_the_end_is_that_of_an_unbroken_run(call, files, tmp_path, monkeypatch):
    assert call(*train_words("flat", files, tmp_path / "whole")).code == 0
    written = []

    def interrupted(*args):
        write_checkpoint(*args)
        written.append(args)
        if len(written) == 3:
            raise KeyboardInterrupt

    words = train_words("flat", files, tmp_path / "m")
    with monkeypatch.context() as patch:
        patch.setattr(learning, "write_checkpoint", interrupted)
        said = call(*words)
    assert said.code == 130
    assert said.err.strip().startswith("interrupted; go on with: hilap train ")
    assert said.err.strip().endswith("--resume")
    refused(call(*words), says="a run into this folder was broken off; go on with --resume")
    assert call(*words, "--resume").code == 0
    one, other = ((tmp_path / place / "weights.safetensors").read_bytes() for place in ("whole", "m"))
    assert one == other


def test_what_is_solved_in_one_go_is_not_resumed(call, files, tmp_path):
    solved = [name for name in METHODS if not method(name).resumable]
    assert "svm" in solved
    for name in solved:
        said = call(*train_words(name, files, tmp_path / "m"), "--resume")
        refused(said, says=f"--resume: {name} is solved in one go, there is nothing to resume; leave it out")
    assert not (tmp_path / "m").exists()


def test_help_names_the_presets_that_there_are(call):
    kinds = {name: method(name) for name in METHODS}
    asked = {name: kind for name, kind in kinds.items() if "preset" in inspect.signature(kind).parameters}
    assert {"hilap": tuple(OURS), **{name: tuple(kind.PRESETS) for name, kind in asked.items()}} == PRESETS
    assert {name: names[0] for name, names in PRESETS.items()} == {
        "hilap": hilap.HiLAPClassifier().preset,
        **{name: kind().preset for name, kind in asked.items()},
    }
    shown = call("train", "--help").out
    assert all(preset in shown for names in PRESETS.values() for preset in names)


def test_help_names_every_method(call):
    shown = call("train", "--help").out
    (words,) = re.findall(r"--method .*?(?=--encoder)", shown, flags=re.DOTALL)
    named = [word.strip(".,") for word in words.split()]
    assert [word for word in named if word in METHODS] == [*METHODS]


def test_inspect_tells_a_loss_as_a_loss_and_what_a_preset_supplied(call, files, tmp_path):
    out = tmp_path / "m"
    assert call(*train_words("hmcn", files, out), "--set", "select=loss").code == 0
    known = json.loads(call("inspect", out, "--json").out)
    (phase,) = known["phases"]
    shown = call("inspect", out).out
    assert phase["best_score"] < 0
    assert f"best {phase['best_epoch']} (validation loss {-phase['best_score']:.3g})" in shown
    assert known["settings"]["parameters"]["beta"] is None
    used = known["used"]
    assert (used["hidden"], used["beta"], used["dropout"], used["threshold"]) == (16, 0.5, 0.6, 0.5)
    assert used["encoder_options"]["hidden"] == [16]
    assert re.search(r"^beta +0\.5 *$", shown, re.MULTILINE)
    assert re.search(r"^batch_size +8 *$", shown, re.MULTILINE)
