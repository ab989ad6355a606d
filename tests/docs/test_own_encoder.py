"""The example of an encoder of one's own runs, and what it saves opens."""

from __future__ import annotations

import runpy
from pathlib import Path

from hilap.encoders import ENCODERS

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_encoder.py"


def test_the_example_trains_saves_opens_and_predicts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(EXAMPLE))["main"](documents=60, epochs=1)
    finally:
        ENCODERS.pop("letters", None)
    said = capsys.readouterr().out
    assert said.startswith("example F1 on 60 test documents: 0.")
    assert (tmp_path / "own-encoder-model" / "weights.safetensors").exists()
