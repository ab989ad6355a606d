"""`hilap explain` says which words spoke for each label."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import hilap
from hilap import HiLAPClassifier, attribution
from hilap.cli import main
from hilap.corpus.examples import Examples
from hilap.taxonomy import Taxonomy

TREE = Taxonomy.of({"food": [], "bars": ["food"], "law": []}, {"food": "Food", "bars": "[Bars]", "law": "Law"})
TEXTS = ["craft beer", "court ruling", "dinner", "we"] * 12
LABELS = [["bars"], ["law"], ["food"], []] * 12
ROWS = np.random.default_rng(0).normal(size=(48, 2)).astype(np.float32)


def saved(folder, **settings):
    small = {"hidden": 12, "width": 6, "learning_rate": 0.02, "supervised_epochs": 30, "reinforced_epochs": 2}
    examples = Examples.of(TREE, LABELS, texts=TEXTS, features=ROWS)
    HiLAPClassifier(**{**small, **settings}).fit(examples).save(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("m") / "m", encoder="tfidf", encoder_options={"hidden": 16})


@pytest.fixture
def call(capsys, monkeypatch):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["hilap", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def printed(out):
    """Heading -> its lines, each a score and a word, or "no word"."""
    found = {}
    for line in out[out.index("words for") :].splitlines():
        if line.startswith("words "):
            lines = found.setdefault(line.removeprefix("words ").strip(), [])
        else:
            cells = line.split()
            lines.append("no word" if cells == ["no", "word"] else (cells[0], cells[-1]))
    return found


def test_words_stand_below_the_walk(call, model):
    code, out, _ = call("explain", model, "craft beer at court", "--top", "2")
    assert code == 0
    found = attribution.words(hilap.load(model), "craft beer at court")
    assert found
    shown = printed(out)
    names = dict(zip(TREE.labels, TREE.names, strict=True))
    assert {heading.removeprefix("for ") for heading in shown if heading.startswith("for ")} == {*map(names.get, found)}
    for label, scores in found.items():
        lines = [(f"{scored.score:+.2f}", scored.word) for scored in scores]
        assert shown[f"for {names[label]}"] == [line for line in lines if float(line[0]) > 0][:2]
        assert shown.get(f"against {names[label]}", []) == [line for line in lines[::-1] if float(line[0]) < 0][:2]
    assert any(heading.startswith("against ") for heading in shown)
    assert out.index("labels: ") < out.index("words for")


def test_words_that_say_nothing_are_left_out(call, model):
    _, out, _ = call("explain", model, "craft beer at unheard qwerty", "--top", "9")  # no document had the last three
    shown = {word for lines in printed(out).values() for _, word in lines}
    assert {"craft", "beer"} <= shown
    assert not shown & {"at", "unheard", "qwerty"}
    assert "0.00" not in out[out.index("words for") :]


@pytest.mark.parametrize("text", ["", "unheard qwerty"])
def test_a_label_without_words_says_so(call, model, text):
    code, out, _ = call("explain", model, text, "--set", "min_labels=1")
    assert code == 0
    shown = printed(out)
    assert shown
    assert all(lines == ["no word"] for lines in shown.values())
    value = json.loads(call("explain", model, text, "--set", "min_labels=1", "--json")[1])
    assert [*value["words"].values()] == [[]] * len(shown)


def test_json_has_the_words_and_without_them_it_has_not(call, model):
    value = json.loads(call("explain", model, "craft beer", "--json")[1])
    found = attribution.words(hilap.load(model), "craft beer")
    assert {*found} == {"food", "bars"}
    assert all(min(scored.score for scored in scores) > 0.01 for scores in found.values())  # all of them say something
    assert value["words"] == {label: [scored.to_json() for scored in scores] for label, scores in found.items()}
    assert "words" not in json.loads(call("explain", model, "craft beer", "--no-words", "--json")[1])
    assert "words for" not in call("explain", model, "craft beer", "--no-words")[1]


def test_a_text_without_labels_is_explained(call, model):
    code, out, _ = call("explain", model, "", "--set", "stop_bias=900")
    assert code == 0
    assert "labels: no label" in out
    assert "words for" not in out


def test_a_flat_model_has_words_but_no_walk(call, tmp_path):
    folder = saved(tmp_path / "m", encoder="tfidf", encoder_options={"hidden": 16}, variant="flat", flat_epochs=8)
    code, out, _ = call("explain", folder, "craft beer")
    assert code == 0
    assert out.startswith("labels: ")
    assert "words for" in out
    code, _, err = call("explain", folder, "craft beer", "--no-words")
    assert code == 2
    assert "explain needs a policy that walks" in err


def test_text_and_features_together_for_a_model_that_reads_both(call, tmp_path, model):
    parts = [{"encoder": kind, "options": {"hidden": 8}} for kind in ("tfidf", "mlp")]
    folder = saved(tmp_path / "m", encoder="several", encoder_options={"parts": parts})
    code, out, err = call("explain", folder, "craft beer", "--values", "1,?", "--json")
    assert code == 0, err
    examples = Examples.of(TREE, [[]], texts=["craft beer"], features=np.array([[1, np.nan]], dtype=np.float32))
    opened = hilap.load(folder)
    value = json.loads(out)
    assert value["walk"] == [step.to_json() for step in opened.explain(examples)[0]]
    assert {*value["words"]} == {scored["label"] for scored in value["labels"]}
    code, _, err = call("explain", model, "craft beer", "--values", "1,2")
    assert code == 2
    assert "one document is needed" in err
    assert "this model reads texts only" in err
    code, _, err = call("explain", folder, "craft beer")
    assert code == 2
    assert "the mlp encoder reads features, but these documents have none" in err
