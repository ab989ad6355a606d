"""The bench compares systems: how sure a difference is, base models, HMCN's orders, and what is said in words."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from hilap.errors import HilapError
from hilap.metrics import example, macro, micro

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import certainty
import findings
import orientation
import parts
import plotting
import reading
import records
import roles
import run
import sections
import table

from tests.unit.test_benchmarks import PAPER, cells_of, write_result


def judged(folder, name, method, predicted, gold, *, training=None, **changes):
    """Result files with the counts and scores of these predictions, one matrix a seed."""
    training = np.ones(gold.shape[1], dtype=int) if training is None else training
    for seed, matrix in enumerate(predicted):
        right, found = sparse.csr_array(gold), sparse.csr_array(matrix)
        counts = run.counts_of(right, found)
        counts["labels"] |= {"training": run._text(training), "level": run._text(np.ones(gold.shape[1]))}
        scores = {
            "micro_f1": micro(right, found).f1,
            "macro_f1": macro(right, found, over="both", training=training).f1,
            "example_f1": example(right, found).f1,
        }
        write_result(folder, name, method, seed, test=scores, counts=counts, **changes)


def runs_of(folder, name="funcat"):
    return {one.method: one for one in records.read_results(folder)[name]}


def noisy(gold, wrong, seed):
    """Predictions with so large a share of wrong entries."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(gold.shape) < wrong, 1 - gold, gold)


@pytest.fixture
def gold():
    return (np.random.default_rng(5).random((80, 12)) < 0.3).astype(int)


# --- how sure a difference is ----------------------------------------------------------------------------------------


def f1_of(right, placed, gold):
    return 2 * right / (placed + gold) if placed + gold else 1.0


def oracle_p(gold, first, second, metric, training, samples=400):
    """The same bootstrap, one drawn document or label after the other."""
    rng = np.random.default_rng(99)
    covered = np.flatnonzero((gold.sum(0) > 0) & (training > 0))

    def score(predicted, drawn):
        hits = gold * predicted
        if metric == "macro_f1":
            return np.mean([f1_of(hits[:, j].sum(), predicted[:, j].sum(), gold[:, j].sum()) for j in drawn])
        if metric == "example_f1":
            return np.mean([f1_of(hits[i].sum(), predicted[i].sum(), gold[i].sum()) for i in drawn])
        return f1_of(hits[drawn].sum(), predicted[drawn].sum(), gold[drawn].sum())

    places = covered if metric == "macro_f1" else np.arange(len(gold))
    gaps = []
    for _ in range(samples):
        drawn = rng.choice(places, len(places))
        means = [
            np.mean([score(system[k], drawn) for k in rng.integers(0, len(system), len(system))])
            for system in (first, second)
        ]
        gaps.append(means[0] - means[1])
    gaps = np.array(gaps)
    return min(1.0, 2 * (1 + min((gaps <= 0).sum(), (gaps >= 0).sum())) / (1 + samples))


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1", "example_f1"])
def test_p_agrees_with_drawing_documents_labels_and_seeds_one_by_one(metric, gold, tmp_path):
    training = np.arange(12) % 5  # some labels have no training document and are not covered
    first, second = ([noisy(gold, share, seed + start) for seed in range(2)] for share, start in ((0.10, 0), (0.12, 9)))
    for method, predicted in (("hilap", first), ("svm", second)):
        judged(tmp_path, "funcat", method, predicted, gold, training=training)
    found = runs_of(tmp_path)
    ours = certainty.p_value(found["hilap"], found["svm"], metric)
    assert ours == pytest.approx(oracle_p(gold, first, second, metric, training), abs=0.08)
    assert 0.02 < ours < 1  # a case in which something could differ


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1", "example_f1"])
def test_p_is_the_same_whichever_system_is_named_first(metric, gold, tmp_path):
    for method, start in (("hilap", 0), ("svm", 9)):  # seeds differ, so that drawing them in another order shows
        judged(tmp_path, "funcat", method, [noisy(gold, 0.05 + 0.1 * seed, start + seed) for seed in range(3)], gold)
    there, back = runs_of(tmp_path), runs_of(tmp_path)  # read twice: nothing is kept from one to the other
    p = certainty.p_value(there["hilap"], there["svm"], metric)
    assert 0.02 < p < 1
    assert certainty.p_value(back["svm"], back["hilap"], metric) == p


def test_a_pair_is_drawn_once_and_anew_when_its_results_are_read_anew(gold, tmp_path, monkeypatch):
    for method, wrong in (("hilap", 0.1), ("svm", 0.3)):
        judged(tmp_path, "funcat", method, [noisy(gold, wrong, 0)], gold)
    drawn, draws = [], certainty.draws
    monkeypatch.setattr(certainty, "draws", lambda *given: drawn.append(given) or draws(*given))
    one = runs_of(tmp_path)
    before = [certainty.p_value(one[a], one[b], "micro_f1") for a, b in (("hilap", "svm"), ("svm", "hilap"))]
    assert len(drawn) == 1
    judged(tmp_path, "funcat", "svm", [noisy(gold, 0.1, 0)], gold)
    two = runs_of(tmp_path)
    assert certainty.p_value(two["hilap"], two["svm"], "micro_f1") == 1.0 != before[0] == before[1]


def test_counts_give_the_scores_that_stand_in_the_table(gold, tmp_path):
    training = np.arange(12) % 3
    judged(tmp_path, "funcat", "hilap", [noisy(gold, 0.1, 0), noisy(gold, 0.3, 1)], gold, training=training)
    one = runs_of(tmp_path)["hilap"]
    documents, labels = certainty.of_seeds(one, "documents"), certainty.of_seeds(one, "labels")
    assert documents["f1"].mean(axis=1) == pytest.approx(one.values("test", "example_f1"))
    assert labels["f1"].mean(axis=1) == pytest.approx(one.values("test", "macro_f1"))
    whole = certainty.drawn_means(documents, np.ones((80, 1)), "micro_f1", np.random.default_rng(0))
    assert min(one.values("test", "micro_f1")) - 1e-9 <= whole[0] <= max(one.values("test", "micro_f1")) + 1e-9


def test_the_same_answers_are_no_difference(gold, tmp_path):
    for method in ("hilap", "svm"):
        judged(tmp_path, "funcat", method, [noisy(gold, 0.2, 0)], gold)
    found = certainty.comparisons(list(runs_of(tmp_path).values()))
    assert [one.p for one in found.values()] == [1.0, 1.0, 1.0]
    assert certainty.marks_of(found) == {}


def test_a_large_difference_is_marked_behind_the_best_figure(gold, tmp_path):
    judged(tmp_path, "funcat", "hilap", [noisy(gold, 0.01, 0)], gold)
    judged(tmp_path, "funcat", "svm", [noisy(gold, 0.4, 1)], gold)
    page = table.page(tmp_path)
    ours = cells_of(page, "FunCat (cellcycle)", "HiLAP, settings for the set (`hilap`)")
    svm = cells_of(page, "FunCat (cellcycle)", "SVM, tuned (`svm`)")
    assert all(ours[heading].endswith("** ‡") for heading in ("Micro-F1", "Macro-F1", "EBF"))
    assert not any("‡" in cell or "†" in cell for cell in svm.values())
    assert re.search(r"Micro-F1 `hilap` over `svm` by \d+\.\d\d, p < 0\.001", page)


def test_a_lead_that_one_of_two_seeds_makes_is_not_certain(gold, tmp_path):
    judged(tmp_path, "funcat", "hilap", [noisy(gold, 0.0, 0), noisy(gold, 0.35, 1)], gold)
    judged(tmp_path, "funcat", "svm", [noisy(gold, 0.22, 2)], gold)
    found = certainty.comparisons(list(runs_of(tmp_path).values()))
    assert found["micro_f1"].best.method == "hilap"
    assert found["micro_f1"].p > 0.1


def test_the_runner_up_is_the_second_best_and_not_the_next_row(gold, tmp_path):
    for method, wrong in (("hilap", 0.05), ("flat", 0.4), ("svm", 0.1)):
        judged(tmp_path, "funcat", method, [noisy(gold, wrong, 0)], gold)
    found = certainty.comparisons(list(runs_of(tmp_path).values()))
    assert {(one.best.method, one.second.method) for one in found.values()} == {("hilap", "svm")}


def test_a_result_without_counts_is_not_tested(gold, tmp_path):
    judged(tmp_path, "funcat", "hilap", [noisy(gold, 0.01, 0)], gold)
    write_result(tmp_path, "funcat", "svm", 0)
    page = table.page(tmp_path)
    assert "`hilap` over `svm` by" in page
    page = page.partition("## The paper's systems")[0]  # Table 5 tells of its own best
    assert page.count("not tested") == 9  # three scores: in the first table, in the reading and of best and runner-up
    assert "**" in cells_of(page, "FunCat (cellcycle)", "HiLAP, settings for the set (`hilap`)")["Micro-F1"]
    assert "‡" not in page.partition("## FunCat")[2]


def test_many_documents_are_drawn_less_often_but_often_enough_for_one_in_a_hundred():
    assert 2 * 1 / (1 + certainty.LEAST_SAMPLES) < 0.01
    assert certainty.MOST_DRAWS // 781_265 >= certainty.LEAST_SAMPLES


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"right": "1 two"}, "funcat/hilap: counts.documents.right must be a text of numbers"),
        ({"right": 7}, "funcat/hilap: counts.documents.right must be a text of numbers"),
        ({"right": "1 2"}, "funcat/hilap: counts.documents: right, placed, gold differ in length"),
        ({"right": " ".join(["nan"] * 80)}, "funcat/hilap: counts of documents must be numbers"),
        ({"right": " ".join(["1e999"] * 80)}, "funcat/hilap: counts.documents must be numbers of at least 0"),
        ({"placed": " ".join(["-1"] * 80)}, "funcat/hilap: counts.documents must be numbers of at least 0"),
        ({"gold": " ".join(["9"] * 80)}, "hilap and svm were judged on other documents or labels"),
    ],
)
def test_damaged_counts_are_named(change, message, gold, tmp_path):
    for method in ("hilap", "svm"):
        judged(tmp_path, "funcat", method, [noisy(gold, 0.1, 0)], gold)
    path = tmp_path / "funcat" / "hilap" / "0.json"
    record = json.loads(path.read_text())
    record["counts"]["documents"] |= change
    path.write_text(json.dumps(record))
    with pytest.raises(HilapError, match=message):
        table.page(tmp_path)


def test_seeds_with_counts_of_different_lengths_are_refused(gold, tmp_path):
    judged(tmp_path, "funcat", "svm", [noisy(gold, 0.1, 0)] * 2, gold)
    judged(tmp_path, "funcat", "hilap", [noisy(gold, 0.1, 0)] * 2, gold)
    path = tmp_path / "funcat" / "hilap" / "1.json"
    record = json.loads(path.read_text())
    record["counts"]["documents"]["right"] = "1 2 3"
    path.write_text(json.dumps(record))
    with pytest.raises(HilapError, match=r"counts\.documents\.right has different lengths for different seeds"):
        table.page(tmp_path)


MARKED = [  # heading of a table, a set, then its best, its runner-up and a better one that is not compared with them
    ("Table 2: RCV1, played by arXiv abstracts", "arxiv", ("bowcnn-hilap", "svm", "minilm-flat")),
    ("Table 5: Gene Ontology (cellcycle)", "go", ("cssa", "svm", "c-hmcnn")),
    ("FunCat (cellcycle): ablation", "funcat", ("hilap-sl", "flat-only", "flat")),
    ("PyPI descriptions (trove): base models", "trove", ("han-sl", "han-flat", "bowcnn-sl")),
    ("HMCN's orders (the paper's Table 8)", "funcat", ("hmcn", "hmcn-original", "svm")),
]


@pytest.mark.parametrize(("heading", "name", "methods"), MARKED)
def test_every_table_marks_its_best_against_its_own_runner_up(heading, name, methods, gold, tmp_path):
    best, second, outside = methods
    for method, wrong in ((best, 0.05), (second, 0.4), (outside, 0.0)):
        judged(tmp_path, name, method, [noisy(gold, wrong, 0)], gold)

    def cells():
        rows = table.page(tmp_path).partition(f"# {heading}\n")[2].partition("\n#")[0].splitlines()
        return {method: next(line for line in rows if f"(`{method}`)" in line) for method in (best, second)}

    assert cells()[best].count("** ‡ |") == 3
    assert "‡" not in cells()[second]
    judged(tmp_path, name, second, [noisy(gold, 0.05, 0)], gold)  # the same answers
    assert "‡" not in "".join(cells().values())
    judged(tmp_path, name, second, [noisy(gold, 0.4, 0)], gold)
    path = tmp_path / name / second / "0.json"
    record = json.loads(path.read_text())
    del record["counts"]
    path.write_text(json.dumps(record))
    assert cells()[best].count("**") == 6  # bold without a mark: it cannot be tested
    assert "‡" not in cells()[best]


# --- base models -----------------------------------------------------------------------------------------------------


NETS = ("textcnn", "han", "bowcnn")  # the paper's own base models


def of_nets(framework, value):
    """The same Macro-F1 of each of them under a framework, for `base_results`."""
    return {f"{base}-{framework}": value for base in NETS}


def base_results(folder, values, name="trove"):
    """Results of base models: method -> Macro-F1, the other scores alike."""
    for method, value in values.items():
        scores = dict.fromkeys(("micro_f1", "macro_f1", "example_f1"), value)
        write_result(folder, name, method, 0, test=scores)


def test_gains_on_base_models_are_relative_and_averaged(tmp_path):
    base_results(tmp_path, {"textcnn-flat-half": 0.20, "textcnn-flat": 0.25, "textcnn-sl": 0.26, "textcnn-hilap": 0.30})
    base_results(tmp_path, {"bowcnn-flat-half": 0.40, "bowcnn-flat": 0.50, "bowcnn-sl": 0.45, "bowcnn-hilap": 0.44})
    base_results(tmp_path, {"han-flat-half": 0.40, "han-flat": 0.50, "han-sl": 0.45, "han-hilap": 0.40})
    base_results(tmp_path, of_nets("hmcn", 0.1))
    row = cells_of(table.page(tmp_path), "What HiLAP gains on the same base model", "TextCNN, HAN, bow-CNN")
    assert row["Macro-F1 over flat at 0.5"] == "+20.0% (3 pairs)"  # +50%, +10% and nothing
    assert row["over flat, tuned"] == "-4.0% (3 pairs)"  # +20%, -12% and -20%
    assert row["over HiLAP's nets, tuned"] == "–"
    assert row["best of flat at 0.5, HMCN, SL, HiLAP"] == "3 of 9"
    assert row["best, all tuned flat ones too"] == "–"  # HiLAP's nets are not there
    base_results(tmp_path, {"textcnn-flat-members": 0.31})
    row = cells_of(table.page(tmp_path), "What HiLAP gains on the same base model", "TextCNN, HAN, bow-CNN")
    assert row["over HiLAP's nets, tuned"] == "–"  # one pair is no mean
    assert (row["best of flat at 0.5, HMCN, SL, HiLAP"], row["best, all tuned flat ones too"]) == ("3 of 9", "0 of 3")
    for textcnn, nets, best in ((0.31, "-1.1%", "0 of 9"), (0.24, "+8.3%", "3 of 9")):  # -3% or +25%, and 0 twice
        base_results(tmp_path, {"textcnn-flat-members": textcnn, "bowcnn-flat-members": 0.44, "han-flat-members": 0.4})
        row = cells_of(table.page(tmp_path), "What HiLAP gains on the same base model", "TextCNN, HAN, bow-CNN")
        assert row["over HiLAP's nets, tuned"] == f"{nets} (3 pairs)"
        assert row["best of flat at 0.5, HMCN, SL, HiLAP"] == "3 of 9"
        assert row["best, all tuned flat ones too"] == best


def test_a_gain_of_fewer_than_three_pairs_is_not_shown(tmp_path):
    heading = "### What HiLAP gains on the same base model"
    base_results(tmp_path, {"han-flat-half": 0.1, "han-hilap": 0.2, "bowcnn-flat-half": 0.1, "bowcnn-hilap": 0.2})
    assert heading not in table.page(tmp_path)
    base_results(tmp_path, {"svm-zero": 0.1, "hilap": 0.3, "bowcnn-paper": 0.1})
    part = table.page(tmp_path).partition(heading)[2].partition("\n## ")[0]
    rows = [line.split(" | ")[:2] for line in part.splitlines() if line.startswith("| ")][2:]
    assert rows == [["| all base models above", "+133.3% (3 pairs)"], ["| *paper: RCV1, NYT, Yelp*", "+33.4%"]]


THREE = of_nets("flat-half", 0.2) | of_nets("hmcn", 0.1) | of_nets("sl", 0.1) | of_nets("hilap", 0.3)


def test_the_papers_claim_stands_below_ours(tmp_path):
    base_results(tmp_path, THREE)
    row = cells_of(table.page(tmp_path), "What HiLAP gains on the same base model", "*paper: RCV1, NYT, Yelp*")
    assert (row["Macro-F1 over flat at 0.5"], row["best of flat at 0.5, HMCN, SL, HiLAP"]) == ("+33.4%", "24 of 27")


def test_a_base_model_without_hilap_gains_nothing_and_loses_nothing(tmp_path):
    base_results(tmp_path, THREE | {"minilm-flat-half": 0.20, "minilm-flat": 0.0})
    row = cells_of(table.page(tmp_path), "What HiLAP gains on the same base model", "all base models above")
    assert row["Macro-F1 over flat at 0.5"] == "+50.0% (3 pairs)"
    assert row["best of flat at 0.5, HMCN, SL, HiLAP"] == "9 of 9"


def test_a_flat_model_that_finds_nothing_is_left_out_of_the_mean(tmp_path):
    base_results(tmp_path, THREE | {"minilm-flat-half": 0.0, "minilm-hilap": 0.2})
    row = cells_of(table.page(tmp_path), "What HiLAP gains on the same base model", "all base models above")
    assert row["Macro-F1 over flat at 0.5"] == "+50.0% (3 pairs)"


def test_base_models_have_a_section_and_are_not_in_the_table_of_the_set(tmp_path):
    base_results(tmp_path, {"textcnn-flat": 0.25, "textcnn-hilap": 0.30, "svm": 0.28, "hilap": 0.31})
    page = table.page(tmp_path)
    first, _, rest = page.partition("## The paper's systems on texts")
    assert "| TextCNN" not in first
    rest = rest.partition("## Base models (the paper's Figure 3)")[2]
    row = cells_of(rest, "PyPI descriptions (trove): base models", "TextCNN: HiLAP (`textcnn-hilap`)")
    assert row["Macro-F1"] == "**30.00**"
    wide = "Linear SVMs, the recommended preset's wide part: HiLAP (`hilap`)"
    assert cells_of(rest, "PyPI descriptions (trove): base models", wide)["EBF"] == "**31.00**"


def test_without_base_models_there_is_no_section_of_them(tmp_path):
    base_results(tmp_path, {"svm": 0.28, "hilap": 0.31})
    assert "Base models" not in table.page(tmp_path)


def test_as_good_as_another_framework_is_not_best(tmp_path):
    base_results(tmp_path, THREE | of_nets("hmcn", 0.3))
    row = cells_of(table.page(tmp_path), "What HiLAP gains on the same base model", "TextCNN, HAN, bow-CNN")
    assert row["best of flat at 0.5, HMCN, SL, HiLAP"] == "0 of 9"


def best_of_four(folder, row="all base models above"):
    cells = cells_of(table.page(folder), "What HiLAP gains on the same base model", row)
    return cells["best of flat at 0.5, HMCN, SL, HiLAP"]


@pytest.mark.parametrize("rival", ["flat-half", "hmcn", "sl"])
def test_a_cell_that_lacks_a_rival_does_not_count(rival, tmp_path):
    base_results(tmp_path, THREE)
    base_results(tmp_path, THREE, name="arxiv")
    assert best_of_four(tmp_path) == "18 of 18"
    (tmp_path / "arxiv" / f"han-{rival}" / "0.json").unlink()
    assert best_of_four(tmp_path) == "15 of 15"


def test_a_score_that_a_rival_lacks_is_a_cell_less(tmp_path):
    base_results(tmp_path, THREE)
    write_result(tmp_path, "trove", "han-sl", 0, test=three(0.1, None, 0.4))
    assert best_of_four(tmp_path) == "7 of 8"


def test_a_base_model_counts_without_the_frameworks_that_it_is_never_combined_with(tmp_path):
    base_results(tmp_path, THREE | {"minilm-flat-half": 0.2, "minilm-hilap": 0.3})
    assert best_of_four(tmp_path) == "9 of 9"  # HiLAP-SL is not there yet
    base_results(tmp_path, {"minilm-sl": 0.4})
    assert best_of_four(tmp_path) == "9 of 12"  # no HMCN has MiniLM
    base_results(tmp_path, {"svm-zero": 0.2, "hilap": 0.3})
    assert best_of_four(tmp_path) == "12 of 15"  # nor has HiLAP-SL the SVMs
    assert best_of_four(tmp_path, "TextCNN, HAN, bow-CNN") == "9 of 9"


# --- the paper's systems on texts ------------------------------------------------------------------------------------


def test_the_papers_rows_stand_beside_ours_on_the_set_that_plays_its_own(tmp_path):
    base_results(tmp_path, {"svm-zero": 0.5, "svm": 0.6, "bowcnn-hilap": 0.7, "hilap": 0.65}, name="arxiv")
    page = table.page(tmp_path)
    place = "Table 2: RCV1, played by arXiv abstracts"
    svm = cells_of(page, place, "SVM")
    assert (svm["Ours"], svm["Macro-F1"]) == ("SVM, margin above 0 (`svm-zero`)", "50.00")
    assert svm["*paper, RCV1: Macro-F1*"] == "46.2"
    assert cells_of(page, place, "HiLAP (bow-CNN)")["EBF"] == "**70.00**"  # the paper's policy was not run: this stands
    assert cells_of(page, place, "HAN")["Ours"] == "–"
    assert cells_of(page, place, "*not in the paper*")["EBF"] == "65.00"
    assert "Table 3" not in page.partition("## The paper's systems on texts")[2].partition("### Table 2")[2]


def test_the_papers_own_set_needs_no_player(tmp_path):
    base_results(tmp_path, {"svm": 0.6}, name="arxiv")
    base_results(tmp_path, {"svm": 0.8}, name="rcv1")
    row = cells_of(table.page(tmp_path), "Table 2: RCV1", "SVM")
    assert (row["Ours"], row["Micro-F1"], row["*paper, RCV1: Micro-F1*"]) == ("SVM, tuned (`svm`)", "80.00", "80.4")


def test_every_row_of_the_papers_text_tables_has_a_system_of_ours():
    tables = PAPER["tables"]
    for key, systems in roles.SYSTEMS.items():
        assert set(tables[key]["rows"]) <= set(systems)
        assert {method for mine in systems.values() for method in mine} <= set(records.NAMES)


# --- HMCN ------------------------------------------------------------------------------------------------------------


def test_the_orders_of_hmcn_stand_beside_the_papers(tmp_path):
    for method, value in (("hmcn", 0.3), ("hmcn-original", 0.2), ("hmcn-tuned", 0.35)):
        write_result(tmp_path, "funcat", method, 0, test={"macro_f1": value})
    part = table.page(tmp_path).partition("## HMCN's orders (the paper's Table 8)")[2].partition("\n## ")[0]
    ours = re.findall(r"\| FunCat \(cellcycle\) \| .*\(`([\w-]+)`\) \| 1 \| \S+ \| (\S+) \| \S+ \| (.*) \|", part)
    none = "– | – | – | –"  # the paper has no figures there
    assert ours == [("hmcn-original", "20.00", none), ("hmcn", "30.00", none), ("hmcn-tuned", "**35.00**", none)]
    for name, place in (("RCV1", 0), ("Yelp", 3), ("NYT", 6)):
        for system, values in PAPER["tables"]["table_hmcn"]["rows"].items():
            three = " | ".join(map(str, values[place : place + 3]))
            assert f"| {name} | – | – | – | – | – | {system}, {name} | {three} |" in part


@pytest.mark.parametrize(
    ("player", "name", "place"), [("arxiv", "RCV1", 0), ("medline", "Yelp", 3), ("trove", "NYT", 6)]
)
def test_the_papers_orders_stand_in_the_row_of_ours_that_has_them(player, name, place, tmp_path):
    for method in ("hmcn", "hmcn-original", "hmcn-tuned"):
        write_result(tmp_path, player, method, 0)
    part = table.page(tmp_path).partition("## HMCN's orders (the paper's Table 8)")[2].partition("\n## ")[0]
    printed = PAPER["tables"]["table_hmcn"]["rows"]
    for method, row in (("hmcn-original", "HMCN (original)"), ("hmcn", "HMCN (ours)")):
        line = next(line for line in part.splitlines() if f"(`{method}`)" in line)
        assert line.endswith(f"| {row}, {name} | {' | '.join(map(str, printed[row][place : place + 3]))} |")
        assert part.count(f"{row}, {name} |") == 1
    assert next(line for line in part.splitlines() if "(`hmcn-tuned`)" in line).endswith("| – | – | – | – |")


def test_without_hmcn_there_is_no_section_of_it(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0)
    assert sections.hmcn_section(records.read_results(tmp_path), PAPER) == []


# --- what is said of Tables 6 and 7 and of Figures 3 and 4 -----------------------------------------------------------


def three(micro_f1, macro_f1, example_f1):
    return {"micro_f1": micro_f1, "macro_f1": macro_f1, "example_f1": example_f1}


def test_the_ablation_says_which_steps_help_and_where_the_paper_has_it_otherwise(tmp_path):
    for method, scores in {
        "hilap-paper": (0.5, 0.1, 0.4),
        "hilap-sl": (0.4, 0.3, 0.3),
        "hilap-sl-noflat": (0.45, 0.35, 0.35),
        "hilap-noflat": (0.45, 0.05, 0.3),
        "flat": (0.6, 0.2, 0.3),
    }.items():
        write_result(tmp_path, "funcat", method, 0, test=three(*scores))
    (told,) = findings.ablation_words(records.read_results(tmp_path)["funcat"], PAPER)
    assert "Best by Micro-F1: `hilap-paper`; Macro-F1: `hilap-sl-noflat`; EBF: `hilap-paper`." in told
    assert (
        "Reinforcement (`hilap-paper` over `hilap-sl`) helps by some scores: Micro-F1 +10.00, Macro-F1 -20.00, "
        "EBF +10.00 (not tested); contrary to the paper by Macro-F1." in told
    )
    assert "(`hilap-sl` over `hilap-sl-noflat`) does not help: " in told
    assert "contrary to the paper by Micro-F1, Macro-F1, EBF." in told
    assert "(`hilap-paper` over `hilap-noflat`) helps: " in told
    assert "`hilap-nosl`" not in told  # not run
    assert "(`flat`) stands at 60.00 / 20.00 / 30.00, above every variant by Micro-F1." in told


def test_a_step_of_the_ablation_that_chance_would_hardly_make_is_marked(gold, tmp_path):
    for method, wrong in (("hilap-paper", 0.02), ("hilap-sl", 0.4), ("hilap-nosl", 0.02)):
        judged(tmp_path, "funcat", method, [noisy(gold, wrong, 0)], gold)
    (told,) = findings.ablation_words(records.read_results(tmp_path)["funcat"], PAPER)
    assert re.search(r"over `hilap-sl`\) helps: (\S+ \+[\d.]+ ‡(, )?){3}; nowhere contrary", told)
    assert "over `hilap-nosl`) does not help: Micro-F1 +0.00, Macro-F1 +0.00, EBF +0.00; nowhere" in told
    assert told.endswith("with an unbiased stop.")  # flat was not run


def test_inconsistency_is_told_with_its_extremes_and_who_else_is_at_zero(tmp_path):
    shares = {"hilap": 0.0, "svm": 0.3, "c-hmcnn": 0.0, "hmcn": 0.1}
    for method, share in shares.items():
        write_result(tmp_path, "funcat", method, 0, test={"inconsistent_share": share})
    write_result(tmp_path, "go", "hmcn", 0, test={"inconsistent_share": 0.6})
    pages = records.read_results(tmp_path)
    (told,) = findings.inconsistency_words(pages, list(shares))
    assert told == (
        "Reading: 2 of 4 rows are above 0 on some set, from 10.00 (`hmcn`, FunCat (cellcycle)) to 60.00 (`hmcn`, Gene "
        "Ontology (cellcycle)). HiLAP is at 0 on every set, in every form. At 0 wherever they were run are also "
        "`c-hmcnn`: it is not HiLAP's alone."
    )
    assert told in table.page(tmp_path)
    write_result(tmp_path, "go", "hilap", 0, test={"inconsistent_share": 0.01})
    (told,) = findings.inconsistency_words(records.read_results(tmp_path), list(shares))
    assert "Not at 0, of HiLAP: `hilap`." in told
    assert "in every form" not in told


def test_base_models_say_how_often_hilap_and_the_papers_policy_are_above_each_framework(tmp_path):
    base_results(tmp_path, {"han-flat-half": 0.1, "han-flat": 0.4, "han-paper": 0.2, "han-hilap": 0.3})
    base_results(tmp_path, {"bowcnn-flat-half": 0.1, "bowcnn-flat": 0.2, "bowcnn-hilap": 0.3})
    page = table.page(tmp_path)
    assert (
        "HiLAP, the preset `residual`, is above flat, 0.5: 6 of 6; flat, tuned: 3 of 6. It is above all of them in "
        "3 of 6. The paper's policy is above flat, 0.5: 3 of 3; flat, tuned: 0 of 3. It is above all of them in 0 of 3."
    ) in page


def test_above_all_frameworks_is_said_of_the_cells_that_have_all_of_them(tmp_path):
    base_results(tmp_path, {"han-flat-half": 0.1, "han-hilap": 0.3})
    base_results(tmp_path, {"bowcnn-hmcn": 0.4, "bowcnn-hilap": 0.3})
    told = "HiLAP, the preset `residual`, is above flat, 0.5: {}; HMCN, tuned: {}. "
    assert told.format("3 of 3", "0 of 3") + "No cell has all of them." in table.page(tmp_path)
    base_results(tmp_path, {"han-hmcn": 0.2})
    assert told.format("3 of 3", "3 of 6") + "It is above all of them in 3 of 3." in table.page(tmp_path)


def bars_of(groups, heights):
    return groups, [plotting.Bar(height, None) for height in heights]


def test_gains_by_group_are_told_with_the_largest_and_the_smallest(tmp_path):
    found = {"arxiv": bars_of(["L1\n3", "L2\n9"], [4.0, 1.0]), "trove": bars_of(["L1\n1", "L2+\n1,205"], [-2.0, 6.5])}
    assert findings.group_cells(found) == [
        "-2.00 (L1, 1 label, PyPI descriptions (trove))",
        "+6.50 (L2+, 1,205 labels, PyPI descriptions (trove))",
        "1 of 4 groups",
        "1 of 2 sets",
    ]
    assert findings.group_cells({"arxiv": bars_of(["L1\n3", "L2\n9"], [-4.0, -1.0])})[3] == "0 of 1 sets"  # no gain
    write_result(tmp_path, "trove", "hilap", 0)
    assert findings.groups_section(records.read_results(tmp_path)) == []  # nothing to compare with


def test_gains_by_group_stand_in_a_table_without_what_was_not_run(gold, tmp_path):
    for method, wrong in (("bowcnn-paper", 0.1), ("bowcnn-flat-half", 0.3), ("bowcnn-flat", 0.05)):
        judged(tmp_path, "trove", method, [noisy(gold, wrong, 0)], gold)
    part = table.page(tmp_path).partition(f"{findings.FIGURE_4}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][2:]
    at_half, tuned = (f"The paper's policy on bow-CNN over flat bow-CNN{words}" for words in (" at 0.5", ", tuned"))
    assert [row[:2] for row in rows] == [[pair, how] for pair in (at_half, tuned) for how in ("level", "popularity")]
    assert rows[0][2].startswith("+")
    assert rows[2][2].startswith("-")


# --- what each part adds ---------------------------------------------------------------------------------------------


def stages(folder, gold, name, wrong):
    for method, share in zip(parts.STAGES, wrong, strict=True):
        judged(folder, name, method, [noisy(gold, share, seed) for seed in range(2)], gold)


def test_what_each_part_adds_stands_between_the_stages_with_its_p(gold, tmp_path):
    stages(tmp_path, gold, "trove", (0.4, 0.2, 0.2))
    page = table.page(tmp_path)
    assert page.index("## Where HiLAP is first") < page.index("## What each part adds") < page.index("## How to read")
    lines = page.partition("### PyPI descriptions (trove): parts\n")[2].partition("\n#")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][2:]
    assert [row[0].strip() for row in rows] == [
        "Flat models of `hilap`, tuned (`hilap-flat-members`)",
        "*the walk and its biases*",
        "`hilap` before reinforcement (`hilap-start`)",
        "*reinforcement*",
        "HiLAP, settings for the set (`hilap`)",
        "*both together*",
    ]
    means = {one.method: 100 * np.mean(one.values("test", "micro_f1")) for one in runs_of(tmp_path, "trove").values()}
    gap = means["hilap-start"] - means["hilap-flat-members"]
    assert rows[1][2] == f"{gap:+.2f}, p < 0.001"
    assert rows[3][2:] == ["+0.00, p = 1.000"] * 3  # the same answers
    assert rows[5][2] == rows[1][2]
    assert re.fullmatch(r"[\d.]+ ± [\d.]+", rows[0][2])


def test_what_each_part_adds_is_read_over_the_sets_that_have_all_of_them(gold, tmp_path):
    stages(tmp_path, gold, "trove", (0.4, 0.1, 0.3))
    stages(tmp_path, gold, "arxiv", (0.4, 0.2, 0.2))
    judged(tmp_path, "go", "hilap", [gold], gold)  # has not all
    page = table.page(tmp_path)
    assert page.count(": parts\n") == 2
    told = page.partition("Reading, as the mean over 2 sets")[2].partition("###")[0]
    walk, reinforced, both = re.findall(r"^- (.*)$", told, re.MULTILINE)
    assert walk.startswith("The walk and its biases (`hilap-start` over `hilap-flat-members`): Micro-F1 +")
    assert walk.count("up on 2 (2 with p < 0.05), down on 0") == 3
    assert reinforced.count("up on 0, down on 1 (1 with p < 0.05)") == 3
    sets = [runs_of(tmp_path, name) for name in ("trove", "arxiv")]
    after, before = (
        [np.mean(mine[method].values("test", "macro_f1")) for mine in sets] for method in ("hilap", "hilap-start")
    )
    assert f"Macro-F1 {100 * (np.mean(after) - np.mean(before)):+.2f}, up on 0" in reinforced
    assert both.startswith("Both (`hilap` over `hilap-flat-members`)")


def test_without_all_stages_nothing_is_said_of_parts(tmp_path):
    for method in ("hilap", "hilap-start", "svm"):
        write_result(tmp_path, "funcat", method, 0)
    page = table.page(tmp_path)
    assert "What each part adds" not in page
    write_result(tmp_path, "funcat", "hilap-flat-members", 0)
    page = table.page(tmp_path)
    assert "+0.00, not tested" in page
    assert "[What each part adds](#what-each-part-adds) tells the two apart." in page


# --- whether probabilities come true ---------------------------------------------------------------------------------


def test_the_farthest_bin_with_enough_pairs_is_told(tmp_path):
    kept = {"pairs": "900 60 200", "probability": "0.01 0.5 0.9", "right": "0.02 0.1 0.65"}
    write_result(tmp_path, "trove", "hilap", 1, reliability=kept, decoding={"probabilities": "flat"})
    write_result(tmp_path, "trove", "flat", 0, reliability=kept | {"right": "0.3 0.5 0.9"})
    page = table.page(tmp_path)
    row = "HiLAP, settings for the set (probabilities of its flat models) (`hilap`)"
    place = "Whether probabilities come true"
    assert cells_of(page, place, row)["PyPI descriptions (trove)"] == "0.25 (0.90 → 0.65)"  # 60 pairs are too few
    assert cells_of(page, place, "Flat network, tuned (`flat`)")["PyPI descriptions (trove)"] == "0.29 (0.01 → 0.30)"
    assert "off at most on PyPI descriptions (trove) by 0.25 (too high: 0.90 said, 0.65 right)." in page
    write_result(tmp_path, "trove", "hilap", 0, reliability=kept, decoding={"probabilities": "flat"})
    cell = cells_of(table.page(tmp_path), place, row)["PyPI descriptions (trove)"]
    assert cell == "0.40 (0.50 → 0.10)"  # two seeds have 120
    assert "calibrated" not in page


def test_without_reliability_tables_nothing_is_said_of_probabilities(tmp_path):
    write_result(tmp_path, "trove", "hilap", 0)
    assert "Whether probabilities come true" not in table.page(tmp_path)


# --- the reading -----------------------------------------------------------------------------------------------------


def test_the_page_says_where_hilap_is_first_and_who_else_is(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0, test={"micro_f1": 0.31, "macro_f1": 0.07, "example_f1": 0.30})
    write_result(tmp_path, "funcat", "svm", 0, test={"micro_f1": 0.30, "macro_f1": 0.09, "example_f1": 0.29})
    write_result(tmp_path, "funcat", "flat", 0, test={"micro_f1": 0.20, "macro_f1": 0.08, "example_f1": 0.295})
    page = table.page(tmp_path)
    row = cells_of(page, "Where HiLAP is first", "FunCat (cellcycle)")
    assert row["Micro-F1"] == "`hilap` (+1.00, not tested)"
    assert row["Macro-F1"] == "`svm` (HiLAP -2.00, not tested)"
    assert row["EBF"] == "`hilap` (+0.50, not tested)"
    assert "HiLAP is first in **2 of 3** of these comparisons" in page
    assert "first on Micro-F1 (`hilap`, 1.00 above `svm`, not tested)" in page
    assert "not first on Macro-F1 (`svm` is, `hilap` is 2.00 below, not tested)" in page
    assert "first on EBF (`hilap`, 0.50 above `flat`, not tested)" in page


def test_a_system_on_another_base_model_can_be_first(tmp_path):
    write_result(tmp_path, "trove", "hilap", 0, test={"micro_f1": 0.31})
    write_result(tmp_path, "trove", "minilm-flat", 0, test={"micro_f1": 0.40})
    assert "`minilm-flat` is, `hilap` is 9.00 below" in table.page(tmp_path)


def test_the_page_says_how_sure_a_first_place_is(gold, tmp_path):
    judged(tmp_path, "funcat", "hilap", [noisy(gold, 0.02, seed) for seed in range(3)], gold)
    judged(tmp_path, "funcat", "svm", [noisy(gold, 0.4, seed) for seed in range(3)], gold)
    page = table.page(tmp_path)
    assert "p < 0.001" in cells_of(page, "Where HiLAP is first", "FunCat (cellcycle)")["EBF"]
    assert "first in **3 of 3** of these comparisons, in **3** of them with p < 0.05" in page
    assert "Read this with care" in page
    judged(tmp_path, "funcat", "flat", [noisy(gold, 0.02, seed + 3) for seed in range(3)], gold)
    cell = cells_of(table.page(tmp_path), "Where HiLAP is first", "FunCat (cellcycle)")["EBF"]
    assert float(cell.partition("p = ")[2].rstrip(")")) > 0.05


def test_a_known_reason_stands_on_the_page_only_where_hilap_is_behind(tmp_path):
    write_result(tmp_path, "go", "hilap", 0, test={"macro_f1": 0.04})
    write_result(tmp_path, "go", "flat-scut", 0, test={"macro_f1": 0.05})
    assert "Why not on GO's Macro-F1" in table.page(tmp_path)
    write_result(tmp_path, "go", "hilap", 0, test={"macro_f1": 0.06})
    assert "Why not on GO's Macro-F1" not in table.page(tmp_path)


BARE = "the preset with nothing chosen for a set (`hilap-preset`) is first in"


def test_the_preset_as_it_is_is_counted_against_systems_that_are_no_parts_of_hilap(gold, tmp_path):
    judged(tmp_path, "funcat", "hilap-preset", [noisy(gold, 0.02, 0)], gold)
    judged(tmp_path, "funcat", "svm", [noisy(gold, 0.4, 1)], gold)
    for own in ("hilap", "hilap-flat-members", "han-sl", "hilap-sl"):
        judged(tmp_path, "funcat", own, [gold], gold)  # better, and no matter
    write_result(tmp_path, "trove", "hilap-preset", 0, test=three(0.5, 0.3, 0.4))
    write_result(tmp_path, "trove", "svm", 0, test=three(0.4, 0.3, 0.5))  # worse, equal and better
    write_result(tmp_path, "go", "hilap", 0)  # where the preset was not run
    write_result(tmp_path, "go", "svm", 0)
    assert f" {BARE} **4 of 6**, in **3** with p < 0.05." in table.page(tmp_path)


@pytest.mark.parametrize("methods", [("hilap", "svm"), ("hilap-preset", "hilap", "hilap-flat-members", "hilap-sl")])
def test_without_the_preset_or_another_system_nothing_is_counted_of_it(methods, tmp_path):
    for method in methods:
        write_result(tmp_path, "trove", method, 0)
    pages = records.read_results(tmp_path)
    assert reading.preset_words(pages) == []
    assert BARE not in table.page(tmp_path)


def test_hilap_asked_for_macro_f1_alone_stands_beside_the_best_other_system_by_it(gold, tmp_path):
    judged(tmp_path, "funcat", "hilap-macro", [noisy(gold, 0.02, 0)], gold)
    judged(tmp_path, "funcat", "svm", [noisy(gold, 0.4, 1)], gold)
    judged(tmp_path, "funcat", "hilap-flat-members", [gold], gold)  # better, but a part of HiLAP
    write_result(tmp_path, "go", "hilap-macro", 0, test=three(0.4, 0.05, 0.3))
    write_result(tmp_path, "go", "flat-scut", 0, test=three(0.1, 0.0625, 0.125))
    write_result(tmp_path, "go", "flat", 0, test=three(0.5, 0.04, 0.5))
    write_result(tmp_path, "trove", "hilap-macro", 0)  # nothing to compare with
    write_result(tmp_path, "arxiv", "svm", 0)
    told = said(table.page(tmp_path))
    assert "is first by Macro-F1 of systems that are no parts of it in **1 of 2**, in **1** with p < 0.05." in told
    beside = "on GO 40.0 / 5.0 / 30.0, and `flat-scut` 10.0 / 6.25 / 12.5 (Macro-F1 -1.25, not tested)."
    assert beside in told
    assert told.count("on trove") == 0


def test_without_such_a_run_nothing_is_said_of_macro_f1_alone(tmp_path):
    for method in ("hilap", "svm"):
        write_result(tmp_path, "go", method, 0)
    assert "Asked for Macro-F1 alone" not in table.page(tmp_path)


def test_where_its_own_flat_models_are_ahead_the_page_says_what_hilap_has_more_than_they(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0, test=three(0.30, 0.10, 0.31))
    write_result(tmp_path, "funcat", "hilap-flat-members", 0, test=three(0.31, 0.08, 0.305))
    write_result(tmp_path, "trove", "hilap", 0, test=three(0.50, 0.30, 0.40))
    write_result(tmp_path, "trove", "hilap-flat-members", 0, test=three(0.60, None, 0.45))
    write_result(tmp_path, "go", "hilap", 0, test=three(0.50, 0.04, 0.40))
    write_result(tmp_path, "go", "hilap-flat-members", 0, test=three(0.40, 0.03, 0.30))  # behind
    told = said(table.page(tmp_path))
    assert "Why not on FunCat's Micro-F1, trove's Micro-F1 and trove's EBF: what is ahead are HiLAP's own flat" in told
    assert (
        "What it has more than these models: on FunCat Micro-F1 -1.00, Macro-F1 +2.00, EBF +0.50; on trove Micro-F1 "
        "-10.00, EBF -5.00. No other way" in told
    )


def test_of_another_form_of_hilap_than_that_which_stands_on_them_its_flat_models_say_nothing(tmp_path):
    write_result(tmp_path, "funcat", "hilap-paper", 0, test=three(0.30, 0.10, 0.31))
    write_result(tmp_path, "funcat", "hilap-flat-members", 0, test=three(0.40, 0.20, 0.41))
    page = table.page(tmp_path)
    assert cells_of(page, "Where HiLAP is first", "FunCat (cellcycle)")["EBF"].startswith("`hilap-flat-members`")
    assert "Why not on" not in page
    assert reading.own_gaps(records.read_results(tmp_path)["funcat"]) == ""


def test_equal_is_not_first(tmp_path):
    for method in ("hilap", "svm"):
        write_result(tmp_path, "funcat", method, 0)
    page = table.page(tmp_path)
    assert "HiLAP is first in **0 of 3**" in page
    assert (
        "In 3 it is equal to the best other one, to two decimals. Where it is behind, it is so with p < 0.05 in 0 of 0."
        in page
    )
    row = cells_of(page, "Where HiLAP is first", "FunCat (cellcycle)")
    assert row["EBF"] == "`hilap` and `svm` (equal, not tested)"
    assert "equal to the best on EBF (`hilap` and `svm`, not tested)" in page


def test_what_two_decimals_do_not_show_is_equal(tmp_path):
    write_result(tmp_path, "trove", "hilap", 0, test=three(0.30004, 0.3001, 0.2999))
    write_result(tmp_path, "trove", "hsvm-refit", 0, test=three(0.3, 0.3, 0.3))
    found = reading.standings_of(records.read_results(tmp_path)["trove"])
    assert [(one.first, one.behind) for one in found] == [(False, False), (True, False), (False, True)]


def test_the_first_table_has_hilaps_scores(tmp_path):
    write_result(tmp_path, "trove", "hilap", 0, test=three(0.5, 0.25, 0.4))
    row = cells_of(table.page(tmp_path), "Where HiLAP is first", "PyPI descriptions (trove)")
    assert row["HiLAP: Micro-F1 / Macro-F1 / EBF"] == "50.00 / 25.00 / 40.00"


def test_a_page_of_other_sets_says_nothing_of_ours(tmp_path):
    for method in ("hilap", "svm", "hmcn", "bowcnn-flat", "bowcnn-hilap", "hilap-sl", "hilap-paper"):
        write_result(tmp_path, "rcv1", method, 0)
    page = table.page(tmp_path)
    assert "Read this with care" in page
    for word in ("FunCat", "GO", "Gene Ontology", "decisions/", "looked at more often"):
        assert word not in page.replace("how often the test split was looked at", "")
    write_result(tmp_path, "funcat", "hilap", 0)
    write_result(tmp_path, "funcat", "svm", 0)
    page = table.page(tmp_path)
    assert "looked at more often than once" in page
    for number in (10, 11, 12, 13):
        assert f"[{number}](decisions/00{number}-" in page


def test_without_the_recommended_preset_nothing_is_said_of_it(tmp_path):
    for method in ("hilap-paper", "svm"):
        write_result(tmp_path, "funcat", method, 0)
    assert "Read this with care" not in table.page(tmp_path)


def test_the_form_with_vectors_is_told_apart_with_its_speed(tmp_path):
    speed = {"documents_per_cpu_second": 21.6}
    write_result(tmp_path, "trove", "hilap", 0)
    write_result(tmp_path, "trove", "svm", 0)
    assert "pretrained encoder, whose weights" not in table.page(tmp_path)
    write_result(tmp_path, "trove", "hilap-minilm", 0, test=three(0.31, 0.09, 0.29), prediction=speed)
    told = table.page(tmp_path)
    counted = "`hilap-minilm` is above `hilap` in 2 of 3 scores, in 0 with p < 0.05, with one seed of its own. "
    assert f"{counted}It is not the recommended one: " in told
    assert "labels 22 documents in a second of processor time where `hilap` labels 2,000." in told


# --- what is where ---------------------------------------------------------------------------------------------------


def test_contents_link_to_every_section(tmp_path):
    write_result(tmp_path, "trove", "hilap", 0)
    page = table.page(tmp_path)
    listed = re.findall(r"^- \[(.+)\]\(#(.+)\)$", page.partition("\n## ")[0], re.MULTILINE)
    assert [heading for heading, _ in listed] == re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert all(orientation.anchor(heading) == link for heading, link in listed)


def test_the_sets_are_those_of_the_page(tmp_path):
    write_result(tmp_path, "go", "hilap", 0)
    write_result(tmp_path, "rcv1", "hilap", 0)
    write_result(tmp_path, "mine", "hilap", 0)
    page = table.page(tmp_path)
    place = f"The sets (the paper's Table {PAPER['tables']['table_data']['number']})"
    assert list(cells_of(page, place, "Gene Ontology (cellcycle)").values())[2:] == [
        *("4,125", "DAG", "14", "34.9", "1,625", "848", "1,278"),
    ]
    row = list(cells_of(page, place, "RCV1").values())
    assert row[1:] == ["as the paper has it", "103", "tree", "–", "3.24", "23,149", "2,315", "781,265"]
    assert list(cells_of(page, place, "mine").values())[1:] == ["–"] * 8  # an older result does not say it


SHAPE = {"inputs": "texts", "labels": 1_103, "structure": "DAG", "levels": 5, "labels_per_document": 3.25}
SHAPE |= {"train": 20_000, "valid": 300, "test": 7_000}
SHAPE_CELLS = ["1,103", "DAG", "5", "3.25", "20,000", "300", "7,000"]


@pytest.mark.parametrize(
    ("name", "title", "what"),
    [
        ("mine", "mine", "texts"),
        ("rcv1", "RCV1", "texts; the paper's own"),
        ("go", "Gene Ontology (cellcycle)", "genes, 77 features; the paper's own"),
    ],
)
def test_a_set_has_the_shape_that_its_results_say(name, title, what, tmp_path):
    write_result(tmp_path, name, "hilap", 0)  # older than shapes
    write_result(tmp_path, name, "svm", 0, shape=SHAPE)
    place = f"The sets (the paper's Table {PAPER['tables']['table_data']['number']})"
    assert list(cells_of(table.page(tmp_path), place, title).values())[1:] == [what, *SHAPE_CELLS]


@pytest.mark.parametrize(
    "shape",
    [
        None,
        [],
        {key: value for key, value in SHAPE.items() if key != "levels"},
        SHAPE | {"labels": "103"},
        SHAPE | {"train": True},
        SHAPE | {"test": -1},
        SHAPE | {"structure": "Tree"},
        SHAPE | {"labels_per_document": float("nan")},
        SHAPE | {"inputs": None},
    ],
)
def test_a_shape_that_is_none_is_named(shape, tmp_path):
    write_result(tmp_path, "mine", "svm", 0, shape=shape)
    with pytest.raises(
        HilapError, match=r"mine/svm: shape must have inputs, labels, .* got .*; run it again with --ag"
    ):
        table.page(tmp_path)


def test_results_that_differ_in_the_shape_of_their_set_are_refused(tmp_path):
    write_result(tmp_path, "mine", "svm", 0, shape=SHAPE)
    write_result(tmp_path, "mine", "hilap", 0, shape=SHAPE)
    table.page(tmp_path)
    write_result(tmp_path, "mine", "hilap", 0, shape=SHAPE | {"labels": 7})
    with pytest.raises(HilapError, match=r"mine: the results differ in what shape the set has; run the older ones ag"):
        table.page(tmp_path)


def what_is(page, title):
    place = f"The sets (the paper's Table {PAPER['tables']['table_data']['number']})"
    return cells_of(page, place, title)["What"]


def said(page):
    """A page with its lines joined, so that sentences can be looked for."""
    return " ".join(page.split())


def test_a_set_at_hand_is_not_said_to_be_absent_nor_to_be_played(tmp_path):
    for name in ("arxiv", "trove", "medline"):
        write_result(tmp_path, name, "svm", 0)
        write_result(tmp_path, name, "hmcn", 0)
    page = table.page(tmp_path)
    told = said(page)
    assert "RCV1, NYT and Yelp are under licence: where they are not at hand, sets of ours play their roles." in told
    assert (
        "RCV1, NYT and Yelp are under licence and not at hand: their roles are played by arXiv, trove and MEDLINE, so "
        "figures compare down a column and not across." in told
    )
    assert "on the set that plays the role of its own (arXiv for RCV1, trove for NYT, MEDLINE for Yelp):" in told
    assert what_is(page, "arXiv abstracts") == "titles and abstracts; role of RCV1"
    for method in ("svm", "hmcn"):
        write_result(tmp_path, "rcv1", method, 0)
    page = table.page(tmp_path)
    told = said(page)
    assert "NYT and Yelp are under licence: where they are not at hand" in told
    assert (
        "NYT and Yelp are under licence and not at hand: their roles are played by trove and MEDLINE, so figures there "
        "compare down a column and not across." in told
    )
    assert "on its own set or that which plays its role (trove for NYT, MEDLINE for Yelp):" in told
    assert "RCV1, NYT" not in page.replace("*paper: RCV1, NYT", "")
    assert what_is(page, "arXiv abstracts") == "titles and abstracts"
    for name in ("nyt", "yelp"):
        for method in ("svm", "hmcn"):
            write_result(tmp_path, name, method, 0)
    told = said(table.page(tmp_path))
    assert "under licence" not in told
    assert "played by" not in told
    assert "role" not in told.partition("## HMCN's orders")[2].partition(" ## ")[0]
    assert "in the row that has its order, on its own set: compare" in told


def test_one_set_that_is_played_is_told_in_the_singular_and_no_other(tmp_path):
    write_result(tmp_path, "arxiv", "svm", 0)
    write_result(tmp_path, "trove", "hr-lr", 0)  # no system of these tables
    told = said(table.page(tmp_path))
    assert (
        "in its order. RCV1 is under licence and not at hand: its role is played by arXiv, so figures compare down"
        in told
    )
    for name in ("nyt", "yelp"):
        write_result(tmp_path, name, "svm", 0)
    told = said(table.page(tmp_path))
    assert "RCV1 is under licence: where it is not at hand, sets of ours play its role." in told


@pytest.mark.parametrize("name", orientation.SHAPES)
def test_a_sets_shape_is_that_of_its_results(name):
    labels, structure, levels, mean, _, _, documents = orientation.SHAPES[name]
    folder = Path(table.RESULTS) / name
    record = json.loads(next(iter(sorted(folder.glob("svm/*.json")))).read_text())
    kept = {over: np.array(record["counts"][over]["gold"].split(), dtype=int) for over in ("documents", "labels")}
    assert (len(kept["labels"]), len(kept["documents"])) == (labels, documents)
    shortest = max(map(int, record["counts"]["labels"]["level"].split()))
    assert shortest == levels if structure == "tree" else shortest < levels
    assert kept["documents"].mean() == pytest.approx(mean, rel=0.05)  # of the test documents alone


@pytest.mark.data
@pytest.mark.parametrize("name", orientation.SHAPES)
def test_a_listed_shape_is_that_of_the_data(name, data_folder):
    found = run.shape_of(run.parts_of(name, data_folder))
    listed = dict(zip(orientation.KEYS, orientation.SHAPES[name], strict=True))
    digits = len(str(listed["labels_per_document"]).partition(".")[2])
    assert {**found, "labels_per_document": round(found["labels_per_document"], digits)} == listed | {
        "inputs": orientation.KINDS[name].partition(", ")[2] or "texts"
    }


@pytest.mark.data
def test_the_sets_shapes_are_those_of_the_notes(data_folder):
    notes = (data_folder / "README.md").read_text(encoding="utf-8")
    for name, (labels, structure, levels, mean, *sizes) in orientation.SHAPES.items():
        told = re.search(rf"^\| `{name}` \|.*$", notes, re.MULTILINE)[0].replace(",", "")
        parts_of_it = " / ".join(map(str, sizes))
        assert re.search(rf"\| {labels} \| {structure} {levels} levels.*\| {parts_of_it} \| {mean} \|", told)


def test_words_stand_to_the_left_and_figures_to_the_right():
    rows = [["a", "`x`", "**3.00** ‡", "+0.1, p = 1", "–"], ["b", "", "–", "-2", "by"]]
    made = table.markdown_table(["1", "2", "3", "4", "5"], rows).splitlines()
    assert made[1] == "| :-- | :-- | --: | --: | :-- |"
    assert made[2:] == ["| a | `x` | **3.00** ‡ | +0.1, p = 1 | – |", "| b |  | – | -2 | by |"]


def test_the_recommended_form_stands_for_hilap_even_where_another_is_better(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0, test={"micro_f1": 0.30})
    write_result(tmp_path, "funcat", "hilap-paper", 0, test={"micro_f1": 0.40})
    write_result(tmp_path, "funcat", "svm", 0, test={"micro_f1": 0.35})
    row = cells_of(table.page(tmp_path), "Where HiLAP is first", "FunCat (cellcycle)")
    assert row["Micro-F1"] == "`svm` (HiLAP -5.00, not tested)"


def test_hilap_alone_is_not_first(tmp_path):
    for method in ("hilap", "hilap-paper", "bowcnn-hilap"):
        write_result(tmp_path, "funcat", method, 0)
    page = table.page(tmp_path)
    assert cells_of(page, "Where HiLAP is first", "FunCat (cellcycle)")["EBF"] == "nothing to compare with"
    assert "so nothing is claimed" in page
    assert "HiLAP is first in" not in page


def made_with(method, settings=None, **others):
    """Runs of a method with these settings."""
    return records.Runs("funcat", method, ({"settings": settings, **others},))


def test_hilap_sl_and_flat_parts_do_not_count_as_hilap():
    assert [method for method in records.ABLATION if records.is_hilap(made_with(method))] == [
        "hilap-nosl",
        "hilap-noflat",
        "hilap-paper",
    ]
    assert records.is_hilap(made_with("han-hilap"))
    assert not records.is_hilap(made_with("han-sl"))


WHOLE, PART, OTHER = (True, False, True), (False, False, True), (False, True, False)  # HiLAP, rival, HiLAP's own


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"preset": "residual", "folds": 3}, WHOLE),
        ({"preset": "paper", "variant": "hilap", "reinforced_epochs": 5}, WHOLE),
        ({"members_of": "hilap", "clip": 2.0}, WHOLE),
        ({"members_of": "hilap", "variant": "flat"}, PART),
        ({"preset": "paper", "variant": "sl"}, PART),
        ({"members_of": "hilap", "reinforced_epochs": 0}, PART),
        ({"system": "mine.py:Mine"}, OTHER),
        ({"system": "flat", "variant": "flat"}, OTHER),
        ({"of": "mine", "threshold": 0.5}, OTHER),  # whose model it is nobody says
        (None, OTHER),
        ("paper", OTHER),
    ],
)
@pytest.mark.parametrize("method", ["mine", "mine-sl", "hilap-mine"])
def test_what_a_method_is_that_nobody_has_listed_is_told_by_its_settings(method, settings, kind):
    runs = made_with(method, settings)
    assert (records.is_hilap(runs), records.is_rival(runs), records.is_own(runs)) == kind


@pytest.mark.parametrize(
    ("system", "kind"), [({"system": "mine.py:Mine"}, OTHER), ({"variant": "sl"}, PART), ({}, WHOLE)]
)
def test_a_method_that_reads_anothers_model_is_what_that_model_is(system, kind):
    runs = made_with("mine-half", {"of": "mine", "threshold": 0.5}, trained_with=system)
    assert (records.is_hilap(runs), records.is_rival(runs), records.is_own(runs)) == kind


@pytest.mark.parametrize("settings", [{}, {"system": "flat"}, {"variant": "sl"}])
def test_a_listed_method_is_what_the_lists_say_whatever_its_settings(settings):
    told = {"hilap": WHOLE, "hilap-sl": PART, "hilap-start": PART, "svm": OTHER, "han-sl": (False, True, True)}
    for method, kind in told.items():
        runs = made_with(method, settings)
        assert (records.is_hilap(runs), records.is_rival(runs), records.is_own(runs)) == kind


def test_a_form_of_hilap_that_nobody_has_listed_is_no_rival_that_hilap_could_lose_to(tmp_path):
    for method, value in (("hilap", 0.5), ("hilap-mine", 0.7), ("hilap-mine-flat", 0.6), ("mine", 0.4)):
        own = {"hilap-mine-flat": {"variant": "flat"}, "mine": {"system": "mine.py:Mine"}}
        write_result(tmp_path, "trove", method, 0, test=three(value, value, value), settings=own.get(method, {}))
    page = table.page(tmp_path)
    row = cells_of(page, "Where HiLAP is first", "PyPI descriptions (trove)")
    assert (row["Other rows"], row["EBF"]) == ("1", "`hilap` (+10.00, not tested)")
    assert "of 4 rows on this set (1 settings of other systems, 3 forms and parts of HiLAP)" in page
    assert "(`mine`)" in table.short_table(tmp_path)  # the best other system
    (tmp_path / "trove" / "hilap" / "0.json").unlink()
    row = cells_of(table.page(tmp_path), "Where HiLAP is first", "PyPI descriptions (trove)")
    assert row["EBF"] == "`hilap-mine` (+30.00, not tested)"  # the best of its other forms


def test_a_form_of_hilap_that_nobody_has_listed_is_at_zero_as_hilap(tmp_path):
    for method, settings in (("hilap-mine", {}), ("mine", {"system": "mine.py:Mine"})):
        write_result(tmp_path, "trove", method, 0, settings=settings)
    (told,) = findings.inconsistency_words(records.read_results(tmp_path), ["hilap-mine", "mine"])
    assert told.endswith(
        "HiLAP is at 0 on every set, in every form. At 0 wherever they were run are also `mine`: it is not HiLAP's "
        "alone."
    )


def test_parts_of_the_ablation_are_no_rivals_that_hilap_could_be_first_against(tmp_path):
    for method in ("hilap", "flat-only", "hilap-sl"):
        write_result(tmp_path, "funcat", method, 0)
    row = cells_of(table.page(tmp_path), "Where HiLAP is first", "FunCat (cellcycle)")
    assert (row["Other rows"], row["EBF"]) == ("0", "nothing to compare with")
    assert records.is_rival(made_with("svm"))


def test_rows_are_counted_by_whose_they_are(tmp_path):
    others = ("svm", "svm-zero", "flat", "bowcnn-flat", "bowcnn-flat-half")
    forms = ("hilap", "hilap-paper", "bowcnn-hilap", "bowcnn-paper", "flat-only", "hilap-sl")
    for method in (*others, *forms, "bowcnn-sl", "bowcnn-flat-members", "hilap-flat-members"):
        write_result(tmp_path, "trove", method, 0)
    page = table.page(tmp_path)
    told = (
        "of 14 rows on this set (5 settings of other systems, 9 forms and parts of HiLAP, 3 of them among the others)"
    )
    assert told in page
    assert cells_of(page, "Where HiLAP is first", "PyPI descriptions (trove)")["Other rows"] == "8"


def test_the_opponents_to_beat_are_counted_too(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0, test={"micro_f1": 0.31, "macro_f1": 0.09, "example_f1": 0.31})
    assert "ahead of the opponents to beat, not measured by us, in **2 of 3**" in table.page(tmp_path)


def test_the_cost_is_told_beside_that_of_the_strongest_rival(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0)
    write_result(tmp_path, "funcat", "svm", 0, training={"cpu_seconds": 9.0})
    write_result(tmp_path, "funcat", "flat", 0, test=dict.fromkeys(("micro_f1", "macro_f1", "example_f1"), 0.01))
    runs = records.read_results(tmp_path)["funcat"]
    words = reading.set_words(runs, reading.standings_of(runs), {})
    assert "`hilap` 1,234 s, 2,000 documents/s; `svm` 9 s, 2,000 documents/s." in words[0]
    assert "`flat`" not in words[0]
