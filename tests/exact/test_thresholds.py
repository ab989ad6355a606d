"""Thresholds of labels' own: SCutFBR beside the procedure written out, and where a top-down system applies them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hilap.baselines import base, thresholds
from hilap.baselines.hsvm import HSVM
from hilap.baselines.svm import SVM
from hilap.baselines.td_svm import TopDownSVM
from hilap.corpus import Examples
from hilap.errors import SettingError
from hilap.taxonomy import Taxonomy


def f1(given: np.ndarray, right: np.ndarray) -> float:
    total = given.sum() + right.sum()
    return 2 * (given & right).sum() / total if total else 0.0


def scut_of_one(right: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """The best threshold between two scores, or below all, and its F1, by trying every one."""
    levels = np.unique(values)[::-1]
    cuts = [*((levels[:-1] + levels[1:]) / 2), levels[-1] - 5e-4]
    found = [f1(values > cut, right) for cut in cuts]
    best = int(np.argmax(found))
    return cuts[best], found[best]


def written_out(gold: np.ndarray, rows: np.ndarray, scores_of, label: int) -> float:
    """Fan and Lin's procedure for one label, step by step."""

    def parted(rows):
        parts = np.array_split(rows, 3)
        return [(np.concatenate([part for j, part in enumerate(parts) if j != k]), parts[k]) for k in range(3)]

    def scut(rows, fbr):
        cuts, counted = [], []
        for rest, part in parted(rows):
            values = scores_of(rest, part)[:, label]
            cut, reached = scut_of_one(gold[part, label], values)
            cuts.append(cut if reached > fbr else values.max())
            counted.append(0 < gold[rest, label].sum() < len(rest))
        return np.mean([cut for cut, counts in zip(cuts, counted, strict=True) if counts or not any(counted)])

    reached = dict.fromkeys(thresholds.FBR, 0.0)
    for rest, part in parted(rows):
        values = scores_of(rest, part)[:, label]
        for fbr in thresholds.FBR:
            reached[fbr] += f1(values > scut(rest, fbr), gold[part, label])
    most = max(reached.values())
    best = max(fbr for fbr in reached if reached[fbr] == most) if most > 0 else min(thresholds.FBR)
    return scut(rows, best)


@pytest.mark.parametrize("seed", range(6))
def test_scutfbr_is_the_procedure_written_out(seed):
    rng = np.random.default_rng([seed, 1])
    gold = rng.random((60, 5)) < [0.5, 0.2, 0.05, 0.0, 1.0]
    gold[:, 3] = np.arange(60) == 7  # one document only
    noise = rng.normal(size=(60, 5))

    def scores_of(learn, rate):  # depends on what was learned from, as a model does
        return noise[rate] + 1.5 * gold[rate] + 0.1 * np.sin(np.sort(learn).sum() + np.arange(5))

    found = thresholds.scutfbr(sparse.csr_array(gold.astype(int)), scores_of, 3, seed)
    rows = np.random.default_rng([seed, 23]).permutation(60)
    np.testing.assert_allclose(found, [written_out(gold, rows, scores_of, label) for label in range(5)], atol=1e-9)


def test_scutfbr_needs_documents_in_every_fold():
    with pytest.raises(SettingError, match="needs at least 9, got 8; take tune='scut'"):
        thresholds.scutfbr(sparse.csr_array(np.ones((8, 1), int)), lambda learn, rate: np.ones((len(rate), 1)), 3, 0)


def test_scut_finds_no_threshold_by_the_validation_documents_of_a_label_that_was_not_learned():
    gold = sparse.csr_array(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]], dtype=np.int32))
    scores = np.array([[0.0, 0.9, 0.8], [0.0, 0.3, 0.1], [0.0, 0.1, 0.1]])  # a constant, a model, a model
    seen = np.array([False, True, True])
    found = thresholds.tuned(gold, scores, "scut", lambda values: values, 0.5, seen)
    assert found == pytest.approx([0.5, 0.2, 0.8])  # none by which to find one: 0.5, unless a score is above it


def topics(n: int, seed: int, rare: bool = False) -> Examples:
    """Documents of three labels, B below A, told by their features; with `rare`, one document has label D too."""
    taxonomy = Taxonomy.of({"A": [], "B": ["A"], "C": [], "D": []})
    rng = np.random.default_rng([seed, 2])
    sets = [["B"] if kind == 0 else ["A"] if kind == 1 else ["C"] for kind in rng.integers(0, 3, size=n)]
    features = rng.normal(size=(n, 6))
    for row, labels in zip(features, sets, strict=True):
        row[0] += 1.5 * (labels != ["C"])
        row[1] += 1.5 * (labels == ["B"])
    if rare:
        sets[0] = [*sets[0], "D"]
    return Examples.of(taxonomy, sets, features=features)


@pytest.mark.parametrize("kind", [SVM, TopDownSVM])
def test_a_label_with_one_document_does_not_flood_the_predictions(kind):
    model = kind(tune="scutfbr", jobs=1).fit(topics(90, 0, rare=True), valid=topics(30, 1))
    given = model.predict(topics(100, 2)).toarray()[:, model.taxonomy_.index("D")]
    assert given.sum() <= 10


def test_a_threshold_of_a_labels_own_is_for_its_own_margin_on_the_way_down():
    model = TopDownSVM(jobs=1).fit(topics(120, 0), valid=topics(40, 1))
    a, b = model.taxonomy_.index("A"), model.taxonomy_.index("B")
    margins = np.full((4, 4), -1.0)
    margins[:, a] = [0.1, 0.1, -0.1, 0.1]
    margins[:, b] = [2.0, 0.4, 2.0, -0.2]
    model.thresholds_ = np.zeros(4)
    model.thresholds_[b] = 0.5
    found = model._chosen(margins).toarray()
    assert found[:, a].tolist() == [1, 1, 0, 1]
    assert found[:, b].tolist() == [1, 0, 0, 0]  # though the least margin on the way, 0.1, is below 0.5
    ranked = model._chances(margins)
    assert (ranked[:, b] <= ranked[:, a]).all()


def test_scut_of_a_top_down_system_looks_at_documents_of_the_parent_only():
    train, valid = topics(120, 0), topics(60, 1)
    model = TopDownSVM(jobs=1, tune="scut").fit(train, valid=valid)
    b = model.taxonomy_.index("B")
    inside = valid.labels.toarray()[:, model.taxonomy_.index("A")] > 0
    margins = model._scores(valid)[inside, b]
    cut, _ = scut_of_one(valid.labels.toarray()[inside, b] > 0, margins)
    assert model.thresholds_[b] == pytest.approx(cut)


@pytest.mark.parametrize("kind", [SVM, TopDownSVM, HSVM])
def test_sets_are_the_same_however_many_documents_are_scored_at_a_time(kind, monkeypatch):
    model, asked = kind().fit(topics(90, 0), valid=topics(30, 1)), topics(50, 2)
    whole, score = model.predict(asked), model.score(asked)
    monkeypatch.setattr(base, "MOST_SCORES", 28)  # seven documents
    parts = model.predict(asked)
    assert isinstance(parts, sparse.csr_array)
    assert parts.dtype == whole.dtype
    assert np.array_equal(parts.toarray(), whole.toarray())
    assert model.score(asked) == score


def test_thresholds_are_tried_where_scores_lie_after_repair():
    """Margins of labels that all documents of a parent have are constants; on the way down they lie elsewhere."""
    rng = np.random.default_rng(0)
    gold = sparse.csr_array((rng.random((200, 2)) < [0.3, 0.3]).astype(np.int32))
    own = gold.toarray()[:, 0] + rng.normal(size=200)
    margins = np.column_stack([own, np.full(200, 1000.0)])  # the second label is passed freely, below the first
    both = np.ones(2, dtype=bool)
    found = thresholds.tuned(gold, margins, "micro_f1", lambda values: np.minimum(values, values[:, :1]), 0.0, both)[0]
    sets = np.repeat((own > found)[:, None], 2, axis=1)
    every = [np.repeat((own > cut)[:, None], 2, axis=1) for cut in own]
    best = max(thresholds.score_sets(gold, one, "micro_f1") for one in every)
    assert thresholds.score_sets(gold, sets, "micro_f1") == pytest.approx(best, abs=0.01)
