"""The bench draws: what a result keeps for figures, the figures themselves, and the quick bench."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from hilap.errors import HilapError, MissingExtraError
from hilap.metrics.groups import by_level, by_popularity
from hilap.taxonomy import Taxonomy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import certainty
import curves
import figures
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
    assert numbers(found["precision_recall"]["recall"])[-1] == 1
    path = tmp_path / "results" / "rcv1" / "svm-zero" / "0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(found))
    page = table.page(tmp_path / "results")
    assert "## RCV1" in page
    assert "*paper: HiLAP (bow-CNN)*" in page


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

TAXONOMY = Taxonomy.of({"a": [], "b": [], "c": ["a"], "d": ["a"], "e": ["c"], "f": ["b"], "g": ["f"], "h": ["b"]})


def answers(seed: int, wrong: float) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Gold and predicted sets of sixty documents."""
    gold = (np.random.default_rng(7).random((60, 8)) < 0.4).astype(int)
    flips = np.random.default_rng(seed).random(gold.shape) < wrong
    return sparse.csr_array(gold), sparse.csr_array(np.where(flips, 1 - gold, gold))


TRAINING = np.array([50, 40, 0, 9, 9, 3, 2, 1])


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
        names, scores = found[how]
        assert names == [group.name for group in groups[0]]
        expected = 100 * np.mean([[group.macro_f1 for group in mine] for mine in groups], axis=0)
        assert scores == pytest.approx(expected)


def test_gains_are_differences_between_the_two_systems(results):
    runs = {one.method: one for one in records.read_results(results)["trove"]}
    found = figures.gains_of(list(runs.values()))
    assert set(found) == {
        "hilap over svm",
        "hilap over flat",
        "bowcnn-hilap over bowcnn-flat-half",
        "bowcnn-hilap over bowcnn-flat",
        "bowcnn-sl over bowcnn-flat-half",
    }
    ours, theirs = (figures.by_group(runs[method])["level"][1] for method in ("hilap", "svm"))
    assert found["hilap over svm"]["level"][1] == pytest.approx(ours - theirs)


def test_a_pair_of_systems_looks_the_same_in_every_panel(tmp_path, monkeypatch):
    for method in ("hilap", "svm", "flat"):
        write_all(tmp_path, "trove", method, 0, 0.1)
    for method in ("hilap", "flat"):  # here the first pair is missing
        write_all(tmp_path, "medline", method, 0, 0.1)
    seen = []
    monkeypatch.setattr(figures, "bars", lambda axes, groups, series: seen.append({k: v[0] for k, v in series.items()}))
    panel = SimpleNamespace(set=lambda **_: None)  # what is drawn, not how: matplotlib need not be there
    monkeypatch.setattr(figures, "panels", lambda rows, columns, width: (None, [[panel] * columns] * rows))
    for name in ("legend_below", "save"):
        monkeypatch.setattr(figures, name, lambda *_: None)
    figures.gains(records.read_results(tmp_path), tmp_path)
    assert len(seen) == 4
    assert all(list(series) == ["hilap over svm", "hilap over flat"] for series in seen)
    missing = [np.isnan(series["hilap over svm"]).all() for series in seen]
    assert sorted(missing) == [False, False, True, True]


def test_a_learning_curve_is_the_mean_over_seeds_as_far_as_all_go(results):
    one = next(one for one in records.read_results(results)["trove"] if one.method == "hilap")
    epochs, values = figures.course(one)
    assert epochs.tolist() == [1, 2, 3]  # the second seed has one more
    assert values == pytest.approx([100 * (0.1 * i + 0.5) / 3 for i in range(3)])


def test_reliability_of_several_seeds_pools_their_pairs(tmp_path):
    tables = [
        {"pairs": "4 0 2", "probability": "0.1 nan 0.9", "right": "0.5 nan 1"},
        {"pairs": "12 0 2", "probability": "0.3 nan 0.7", "right": "0.0 nan 0"},
    ]
    for seed, kept in enumerate(tables):
        write_result(tmp_path, "trove", "hilap", seed, reliability=kept)
    probability, right = figures.bins_of(records.read_results(tmp_path)["trove"][0])
    assert probability == pytest.approx([0.25, 0.8])
    assert right == pytest.approx([0.125, 0.5])


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


def test_bars_and_lines_differ_in_more_than_their_grey():
    assert len({hatch for _, hatch in plotting.BARS}) == len(plotting.BARS) >= len(records.FRAMEWORKS)
    assert len({mark for _, _, mark in plotting.LINES}) == len(plotting.LINES) >= len(figures.SCORED)
    assert len(plotting.BARS) >= len(figures.GAINS)


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
    assert set(table.FIGURES) == set(figures.DRAWN) - {"cost"}  # cost has a page of its own


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
