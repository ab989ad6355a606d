"""What `make demo` runs, and what it promises to show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from hilap import HiLAPClassifier

ROOT = Path(__file__).resolve().parents[2]
RECIPE = re.compile(r"^demo:.*\n\t\$\(BIN\)/python (\S+)$", re.MULTILINE)
ROW = re.compile(r"^│ ((?:flat, |HiLAP)[^│]*?) +│ +([\d.]+) +│ +([\d.]+) +│ +([\d.]+) +│ +([\d.]+) +│$", re.MULTILINE)
STEP = re.compile(r"^ +(\d+)\. (.+?) -> (.+?)  ([01]\.\d\d)", re.MULTILINE)


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> tuple[str, Path]:
    """What the demonstration prints in an empty folder, run by the command of the Makefile, and the folder."""
    folder = tmp_path_factory.mktemp("demo")
    (script,) = RECIPE.findall((ROOT / "Makefile").read_text(encoding="utf-8"))
    wide = {**os.environ, "COLUMNS": "400", "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(ROOT / script)], cwd=folder, env=wide, capture_output=True, encoding="utf-8", timeout=1800
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, folder


@pytest.mark.slow
def test_the_demo_shows_the_sample_without_errors_in_its_taxonomy(said):
    text, _ = said
    assert re.search(r"^taxonomy: <Taxonomy: .*>, 0 errors, \d+ warnings and notes$", text, re.MULTILINE)
    assert re.search(r"^├── Software Development [\d,]+ … \d+ below$", text, re.MULTILINE)


@pytest.mark.slow
def test_in_the_demo_hilap_is_consistent_and_better_than_the_flat_models_it_starts_from(said):
    text, _ = said
    scores = {name: [float(number) for number in numbers] for name, *numbers in ROW.findall(text)}
    half, tuned, hilap = scores  # in this order
    assert half == "flat, threshold 0.5"
    assert re.fullmatch(r"flat, tuned threshold 0\.\d\d", tuned)
    assert hilap == "HiLAP"
    assert scores[hilap][3] == 0 < min(scores[half][3], scores[tuned][3])  # inconsistent documents
    for column in range(3):  # Micro-F1, Macro-F1, EBF
        assert scores[hilap][column] > scores[tuned][column] - 0.5
        assert scores[hilap][column] > scores[half][column]
    assert sum(scores[hilap][:3]) > sum(scores[tuned][:3])


@pytest.mark.slow
def test_the_demo_shows_one_walk_from_the_root_to_stop_and_what_it_placed(said):
    text, _ = said
    steps = STEP.findall(text)
    assert [int(number) for number, *_ in steps] == list(range(1, len(steps) + 1))
    assert steps[0][1] == "root"
    assert steps[-1][2] == "stop"
    assert all(before[2] == after[1] for before, after in pairwise(steps))
    result = text.partition("One walk")[2].partition(f"{len(steps)}. ")[2].splitlines()[1]
    placed = {label for _, _, label, _ in steps[:-1]}
    assert set(re.findall(r"[:,] ([^,]+?) [01]\.\d\d", result)) == placed


@pytest.mark.slow
def test_the_model_of_the_demo_opens_and_the_command_it_suggests_runs(said):
    text, folder = said
    (suggested,) = re.findall(r"^The model is in demo-model/\. Try: hilap (.*)$", text, re.MULTILINE)
    verb, model, words = re.fullmatch(r"(\w+) (\S+) '(.*)'", suggested).groups()
    found = HiLAPClassifier.load(folder / model).predict_labels([words])[0]
    asked = subprocess.run(
        [sys.executable, "-m", "hilap", verb, model, words],
        cwd=folder, capture_output=True, encoding="utf-8", timeout=600, env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    assert "stop" in asked.stdout
    assert len(found.labels) > 0
