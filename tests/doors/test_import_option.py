"""`--import MODULE`: a model with an encoder of a user's own, on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hilap import HiLAPClassifier
from hilap.cli import main
from hilap.encoders import ENCODERS
from hilap.taxonomy import Taxonomy

MODULE = """
import torch
from torch import nn
from hilap.encoders import ENCODERS, ModuleEncoder
from helper_of_lengths import SCALE

class Lengths(ModuleEncoder):
    name = "lengths"

    def tensor(self, examples):
        return torch.tensor([[float(len(text)) * SCALE, 1.0] for text in examples.texts])

    def module(self):
        return nn.Linear(2, 4)

ENCODERS[Lengths.name] = Lengths
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the module and a model of it, in a process that knows neither."""
    (tmp_path / "own_lengths.py").write_text(MODULE)
    (tmp_path / "helper_of_lengths.py").write_text("SCALE = 0.1\n")
    (tmp_path / "broken_one.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "wrong_one.py").write_text("1 / 0\n")
    (tmp_path / "json.py").write_text("raise SystemExit('it took the place of the real one')\n")
    (tmp_path / "docs.jsonl").write_text('{"id": "x", "text": "some text", "labels": ["a"]}\n' * 9)
    (tmp_path / "taxonomy.jsonl").write_text('{"label": "a", "parents": []}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    before, known = {*sys.modules}, dict(ENCODERS)
    space: dict[str, type] = {}
    exec(MODULE, space)
    made = HiLAPClassifier(Taxonomy.of({"a": []}), encoder=space["Lengths"](), variant="flat", flat_epochs=1)
    made.fit(["a b", "c"] * 9, [["a"], []] * 9).save(tmp_path / "model")
    sys.path.pop()
    _forget(before, known)
    yield tmp_path
    _forget(before, known)


def _forget(modules, encoders):
    ENCODERS.clear()
    ENCODERS.update(encoders)
    for name in {*sys.modules} - modules:
        if "lengths" in name or "_one" in name or name.endswith("of --import"):
            del sys.modules[name]


@pytest.fixture
def call(capsys, monkeypatch):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["hilap", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


COMMANDS = {
    "predict": ("predict", "model", "docs.jsonl"),
    "explain": ("explain", "model", "some text", "--json"),
    "inspect": ("inspect", "model", "--json"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("module", ["own_lengths", "own_lengths.py", "./own_lengths.py"])
def test_a_model_opens_once_its_module_is_imported(folder, call, command, module):
    code, out, err = call(*COMMANDS[command])
    assert code == 2
    assert out == ""
    assert "there is no encoder 'lengths' here; if it is one of your own, import the module" in err
    assert "--import MODULE" in err
    code, out, err = call(*COMMANDS[command], "--import", module)
    assert (code, err) == (0, "")
    assert json.loads(out.splitlines()[0] if command == "predict" else out)


def test_a_file_elsewhere_is_imported_with_what_lies_beside_it(folder, call, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    code, out, _ = call("inspect", folder / "model", "--json", "--import", folder / "own_lengths.py")
    assert code == 0
    assert json.loads(out)["encoders"] == [{"name": "lengths"}]


def test_an_encoder_of_ones_own_is_trained_by_name(folder, call):
    words = ("train", "docs.jsonl", "-t", "taxonomy.jsonl", "--out", "new", "--encoder", "lengths", "--json")
    words = (*words, "--set", "variant=flat", "--set", "flat_epochs=1", "--no-progress")
    code, _, err = call(*words)
    assert code == 2
    assert "there is no encoder 'lengths'" in err
    assert "--import MODULE" in err
    code, out, _ = call(*words, "--import", "own_lengths")
    assert code == 0
    assert json.loads(out)["model"] == "new"


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("nothing_here", "there is no module 'nothing_here', neither installed nor in this folder; check the name"),
        ("code/own", "there is no module 'code/own'"),
        ("nothing_here.py", "there is no file 'nothing_here.py'; check the path"),
        ("broken_one", "'broken_one' cannot be imported (ModuleNotFoundError: No module named 'nothing_of_this_name')"),
        ("wrong_one.py", "'wrong_one.py' cannot be imported (ZeroDivisionError: division by zero)"),
        ("", "'' cannot be imported (ValueError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_in_one_sentence(folder, call, module, says):
    code, out, err = call("inspect", "model", "--import", module)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: --import: {says}")
    assert len(err.splitlines()) == 1


def test_a_name_that_is_installed_is_not_taken_from_the_folder(folder, call):
    code, _, err = call("inspect", "model", "--import", "json")
    assert code == 2
    assert "there is no encoder 'lengths' here" in err


def test_nothing_that_lies_in_a_model_is_imported(folder, call):
    Path("model/own_lengths.py").write_text("open('ran', 'w')\n")
    Path("model/lengths.py").write_text("open('ran', 'w')\n")
    assert call("inspect", "model")[0] == 2
    assert not Path("ran").exists()
