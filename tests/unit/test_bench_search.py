"""Searching settings: does it keep to its ranges and its budget, keep what it finds, and go on where it was?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import run  # noqa: E402
import search  # noqa: E402

from hilap.errors import SettingError  # noqa: E402

RANGES = {
    "x": {"low": -4.0, "high": 4.0},
    "rate": {"low": 1e-4, "high": 1e-1, "log": True},
    "n": {"low": 1, "high": 5, "whole": True},
    "layers": {"choices": [[8], [8, 8]]},
}


OF = {"set": "funcat", "method": "flat", "seed": 0, "settings": {"epochs": 3}}


class Clock:
    """Processor time that passes by ten seconds a look: a trial takes ten."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 10
        return self.now


def judged(changes):
    """Best at x = 1 with two layers; as it is, x is 3."""
    value = 1 - abs(changes.get("x", 3.0) - 1) / 10 + 0.1 * (changes.get("layers") == [8, 8])
    return {"micro_f1": value, "macro_f1": value, "example_f1": value, "other": 0.0}


def searched(trials=(), seconds=300, judge=judged, keep=lambda trials: None, seed=0):
    return search.search(RANGES, judge, list(trials), seconds=seconds, seed=seed, keep=keep, clock=Clock())


def test_the_first_trial_is_the_settings_as_they_are_and_later_ones_find_better():
    trials = searched()
    assert trials[0].changes == {}
    best = search.best_of(trials)
    assert best.score > trials[0].score
    assert best.changes["layers"] == [8, 8]
    assert abs(best.changes["x"] - 1) < 1


def test_what_is_tried_lies_in_its_range():
    for trial in searched()[1:]:
        assert {*trial.changes} == {*RANGES}
        assert -4 <= trial.changes["x"] <= 4
        assert 1e-4 <= trial.changes["rate"] <= 1e-1
        assert trial.changes["n"] in {1, 2, 3, 4, 5}
        assert trial.changes["layers"] in ([8], [8, 8])


def test_every_method_gets_the_same_processor_time():
    assert len(searched(seconds=55)) == 5  # a sixth would not fit
    assert len(searched(seconds=0)) == 1  # the settings as they are, always


def test_time_that_all_trials_build_on_counts_once():
    trials = search.search(
        RANGES, judged, [], seconds=155, seed=0, keep=lambda trials: None, before=100.0, clock=Clock()
    )
    assert [trial.cpu_seconds for trial in trials] == [110.0, 10.0, 10.0, 10.0, 10.0]  # a sixth would not fit


def test_a_table_is_changed_as_toml_has_it():
    reward = {"example_f1": 1.0, "macro_f1": 0.5}
    assert run.settings_of("hilap", "funcat", [search.change_of("reward", reward)])["reward"] == reward


def test_a_search_that_was_ended_goes_on_and_tries_no_trial_again(tmp_path):
    path = tmp_path / "funcat" / "flat.json"
    searched(seconds=100, keep=lambda trials: search.write_trials(path, OF, trials))
    before = search.read_trials(path, OF)
    assert len(before) == 10
    after = searched(before, seconds=200)
    assert after[:10] == before
    assert len(after) == 20
    assert len({json.dumps(trial.changes) for trial in after}) == 20


def test_a_trial_that_fails_is_kept_and_the_search_goes_on(tmp_path):
    def judge(changes):
        if changes.get("x", 0) > 2:
            raise SettingError("x must not be above 2")
        if changes.get("x", 0) > 0:
            raise RuntimeError("out of memory")
        return judged(changes) if changes.get("x", 0) > -3 else {**judged(changes), "macro_f1": float("nan")}

    path = tmp_path / "search.json"
    trials = searched(seconds=200, judge=judge, keep=lambda trials: search.write_trials(path, OF, trials))
    failed = [trial for trial in trials if trial.scores is None]
    assert {str(trial.error).partition(":")[0] for trial in failed} == {"SettingError", "RuntimeError", "not a number"}
    assert search.best_of(trials).changes.get("x", 0) <= 0
    assert len(searched(search.read_trials(path, OF), seconds=250, judge=judge)) == 25
    assert json.loads(path.read_text())["best"]["score"] == search.best_of(trials).score


def test_settings_that_fail_as_they_are_end_the_search_at_once():
    def judge(changes):
        raise FileNotFoundError("there is no folder funcat")

    with pytest.raises(
        SettingError, match=r"as they are cannot be judged.*FileNotFoundError: there is no folder funcat"
    ):
        searched(judge=judge)


def test_a_search_in_which_all_else_fails_at_no_cost_comes_to_an_end():
    def judge(changes):
        if changes:
            raise SettingError("no")
        return judged(changes)

    trials = search.search(RANGES, judge, [], seconds=60, seed=0, keep=lambda trials: None, clock=lambda: 0.0)
    assert len(trials) == 1 + search.MOST_FAILED


def test_trials_of_other_ranges_do_no_harm():
    old = search.Trial({"x": 9.0, "rate": 0.01, "n": 3, "layers": [8]}, judged({"x": 9.0}), 10.0)
    other = search.Trial({"depth": 3}, judged({}), 10.0)
    assert len(searched([searched(seconds=0)[0], old, other], seconds=50)) == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"low": 2, "high": 1}, "choices, or numbers from low to high"),
        ({"low": 0.0, "high": 1.0, "log": True}, "above 0 where it is on a scale of powers"),
        ({"choices": [1]}, "at least two choices"),
        ({"choices": [1, 2], "low": 0}, "and nothing else"),
        ({"low": 0, "hihg": 1}, "choices, or numbers from low to high"),
        (3, "choices, or numbers from low to high"),
    ],
)
def test_a_range_that_is_none_is_told(given, message):
    with pytest.raises(SettingError, match=message):
        search.space_of("flat", "funcat", {"flat": {"all": {"epochs": given}}})


def test_a_method_without_a_space_is_told_what_to_do():
    with pytest.raises(SettingError, match=r"nothing to search for cssa on funcat; it has: flat. Add a table \[cssa"):
        search.space_of("cssa", "funcat", {"flat": {"all": {}}})


def test_a_file_that_is_no_search_is_not_written_over(tmp_path):
    path = tmp_path / "flat.json"
    path.write_text('{"trials": [3]}')
    with pytest.raises(SettingError, match="no file of a search"):
        search.read_trials(path, OF)


@pytest.mark.parametrize("other", [{"seed": 1}, {"settings": {"epochs": 5}}])
def test_trials_that_cannot_be_compared_are_not_mixed(tmp_path, other):
    path = tmp_path / "flat.json"
    search.write_trials(path, OF, searched(seconds=0))
    with pytest.raises(SettingError, match=f"it was searched with {next(iter(other))} .* move it away"):
        search.read_trials(path, {**OF, **other})


def test_all_spaces_are_good_and_change_settings_that_methods_have():
    from hilap import HiLAPClassifier
    from hilap.baselines import method

    tables = search.tomllib.loads(search.SPACES.read_text(encoding="utf-8"))
    for name, sets in tables.items():
        for of in sets:
            some = "trove" if of == "all" else of
            ranges = search.space_of(name, some, tables)
            for key, given in ranges.items():
                for value in given.get("choices", [given.get("low"), given.get("high")]):
                    changes = [search.change_of(key, value)]
                    settings = run.settings_of(name.removeprefix("members_of_"), some, changes)
                    system = settings.pop("system", None)
                    made = HiLAPClassifier(**settings) if system is None else method(system)(**settings)
                    made.check()


def test_a_change_inside_a_table_leaves_its_others():
    plain = run.settings_of("hilap", "funcat", [])["encoder_options"]
    changed = run.settings_of("hilap", "funcat", ["encoder_options.dropout=0.25"])["encoder_options"]
    assert changed == {**plain, "dropout": 0.25}
