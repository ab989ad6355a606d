"""The report: what it holds, how it is shown, and which conventions it admits to."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console

from hilap.metrics import compare, flat, hierarchical, lca, ranking, report
from hilap.metrics.words import NAMES, name_of
from hilap.taxonomy import Taxonomy


@pytest.fixture
def gold(tree):
    return tree.encode([["beer"], ["shops"], [], ["caribbean", "bars"]])  # not closed


@pytest.fixture
def found(tree):
    return tree.encode([["food", "bars"], ["shops", "beer"], [], []])


@pytest.fixture
def scores(tree):
    return np.random.default_rng(0).random((4, len(tree)))


def rendered(renderable) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue()


def test_scores_are_those_of_the_single_metrics_on_closed_gold(tree, gold, found, scores):
    closed = tree.close_matrix(gold)
    values = report(gold, found, tree, scores=scores).scores
    assert values["micro_f1"] == flat.micro(closed, found).f1
    assert values["macro_recall"] == flat.macro(closed, found).recall
    assert values["example_precision"] == flat.example(closed, found).precision
    assert values["hierarchical_f1"] == hierarchical.hierarchical(closed, found, tree).f1
    assert values["lca_f1"] == lca.lca_scores(closed, found, tree).f1
    assert values["consistent_macro_f1"] == hierarchical.consistent_macro(closed, found, tree).f1
    assert values["inconsistent_share"] == 1 / 4
    assert values["au_prc_pooled"] == ranking.pooled_area(closed, scores)
    assert values["precision_at_3"] == ranking.precision_at(closed, scores, [3])[0]


def test_predictions_are_not_closed(tree, gold):
    leaf, closed = tree.encode([["beer"]] * 4), tree.encode([["beer"]] * 4, close=True)
    assert report(gold, leaf, tree).scores["micro_f1"] < report(gold, closed, tree).scores["micro_f1"]


def test_notes_say_what_was_done(tree, gold, found):
    notes = "\n".join(report(gold, found, tree, bootstrap=20, seed=3).notes)
    assert "Documents: 4; 1 without gold labels, 2 without predicted labels." in notes
    assert "(2 were not before)" in notes
    assert "cover 5 of 6 labels: those with a gold document here." in notes
    assert "20 samples, seed 3" in notes


def test_training_indicator_is_closed_upward_for_the_macro_mean(tree, gold, found):
    training = tree.encode([["beer"], ["beer"]])
    judged = report(gold, found, tree, training=training, macro="both")
    assert judged.macro_labels == 3  # food, bars, beer
    assert "a training example" in "\n".join(judged.notes)
    counts = tree.close_matrix(training).sum(axis=0)
    assert report(gold, found, tree, training=counts, macro="both").scores == pytest.approx(judged.scores)


def test_json_is_plain_and_holds_fractions(tree, gold, found, scores):
    value = report(gold, found, tree, scores=scores, bootstrap=20, k=(2,)).to_json(per_label=True)
    again = json.loads(json.dumps(value, allow_nan=False))
    assert again == value
    assert all(0 <= score <= 1 for score in value["scores"].values())
    assert {"precision_at_2", "ndcg_at_2"} <= set(value["scores"])
    assert set(value["intervals"]) == {"micro_f1", "macro_f1", "example_f1"}
    assert [level["name"] for level in value["levels"]] == ["L1", "L2", "L3"]
    assert [third["name"] for third in value["popularity"]] == ["P1", "P2", "P3"]
    assert value["per_label"][0] == {
        "label": "food", "support": 2, "predicted": 1, "true_positives": 1, "precision": 1.0, "recall": 0.5,
        "f1": pytest.approx(2 / 3),
    }  # fmt: skip


def test_undefined_scores_are_null_in_json_and_a_dash_in_tables(tree):
    empty = tree.encode([[], []])
    judged = report(empty, empty, tree, scores=np.zeros((2, 6)), bootstrap=5)
    value = judged.to_json()
    json.dumps(value, allow_nan=False)
    assert value["scores"]["macro_f1"] is None
    assert value["scores"]["example_f1"] == 1
    assert "| Macro-F1 | – | – – – |" in judged.to_markdown()


def test_label_scores_are_only_in_json_if_asked_for(tree, gold, found):
    assert "per_label" not in report(gold, found, tree).to_json()


def test_markdown_shows_percent(tree):
    sets = tree.encode([["beer"], ["shops"]], close=True)
    text = report(sets, sets, tree).to_markdown()
    assert text.startswith("| Metric | % |\n| :-- | --: |\n")
    assert "| Micro-F1 | 100.00 |" in text
    assert "| L1 | 2 | 2 | 100.00 | 100.00 |" in text
    assert "- Macro means cover" in text


def test_table_shows_what_markdown_shows(tree, gold, found):
    judged = report(gold, found, tree, bootstrap=20)
    text = rendered(judged.table())
    for piece in ("Micro-F1", "Example-based F1 (EBF)", "L3", "P3", "95% interval", "closed upward"):
        assert piece in text


def test_every_score_has_a_name_for_people(tree, gold, found, scores):
    values = report(gold, found, tree, scores=scores).scores
    assert all(name_of(name) for name in values)
    assert set(NAMES) <= set(values)


def test_scores_that_are_no_probabilities_are_ranked_but_not_calibrated(tree, gold, found, scores):
    judged = report(gold, found, tree, scores=scores * 3)
    assert "au_prc_macro" in judged.scores
    assert not any("calibration" in name or "brier" in name for name in judged.scores)
    assert any("no probabilities" in note for note in judged.notes)


def test_lca_scores_can_be_left_out(tree, gold, found):
    assert not any(name.startswith("lca") for name in report(gold, found, tree, lca=False).scores)


def test_the_same_seed_gives_the_same_intervals_and_another_seed_others(tree):
    rng = np.random.default_rng(0)
    gold, found = rng.random((50, 6)) < 0.4, rng.random((50, 6)) < 0.4
    first, again, other = (report(gold, found, tree, bootstrap=50, seed=s).intervals for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_taxonomy_of_one_label_and_one_document_is_enough():
    taxonomy = Taxonomy.of({"A": []})
    assert report([[1]], [[1]], taxonomy, scores=[[0.9]]).scores["micro_f1"] == 1


def test_comparison_is_shown_in_percent_with_both_names(tree, gold, found):
    result = compare(gold, found, tree.close_matrix(gold), tree, names=("a|b", "ours"), samples=50, permutations=50)
    text = result.to_markdown()
    assert "| Metric | a\\|b | ours | difference | 95% interval | p |" in text
    assert "| Micro-F1 | 54.55 | 100.00 | +45.45 |" in text
    assert "EBF" in rendered(result.table())
    value = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert value["systems"] == ["a|b", "ours"]
    assert value["differences"]["micro_f1"]["difference"] == pytest.approx(5 / 11)
