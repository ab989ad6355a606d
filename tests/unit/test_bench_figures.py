"""The bench draws: what a result keeps for figures, the figures themselves, and the quick bench."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from hilap.corpus import Examples
from hilap.errors import HilapError, MissingExtraError
from hilap.metrics.groups import by_level, by_popularity
from hilap.taxonomy import Taxonomy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import certainty
import cost
import curves
import figures
import findings
import plotting
import quick
import records
import run
import suite
import table

from tests.unit.test_benchmarks import RUNNER, write_result


def numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


# --- what a result keeps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [6, 1])  # with one decimal most scores are equal to others
def test_the_kept_curve_lies_on_scikit_learns(decimals):
    from sklearn.metrics import precision_recall_curve

    rng = np.random.default_rng(0)
    gold = (rng.random((90, 7)) < 0.3).astype(int)
    scores = np.clip(gold * 0.3 + rng.random(gold.shape) * 0.7, 0, 1).round(decimals).astype(np.float32)
    recall, precision = curves.precision_recall(sparse.csr_array(gold), scores)
    theirs = precision_recall_curve(gold.ravel(), scores.ravel())
    points = {(round(r, 9), round(p, 9)) for p, r in zip(theirs[0], theirs[1], strict=True)}
    assert {(round(r, 9), round(p, 9)) for r, p in zip(recall, precision, strict=True)} <= points
    assert recall[-1] == 1
    assert (np.diff(recall) > 0).all()
    if decimals == 6:
        assert len(recall) == curves.POINTS
        assert recall == pytest.approx(np.ceil(np.arange(1, 101) / 100 * gold.sum()) / gold.sum())


def test_the_reliability_table_counts_pairs_by_probability():
    scores = np.array([[0.01, 0.02, 0.99], [0.01, 0.5, 0.97]], dtype=np.float32)
    gold = sparse.csr_array(np.array([[0, 1, 1], [0, 1, 0]]))
    kept = curves.curves_of(gold, scores)["reliability"]
    pairs = numbers(kept["pairs"])
    assert (len(pairs), pairs[0], pairs[7], pairs[14]) == (15, 3, 1, 2)
    assert numbers(kept["probability"])[[0, 14]] == pytest.approx([0.04 / 3, 0.98], abs=1e-4)
    assert numbers(kept["right"])[[0, 7, 14]] == pytest.approx([1 / 3, 1, 0.5], abs=1e-4)
    assert np.isnan(numbers(kept["right"])[1])


def test_margins_have_no_reliability_and_no_gold_has_no_curve():
    gold = sparse.csr_array(np.array([[1, 0]]))
    assert set(curves.curves_of(gold, np.array([[3.0, -2.0]]))) == {"precision_recall"}
    assert set(curves.curves_of(sparse.csr_array((1, 2), dtype=int), np.array([[0.5, 0.1]]))) == {"reliability"}


@pytest.fixture
def own_set(tmp_path) -> Path:
    """A data directory with a tiny set prepared as RCV1 would be."""
    folder = tmp_path / "data" / "rcv1"
    folder.mkdir(parents=True)
    lines = [{"label": "food", "parents": []}, {"label": "bars", "parents": ["food"]}, {"label": "law", "parents": []}]
    (folder / "taxonomy.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    words = {"food": "bread soup", "bars": "beer rum", "law": "court judge"}
    for part in ("train", "valid", "test"):
        rows = [
            {"id": f"{i}", "text": f"{words[label]} {words[label]} {i}", "labels": [label]}
            for i, label in enumerate(list(words) * 8)
        ]
        (folder / f"{part}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return tmp_path / "data"


def test_a_set_of_the_paper_runs_from_its_prepared_folder_to_the_page(own_set, tmp_path):
    found = run.run("rcv1", "svm-zero", 0, test=True, changes=[], folder=own_set, models=None)
    gold = numbers(found["counts"]["documents"]["gold"])
    assert gold.tolist() == [1, 2, 1] * 8
    assert numbers(found["counts"]["labels"]["training"]).tolist() == [32, 16, 16]
    assert numbers(found["counts"]["labels"]["level"]).tolist() == [1, 2, 1]
    assert numbers(found["reliability"]["pairs"]).sum() == 24 * 3
    shape = {"inputs": "texts", "labels": 3, "structure": "tree", "levels": 2, "labels_per_document": 1.33}
    assert found["shape"] == shape | dict.fromkeys(("train", "valid", "test"), 24)
    assert numbers(found["precision_recall"]["recall"])[-1] == 1
    path = tmp_path / "results" / "rcv1" / "svm-zero" / "0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(found))
    page = table.page(tmp_path / "results")
    assert "## RCV1" in page
    assert "| RCV1 | texts; the paper's own | 3 | tree | 2 | 1.33 | 24 | 24 | 24 |" in page
    assert "under licence and not at hand" not in page
    assert "| HiLAP (bow-CNN) | – | – | – | – | – | 83.3 | 60.1 | 85.0 |" in page


def test_a_shape_counts_all_ancestors_the_longest_way_down_and_the_columns_of_features(dag):
    sets = {"train": [["e"], ["a"]], "valid": [["c"]], "test": [[]]}
    parts = {
        part: Examples.of(dag, mine, features=np.zeros((len(mine), 7), dtype=np.float32)) for part, mine in sets.items()
    }
    assert run.shape_of(parts) == {
        "inputs": "7 features",
        "labels": 5,
        "structure": "DAG",
        "levels": 4,  # of e, which is also a child of a
        "labels_per_document": (5 + 1 + 2 + 0) / 4,
        "train": 2,
        "valid": 1,
        "test": 1,
    }


def test_places_in_encoder_options_become_folders():
    options = {"vectors": "data:vectors/a.txt", "cache": "cache:here", "preset": "light", "filters": 3}
    found = run.located({"system": "flat", "encoder_options": options}, Path("D"))["encoder_options"]
    assert found == {
        "vectors": str(Path("D/vectors/a.txt")),
        "cache": str(run.CACHE / "here"),
        "preset": "light",
        "filters": 3,
    }
    package = run.located({"encoder_options": {"model": "package:hilap/encoders"}}, Path("D"))
    assert (Path(package["encoder_options"]["model"]) / "tfidf.py").is_file()
    assert run.located({"preset": "paper"}, Path("D")) == {"preset": "paper"}


def test_a_package_that_is_not_there_is_named():
    with pytest.raises(
        SystemExit, match=r"the package no_such_thing is not here; install it: pip install no-such-thing"
    ):
        run.located({"encoder_options": {"model": "package:no_such_thing/model"}}, Path("D"))


# --- figures ---------------------------------------------------------------------------------------------------------

PARENTS = {"a": [], "b": [], "c": ["a"], "d": ["a"], "e": ["c"], "f": ["b"], "g": ["f"], "h": ["b"]}
TAXONOMY = Taxonomy.of(PARENTS | {f"g{i}": ["f"] for i in range(10)})  # the lowest level has enough for a group


def answers(seed: int, wrong: float) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Gold and predicted sets of sixty documents."""
    gold = (np.random.default_rng(7).random((60, len(TRAINING))) < 0.4).astype(int)
    flips = np.random.default_rng(seed).random(gold.shape) < wrong
    return sparse.csr_array(gold), sparse.csr_array(np.where(flips, 1 - gold, gold))


TRAINING = np.array([50, 40, 0, 9, 9, 3, 2, 1, *range(1, 11)])


def write_all(folder: Path, name: str, method: str, seed: int, wrong: float) -> None:
    """A result with everything that figures are made from."""
    gold, predicted = answers(seed, wrong)
    counts = run.counts_of(gold, predicted)
    counts["labels"] |= {"training": run._text(TRAINING), "level": run._text(TAXONOMY.levels)}
    scores = np.clip(predicted.toarray() * 0.5 + np.random.default_rng(seed).random(gold.shape) * 0.5, 0, 1)
    history = [{"micro_f1": 0.1 * i, "macro_f1": 0.2, "example_f1": 0.3} for i in range(3 + seed)]
    write_result(folder, name, method, seed, counts=counts, history=history, **curves.curves_of(gold, scores))


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    methods = ("hilap", "hilap-paper", "svm", "flat", "bowcnn-flat-half", "bowcnn-flat", "bowcnn-sl", "bowcnn-hilap")
    methods += ("bowcnn-paper",)
    for i, method in enumerate(methods):
        for seed in range(2):
            write_all(folder, "trove", method, seed, 0.05 + 0.03 * i)
    return folder


def test_macro_f1_by_level_and_popularity_is_that_of_the_metrics(results):
    one = next(one for one in records.read_results(results)["trove"] if one.method == "svm")
    found = figures.by_group(one)
    pairs = [answers(seed, 0.05 + 0.03 * 2) for seed in range(2)]
    levels = [by_level(*pair, TAXONOMY, over="both", training=TRAINING) for pair in pairs]
    thirds = [by_popularity(*pair, over="both", training=TRAINING) for pair in pairs]
    for how, groups in (("level", levels), ("popularity", thirds)):
        assert found[how].names == [group.name for group in groups[0]]
        assert found[how].sizes == [group.labels for group in groups[0]]
        assert found[how].scores == pytest.approx(100 * np.array([[one.macro_f1 for one in mine] for mine in groups]))


@pytest.mark.parametrize(
    ("labels", "groups"),  # how many a level has -> how many a group
    [
        ({1: 12, 2: 10}, {"L1": 12, "L2": 10}),  # nothing to put together
        ({1: 3, 2: 20}, {"L1": 3, "L2": 20}),  # a high level may be small
        ({1: 12, 2: 15, 3: 6, 4: 4}, {"L1": 12, "L2": 15, "L3+": 10}),
        ({1: 12, 2: 15, 3: 5, 4: 4}, {"L1": 12, "L2+": 24}),
        ({1: 8, 2: 20, 3: 30, 4: 40, 5: 27, 7: 1}, {"L1": 8, "L2": 20, "L3": 30, "L4": 40, "L5+": 28}),
        ({1: 2, 2: 9}, {"L1+": 11}),
        ({1: 4, 2: 5}, {"L1+": 9}),  # fewer than ten in all
        ({2: 4}, {"L2": 4}),
        ({}, {}),
    ],
)
def test_the_lowest_levels_are_one_group_until_it_has_ten_labels(labels, groups):
    level = np.repeat(np.array(list(labels), dtype=float), list(labels.values()))
    np.random.default_rng(0).shuffle(level)
    found = figures.levels_of(level)
    assert {name: len(rows) for name, rows in found.items()} == groups
    assert list(found) == list(groups)  # from the top
    assert sorted(row for rows in found.values() for row in rows) == list(range(len(level)))  # each label in one
    for name, rows in found.items():
        low = int(name[1:].rstrip("+"))
        assert all(level[rows] >= low) if name.endswith("+") else all(level[rows] == low)


def test_a_group_of_levels_has_the_mean_over_all_its_labels(tmp_path):
    right = [1] * 9 + [0] * 3
    kept = {"right": right, "placed": [1] * 12, "gold": [1] * 12, "training": [5] * 12, "level": [1] + [2] * 9 + [3, 4]}
    counts = {key: " ".join(map(str, values)) for key, values in kept.items()}
    write_result(tmp_path, "trove", "svm", 0, counts={"labels": counts})
    found = figures.by_group(records.read_results(tmp_path)["trove"][0])["level"]
    assert (found.names, found.sizes) == (["L1", "L2+"], [1, 11])
    assert found.scores == pytest.approx(np.array([[100, 100 * 8 / 11]]))


def test_popularity_of_two_labels_has_no_third_group(tmp_path):
    counts = {"right": "1 1", "placed": "1 2", "gold": "1 1", "training": "5 9", "level": "1 1"}
    write_result(tmp_path, "trove", "svm", 0, counts={"labels": counts})
    found = figures.by_group(records.read_results(tmp_path)["trove"][0])["popularity"]
    assert (found.names, found.sizes) == (["P1", "P2"], [1, 1])
    assert found.scores == pytest.approx(np.array([[200 / 3, 100]]))


def test_gains_are_differences_between_the_two_systems(results):
    runs = {one.method: one for one in records.read_results(results)["trove"]}
    found = figures.gains_of(list(runs.values()))
    assert set(found) == set(figures.GAINS)
    groups, bars = found["HiLAP over linear SVMs, tuned"]["level"]
    ours, theirs = (figures.by_group(runs[method])["level"] for method in ("hilap", "svm"))
    assert groups == ["L1\n2", "L2\n3", "L3\n12"]  # of eighteen labels, one has no training document
    assert [bar.height for bar in bars] == pytest.approx(np.mean(ours.scores, axis=0) - np.mean(theirs.scores, axis=0))


def test_the_spread_of_a_gain_is_that_of_the_difference():
    one, two, three = (
        figures.Groups(["L1"], [4], np.array(scores)) for scores in ([[50.0]], [[10.0], [16.0]], [[20.0], [28.0]])
    )
    assert figures.gain(two, three) == [plotting.Bar(-11, pytest.approx((18 + 32) ** 0.5))]
    assert figures.gain(two, one) == [plotting.Bar(-37, pytest.approx(18**0.5))]  # one seed adds nothing
    assert figures.gain(one, one) == [plotting.Bar(0, None)]


def test_a_set_whose_pairs_are_told_in_words_alone_has_no_empty_panels(tmp_path):
    for method in figures.GAINS[figures.TOLD[0]]:
        write_all(tmp_path, "trove", method, 0, 0.1)
    pages = records.read_results(tmp_path)
    assert set(figures.gains_of(pages["trove"])) == {figures.TOLD[0]}
    assert figures.gains(pages, tmp_path).startswith("nothing drawn")


@pytest.fixture
def told(monkeypatch) -> list[tuple]:
    """What figures say below: their names in order, and the note. Nothing is drawn: matplotlib need not be there."""
    found = []

    def panels(rows: int, columns: int, **size: float) -> tuple[None, np.ndarray]:
        return None, np.array([Mock() for _ in range(rows * columns)], dtype=object).reshape(rows, columns)

    monkeypatch.setattr(figures, "panels", panels)
    monkeypatch.setattr(figures, "legend_below", lambda figure, axes, order, note: found.append((order, note)))
    monkeypatch.setattr(figures, "save", lambda *_: None)
    return found


def test_a_pair_of_systems_looks_the_same_in_every_panel(tmp_path, monkeypatch, told):
    for method in ("hilap", "svm", "flat"):
        write_all(tmp_path, "trove", method, 0, 0.1)
    for method in ("hilap", "flat"):  # here the first pair is missing
        write_all(tmp_path, "medline", method, 0, 0.1)
    seen = []
    monkeypatch.setattr(figures, "bars", lambda axes, groups, series: seen.append(series))
    figures.gains(records.read_results(tmp_path), tmp_path)
    assert len(seen) == 4
    assert all(tuple(series) == figures.BARRED for series in seen)
    there = [[None not in series[pair] for pair in figures.BARRED] for series in seen]
    missing = [False] * (len(figures.BARRED) - 2)
    assert sorted(there) == [[False, True, *missing]] * 2 + [[True, True, *missing]] * 2


def test_a_base_model_has_bars_for_the_frameworks_it_was_run_with(results, tmp_path, monkeypatch, told):
    seen = []
    monkeypatch.setattr(figures, "dots", lambda axes, groups, series: seen.append((groups, series)) or 20.0)
    figures.base_models(records.read_results(results), tmp_path)
    groups, series = seen[0]
    assert groups == ["bow-CNN", "Linear\nSVMs"]
    assert list(series) == list(records.FRAMEWORKS.values())
    assert {words for words, row in series.items() if row[0]} == {
        *("flat, 0.5", "flat, tuned", "HiLAP-SL", "HiLAP", "HiLAP, the paper's policy"),
    }
    assert "1: one seed" in told[0][1]
    assert "axes begin at 0 unless the title says otherwise" in told[0][1]


def test_figure_3_says_where_its_axis_begins_and_can_be_read(results, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    seen = []
    monkeypatch.setattr(figures, "save", lambda figure, path: seen.append(figure))
    figures.base_models(records.read_results(results), tmp_path)
    panels = seen[0].axes
    for axes in panels:
        low = axes.get_ylim()[0]
        assert ("axis from" in axes.get_title()) == (low > 0)
        assert not low or f"(axis from {low:g})" in axes.get_title()
        assert not axes.patches  # a bar that does not begin at 0 would mislead
        ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()]
        assert min(tick.get_fontsize() for tick in ticks) >= 7
    assert any(axes.get_ylim()[0] > 0 for axes in panels)
    plotting.pyplot().close(seen[0])


@pytest.mark.parametrize(
    ("bars", "low"),
    [
        ([(53.0, None), (57.0, 0.5)], 52),  # a tenth of their range below, whole points
        ([(53.0, 2.0), (57.0, None)], 50),  # with their spread
        ([(31.0, None), (75.0, None)], 25),  # in fives
        ([(1.0, None), (30.0, None)], 0),
        ([], 0),
    ],
)
def test_an_axis_begins_at_a_round_number_below_all_dots(bars, low):
    assert plotting.floor_of([plotting.Bar(*bar) for bar in bars]) == low


def test_dots_stand_where_bars_would():
    one, many = plotting.Bar(40.0, None), plotting.Bar(30.0, 0.5)
    axes = Mock()
    assert plotting.dots(axes, ["x", "y"], {"a": [None, None], "b": [one, None], "c": [many, many]}) == 25
    drawn = {call.kwargs["label"]: call for call in axes.errorbar.call_args_list}
    places = {name: call.args[0] for name, call in drawn.items()}
    assert places == {"b": pytest.approx([-0.2]), "c": pytest.approx([0.2, 1.0])}
    assert drawn["c"].kwargs["yerr"] == [0.5, 0.5]
    looks = [(call.kwargs["marker"], call.kwargs["markerfacecolor"]) for call in drawn.values()]
    assert looks == list(plotting.DOTS[1:3])
    assert [call.args[0] for call in axes.annotate.call_args_list] == ["1"]


def test_a_bar_of_one_seed_has_no_spread():
    seeds = [{"test": {"micro_f1": score}} for score in (0.5, 0.6)]
    assert figures.score_bar(records.Runs("trove", "svm", tuple(seeds[:1])), "micro_f1") == plotting.Bar(50, None)
    both = figures.score_bar(records.Runs("trove", "svm", tuple(seeds)), "micro_f1")
    assert (both.height, both.spread) == pytest.approx((55, 50**0.5))
    assert figures.score_bar(records.Runs("trove", "svm", ({"test": {}},)), "micro_f1") is None
    assert figures.score_bar(None, "micro_f1") is None


def test_bars_stand_around_their_tick_whatever_is_missing():
    one, many = plotting.Bar(4.0, None), plotting.Bar(-3.0, 0.5)
    axes = Mock()
    plotting.bars(axes, ["x", "y"], {"a": [None, None], "b": [one, None], "c": [many, many], "d": [None, one]})
    drawn = {call.kwargs["label"]: call for call in axes.bar.call_args_list}
    assert list(drawn) == ["b", "c", "d"]  # no room for what is not there
    assert all(call.args[2] == pytest.approx(0.4) for call in drawn.values())
    places = {name: call.args[0] for name, call in drawn.items()}
    assert places == {name: pytest.approx(at) for name, at in {"b": [-0.2], "c": [0.2, 0.8], "d": [1.2]}.items()}
    looks = [(call.kwargs["color"], call.kwargs["hatch"]) for call in drawn.values()]
    assert looks == list(plotting.BARS[1:4])
    assert drawn["c"].kwargs["yerr"] == [0.5, 0.5]
    marks = [(call.args[0], call.args[1]) for call in axes.annotate.call_args_list]
    assert marks == [("1", pytest.approx((-0.2, 4.0))), ("1", pytest.approx((1.2, 4.0)))]


def test_a_learning_curve_is_the_mean_over_the_seeds_that_are_still_there(results):
    one = next(one for one in records.read_results(results)["trove"] if one.method == "hilap")
    found = figures.course(one)
    assert found.places.tolist() == [1, 2, 3, 4]
    assert found.whole.tolist() == [True, True, True, False]  # the second seed has one more
    assert found.values == pytest.approx([100 * (0.1 * i + 0.5) / 3 for i in range(4)])


def judged(phase: str, epoch: int, score: float) -> dict[str, object]:
    return {"phase": phase, "epoch": epoch, **dict.fromkeys(("micro_f1", "macro_f1", "example_f1"), score)}


def test_seeds_are_together_where_a_phase_starts_and_a_start_is_no_epoch():
    walks = [judged("reinforced", 0, 0.7), judged("reinforced", 1, 0.9)]
    seeds = (
        [judged("supervised", 1, 0.1), judged("supervised", 2, 0.3), *walks],
        [judged("supervised", 1, 0.2), *walks],
    )
    found = figures.course(records.Runs("trove", "hilap-paper", tuple({"history": rows} for rows in seeds)))
    assert found.places.tolist() == [1, 2, 2, 3]
    assert found.values == pytest.approx([15, 30, 70, 90])
    assert found.whole.tolist() == [True, False, True, True]
    alone = figures.course(records.Runs("trove", "hilap", ({"history": walks},)))
    assert alone.places.tolist() == [0, 1]
    assert figures.course(records.Runs("trove", "hilap", ({"history": walks}, {"history": []}))) is None


def test_a_line_is_thin_where_seeds_are_missing():
    axes, nan = Mock(), np.nan
    whole = np.array([True, True, False, True])
    plotting.line(axes, plotting.Curve(np.arange(4.0), np.arange(4.0), whole), 0, "a")
    thick, thin = axes.plot.call_args_list
    assert np.array_equal(thick.args[1], [0, 1, nan, 3], equal_nan=True)
    assert np.array_equal(thin.args[1], [nan, 1, 2, 3], equal_nan=True)
    assert (thick.kwargs["label"], "label" in thin.kwargs) == ("a", False)
    plotting.line(axes, plotting.Curve(np.arange(4.0), np.arange(4.0), np.full(4, True)), 0, "b")
    assert axes.plot.call_count == 3


def test_the_learning_figure_says_what_it_counts(results, tmp_path, told):
    figures.learning(records.read_results(results), tmp_path)
    ((names, note),) = told
    assert names == ["HiLAP, settings for the set", "HiLAP, as in the paper", "bow-CNN, HiLAP", "Flat network, tuned"]
    assert "x counts epochs" in note
    assert "not kept" not in note


@pytest.mark.parametrize("name", ["reliability", "precision_recall"])
def test_a_figure_says_which_older_results_it_leaves_out(name, tmp_path, told):
    for folder in ("trove", "medline"):
        write_all(tmp_path, folder, "flat", 0, 0.1)
        for seed in range(2):
            write_result(tmp_path, folder, "hilap-paper", seed)
    write_all(tmp_path, "trove", "svm", 0, 0.1)
    write_result(tmp_path, "trove", "svm", 1)  # one seed has nothing
    figures.DRAWN[name](records.read_results(tmp_path), tmp_path)
    ((names, note),) = told
    assert names == ["Flat network, tuned"]
    assert note == (
        "not kept for every seed, so not shown: HiLAP, as in the paper, on PyPI descriptions (trove) and MEDLINE "
        "abstracts; SVM, tuned, on PyPI descriptions (trove)"
    )


@pytest.mark.parametrize("name", ["reliability", "precision_recall"])
def test_probabilities_of_flat_models_are_called_so(name, tmp_path, told):
    reliability = {"pairs": "4 2", "probability": "0.1 0.9", "right": "0.5 1"}
    kept = {"reliability": reliability, "precision_recall": {"recall": "0.5 1", "precision": "1 0.5"}}
    for method, how in (("hilap", "flat"), ("hilap-paper", "beam")):
        write_result(tmp_path, "trove", method, 0, decoding={"probabilities": how}, **kept)
    figures.DRAWN[name](records.read_results(tmp_path), tmp_path)
    assert told[0][0] == ["HiLAP, settings for the set (probabilities of its flat models)", "HiLAP, as in the paper"]


def test_reliability_of_several_seeds_pools_their_pairs(tmp_path):
    tables = [
        {"pairs": "4 0 2", "probability": "0.1 nan 0.9", "right": "0.5 nan 1"},
        {"pairs": "12 0 2", "probability": "0.3 nan 0.7", "right": "0.0 nan 0"},
    ]
    for seed, kept in enumerate(tables):
        write_result(tmp_path, "trove", "hilap", seed, reliability=kept)
    found = figures.bins_of(records.read_results(tmp_path)["trove"][0])
    assert found.places == pytest.approx([0.25, 0.8])
    assert found.values == pytest.approx([0.125, 0.5])


@pytest.mark.parametrize("name", ["base_models", "gains", "learning", "reliability", "precision_recall"])
def test_a_figure_is_drawn_twice_alike_in_greys_alone(name, results, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    for folder in ("one", "two"):
        assert figures.main([name, "--results", str(results), "--out", str(tmp_path / folder)]) == 0
    assert capsys.readouterr().out == f"{name}: 1 sets\n" * 2
    drawn = (tmp_path / "one" / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == (tmp_path / "two" / f"{name}.svg").read_text(encoding="utf-8")
    assert (tmp_path / "one" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    colours = re.findall(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})\b", drawn)
    assert colours
    assert all(red == green == blue for red, green, blue in colours)


@pytest.mark.parametrize("name", ["base_models", "gains", "learning", "precision_recall", "cost"])
def test_a_legend_is_inside_the_figure_and_over_no_panel(name, results, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    seen = []
    for module in (figures, cost):
        monkeypatch.setattr(module, "save", lambda figure, path: seen.append(figure))
    figures.DRAWN[name](records.read_results(results), tmp_path)
    (figure,) = seen
    figure.canvas.draw()
    panels = [axes.get_window_extent() for axes in figure.axes]
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    assert len(legends) == (2 if name == "cost" else 1)
    for box in (legend.get_window_extent() for legend in legends):
        assert not any(box.overlaps(panel) for panel in panels)
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
    plotting.pyplot().close(figure)


def test_epochs_have_whole_numbers(results, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    seen = []
    monkeypatch.setattr(figures, "save", lambda figure, path: seen.append(figure))
    figures.learning(records.read_results(results), tmp_path)
    assert all(tick == round(tick) for tick in seen[0].axes[0].get_xticks())
    plotting.pyplot().close(seen[0])


def test_bars_do_not_differ_by_the_slant_of_their_strokes_alone():
    assert not {"/", "\\"} <= {hatch[:1] for _, hatch in plotting.BARS}


def committed_figures() -> dict[str, str]:
    """Name -> what is in docs/figures."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(plotting.FIGURES.glob("*.svg"))}


def test_the_committed_figures_are_what_the_committed_results_give(tmp_path, capsys):
    version = pytest.importorskip("matplotlib").__version__
    committed = committed_figures()
    assert set(committed) == set(figures.DRAWN)
    drawn_by = {re.search(r"Matplotlib v([\d.]+)", text)[1] for text in committed.values()}
    if drawn_by != {version}:
        pytest.skip(f"drawn by matplotlib {', '.join(sorted(drawn_by))}, here is {version}: lines may differ")
    assert figures.main(["--out", str(tmp_path)]) == 0
    old = [name for name, text in committed.items() if (tmp_path / f"{name}.svg").read_text(encoding="utf-8") != text]
    assert not old, f"docs/figures: {', '.join(old)} out of date: run python benchmarks/figures.py"


def test_bars_and_lines_differ_in_more_than_their_grey():
    assert len({hatch for _, hatch in plotting.BARS}) == len(plotting.BARS) >= len(records.FRAMEWORKS)
    assert len({mark for _, _, mark in plotting.LINES}) == len(plotting.LINES) >= len(figures.SCORED)
    assert len(plotting.BARS) >= len(figures.BARRED)
    assert 0 < len(figures.BARRED) == len(figures.GAINS) - len(figures.TOLD) <= 6
    assert len(set(plotting.DOTS)) == len(plotting.DOTS) >= len(records.FRAMEWORKS)


plain = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from(["1 2", "nan 1"])
)
names = st.sampled_from(["right", "gold", "recall", "pairs", "micro_f1", "documents"])
anything = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)


@settings(max_examples=40)
@given(key=st.sampled_from(["counts", "history", "reliability", "precision_recall"]), value=anything)
def test_whatever_a_result_keeps_only_our_own_errors_come_out(key, value):
    scores = dict.fromkeys(("micro_f1", "macro_f1", "example_f1"), 0.3)
    runs = [records.Runs("trove", method, ({"test": scores, key: value},) * 2) for method in ("hilap", "svm")]
    for read in (certainty.comparisons, figures.gains_of):
        with suppress(HilapError):
            read(runs)
    for read in (figures.course, figures.bins_of, figures.pooled_curve):
        with suppress(HilapError):
            read(runs[0])


def test_page_and_figures_can_be_made_with_methods_and_sets_that_nobody_has_listed(tmp_path, told, monkeypatch, capsys):
    monkeypatch.setattr(findings, "LEAST_PAIRS", 1)  # sixty documents have few
    for name in ("trove", "recipes"):
        for method in ("hilap", "svm", "mine", "hilap-mine", "mine-sl"):
            write_all(tmp_path, name, method, 0, 0.1)
    write_all(tmp_path, "letters", "mine", 0, 0.1)  # alone on its set
    names = [name for name in figures.DRAWN if name not in ("cost", "base_models")]  # of those these are none
    assert figures.main([*names, "--results", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{name}: 2 sets" for name in names]
    page = table.page(tmp_path)
    assert {"## recipes", "## letters"} <= set(page.splitlines())
    assert page.partition("## letters\n")[2].partition("\n## ")[0].count("| `mine` |") == 1
    row = next(line for line in page.partition(findings.RELIABILITY)[2].splitlines() if line.startswith("| System"))
    assert row == "| System | PyPI descriptions (trove) | recipes |"


def test_a_figure_names_a_method_that_nobody_has_listed_by_its_word(tmp_path, monkeypatch, told):
    for at in ("LEARNING", "SCORED"):
        monkeypatch.setattr(figures, at, ("mine", "theirs"))
    write_all(tmp_path, "trove", "mine", 0, 0.1)
    write_result(tmp_path, "trove", "theirs", 0)
    for name in ("learning", "reliability", "precision_recall"):
        figures.DRAWN[name](records.read_results(tmp_path), tmp_path)
    assert [names for names, _ in told] == [["mine"]] * 3
    assert all("not shown: theirs, on PyPI descriptions (trove)" in note for _, note in told)


def test_figures_without_results_are_left_out_with_a_line(tmp_path, capsys):
    names = [name for name in figures.DRAWN if name != "cost"]
    assert figures.main([*names, "--results", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == names
    assert all("nothing drawn: no " in line for line in lines)
    assert not (tmp_path / "out").exists()


def test_the_page_shows_the_figures_that_are_drawn_and_no_other(tmp_path):
    assert table.figures_section(tmp_path) == []
    (tmp_path / "gains.svg").write_text("<svg/>")
    assert re.findall(r"\(figures/(\w+)\.svg\)", "".join(table.figures_section(tmp_path))) == ["gains"]
    assert set(table.FIGURES) == set(figures.DRAWN)
    assert "cross-fitted on the validation documents too" in table.FIGURES["learning"][1]
    assert "the best of several runs" in table.FIGURES["cost"][1]


def test_every_figure_is_linked_from_the_section_it_belongs_to():
    text = table.PAGE.read_text(encoding="utf-8")
    assert set(table.BELONGS) == set(table.FIGURES)
    for name, heading in table.BELONGS.items():
        title = f"Figure: {table.FIGURES[name][0]}"
        section = text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
        assert f"Drawn: [{title}](#{table.anchor(title)})." in section
        assert f"### {title}\n" in text


def test_an_older_result_without_counts_is_no_figure_4(tmp_path):
    for method in ("hilap", "svm"):
        write_result(tmp_path, "trove", method, 0)
    assert figures.gains(records.read_results(tmp_path), tmp_path / "out").startswith("nothing drawn")


def test_the_cost_is_drawn_from_what_was_measured(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert figures.main(["cost", "--results", str(tmp_path), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "cost: as measured before\n"
    assert (tmp_path / "cost.svg").is_file()


def test_an_unknown_figure_gets_a_sentence(tmp_path, capsys):
    assert figures.main(["figure3"]) == 2
    assert "there is no figure 'figure3'; there are: base_models, gains" in capsys.readouterr().err


def test_without_matplotlib_the_extra_is_named(results, tmp_path, monkeypatch, capsys):
    def gone(module, extra):
        raise MissingExtraError(f"matplotlib is needed here; install it with: pip install 'hilap[{extra}]'")

    monkeypatch.setattr(plotting, "need", gone)
    assert figures.main(["learning", "--results", str(results), "--out", str(tmp_path)]) == 2
    assert "pip install 'hilap[bench]'" in capsys.readouterr().err


# --- the quick bench -------------------------------------------------------------------------------------------------


def test_the_quick_bench_says_where_it_looks_for_data(tmp_path, capsys):
    assert quick.main(["--data", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path / 'funcat'}: the data set funcat is not there" in told
    assert "make bench-quick HILAP_DATA=FOLDER" in told


def test_the_quick_bench_runs_its_queue_and_prints_a_row_a_system(tmp_path, capsys, monkeypatch):
    whole = RUNNER.replace('"options": sys.argv', '**json.loads(pathlib.Path("@").read_text()), "method": given.method')
    template = write_result(tmp_path, "funcat", "any", 0)
    (tmp_path / "runner.py").write_text(whole.replace("@", str(template)))
    monkeypatch.setattr(suite, "RUNNER", tmp_path / "runner.py")
    assert quick.main(["--data", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    for method in ("hilap-quick", "flat", "svm", "clus-hmc"):
        assert method in told
    assert "30.00" in told


def test_the_quick_bench_tells_a_failure_by_its_exit_code(tmp_path, capsys, monkeypatch):
    (tmp_path / "funcat").mkdir()
    (tmp_path / "runner.py").write_text("raise SystemExit('the disk is on fire')")
    monkeypatch.setattr(suite, "RUNNER", tmp_path / "runner.py")
    assert quick.main(["--data", str(tmp_path)]) == 1
    assert "the disk is on fire" in capsys.readouterr().err
