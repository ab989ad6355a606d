"""The page's section on searches: does it say what their files have, and are those of the settings of today?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import run  # noqa: E402
import search  # noqa: E402
import searched  # noqa: E402
from search import Trial  # noqa: E402


def scores(micro: float, macro: float, example: float) -> dict[str, float]:
    return {"micro_f1": micro, "macro_f1": macro, "example_f1": example}


def write(folder: Path, name: str, method: str, *others: Trial) -> None:
    plain = Trial({}, scores(0.30, 0.09, 0.30), 60.0)
    search.write_trials(folder / name / f"{method}.json", {"set": name, "method": method}, [plain, *others])


def test_a_line_has_what_the_best_trial_adds_and_by_which_changes(tmp_path):
    better = Trial({"rate": 0.01, "reward": {"macro_f1": 1.0}}, scores(0.31, 0.12, 0.29), 120.0)
    write(tmp_path, "funcat", "flat", better, Trial({"rate": 9.0}, None, 1.0, "ValueError: too much"))
    (title, _, table, words) = searched.search_section(["funcat"], tmp_path)
    assert title == searched.TITLE
    row = [cell.strip() for cell in table.splitlines()[2].strip("|").split("|")]
    assert row == [
        *("FunCat (cellcycle)", "`flat`", "2 (1 failed)", "3", "30.00 / 9.00 / 30.00", "31.00 / 12.00 / 29.00"),
        *("+1.00", "`rate` 0.01, `reward` (macro_f1: 1.0)"),
    ]
    assert "on FunCat (cellcycle) `flat` +1.00" in words


def test_settings_that_nothing_beats_gain_nothing(tmp_path):
    write(tmp_path, "funcat", "hilap", Trial({"rate": 0.5}, scores(0.1, 0.1, 0.1), 10.0))
    write(tmp_path, "funcat", "flat", Trial({"rate": 0.5}, scores(0.4, 0.1, 0.3), 10.0))
    (_, _, table, words) = searched.search_section(["funcat"], tmp_path)
    assert "| +0.00 | none |" in table
    assert words.index("`flat` +3.67") < words.index("`hilap` +0.00")  # who gains most comes first


def test_only_searches_of_the_sets_on_the_page_are_told_of(tmp_path):
    write(tmp_path, "funcat", "flat")
    assert searched.search_section(["go"], tmp_path) == []
    assert searched.search_section([], tmp_path / "nowhere") == []


def committed() -> list[Path]:
    return sorted(searched.SEARCHES.glob("*/*.json"))


@pytest.mark.parametrize("path", committed(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_committed_search_began_with_the_settings_of_today(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    assert (found["set"], found["method"]) == (path.parent.name, path.stem)
    today = json.loads(json.dumps(run.settings_of(found["method"], found["set"], [])))
    assert found["settings"] == today, "search again, or take the settings back"
    assert found["trials"][0]["changes"] == {}


def uneven(folder: Path) -> list[str]:
    """Sets on which one system was searched half as long again as another."""
    spent: dict[str, list[float]] = {}
    for path in folder.glob("*/*.json"):
        spent.setdefault(path.parent.name, []).append(json.loads(path.read_text(encoding="utf-8"))["cpu_seconds"])
    return [name for name, seconds in spent.items() if max(seconds) > 1.5 * min(seconds)]


def test_searches_of_a_set_had_the_same_time(tmp_path):
    write(tmp_path, "funcat", "flat", Trial({"rate": 0.5}, scores(0.1, 0.1, 0.1), 60.0))
    write(tmp_path, "funcat", "svm", Trial({"rate": 0.5}, scores(0.1, 0.1, 0.1), 50.0))
    assert uneven(tmp_path) == []
    write(tmp_path, "funcat", "hilap", Trial({"rate": 0.5}, scores(0.1, 0.1, 0.1), 300.0))
    assert uneven(tmp_path) == ["funcat"]
    assert uneven(searched.SEARCHES) == []
