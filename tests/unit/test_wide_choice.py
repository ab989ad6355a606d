"""The choice of a linear part: is the best one taken, is it the part its settings say, and can it be trained on?"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy import sparse

import hilap
from hilap import HiLAPClassifier
from hilap.decoding import shortfalls
from hilap.errors import ModelError, SettingError
from hilap.metrics.flat import example, macro, micro
from hilap.taxonomy import Taxonomy
from hilap.training import choice, phases
from hilap.training.choice import Kind, choose, kinds, start_score
from hilap.training.scoring import ROUGH_RESIDUAL, THRESHOLDS
from hilap.wide import cross_fit
from tests.unit.test_wide import SMALL, TREE, folds_of, texts

DAG = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
EVERY = [
    Kind("squared_hinge", 0.5, condense=False),
    Kind("squared_hinge", 0.5, condense=True),
    Kind("structured", 1.0, condense=True),
]


def problem(n=60, seed=0):
    rng = np.random.default_rng(seed)
    rows = sparse.csr_array(np.where(rng.random((n, 15)) < 0.4, rng.random((n, 15)), 0).astype(np.float32))
    sets = [[name for name, value in zip("bcd", row, strict=False) if value > 0.3] for row in rows.toarray()]
    return rows, DAG.encode(sets, close=True)


def chosen(choices, **more):
    rows, labels = problem()
    options = {"repeats": 2, "taxonomy": DAG, "averaging": "logits", "metric": "mean", "judged": np.arange(60)}
    return choose(rows, labels, folds_of(60, 3, 2), choices, **{**options, **more})


def test_the_start_of_a_walk_is_judged_by_the_best_bias_of_all_that_are_tried():
    rng = np.random.default_rng(3)
    logits, gold = torch.from_numpy(rng.normal(size=(30, 4)).astype(np.float32)), problem(30)[1]

    def score(sets):
        return np.mean([metric(gold, sets).f1 for metric in (micro, macro, example)])

    def lifted(values):  # of the diamond a > b, c > d, by hand
        high = values.copy()
        high[:, 1] = np.maximum(high[:, 1], high[:, 3])
        high[:, 2] = np.maximum(high[:, 2], high[:, 3])
        high[:, 0] = high.max(axis=1)
        return high

    flat = logits.numpy()
    threshold = max(THRESHOLDS, key=lambda t: score(1 / (1 + np.exp(-flat)) > t))
    stop = np.log(threshold / (1 - threshold))
    short = shortfalls(flat, gold, stop, DAG, lift=True)
    constants = {c: score(lifted(flat) > stop + c) for c in ROUGH_RESIDUAL["constant"]}
    best = max(sorted(constants, key=abs), key=constants.__getitem__)
    expected = max(score(lifted(flat + n * short) > stop + best) for n in ROUGH_RESIDUAL["count"])
    assert start_score(logits, gold, DAG, "mean") == pytest.approx(expected)


@pytest.mark.parametrize("wanted", EVERY, ids=lambda kind: f"{kind.loss}-{kind.condense}")
def test_the_best_part_is_taken_and_is_what_its_settings_say(wanted, monkeypatch):
    scores = {kind: 0.2 + 0.1 * (kind == wanted) for kind in EVERY}
    given = iter(EVERY)
    monkeypatch.setattr(choice, "start_score", lambda *_, **__: scores[next(given)])
    made = chosen(EVERY)
    assert made.kind == wanted
    assert made.scores == scores
    rows, labels = problem()
    named = cross_fit(
        *(rows, labels, folds_of(60, 3, 2)),
        repeats=2,
        strength=wanted.strength,
        loss=wanted.loss,
        taxonomy=DAG,
        condense=wanted.condense,
    )
    for part in ("weight", "bias", "honest"):
        np.testing.assert_array_equal(getattr(made.found, part), getattr(named, part))


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [
        ((0.50, 0.509, 0.509), 0),
        ((0.50, 0.509, 0.511), 2),
        ((0.50, 0.52, 0.521), 2),
        ((0.50, 0.52, 0.519), 1),
        ((0.50, 0.49, 0.48), 0),
    ],
)
def test_what_is_condensed_has_to_be_better_by_a_point(scores, wanted, monkeypatch):
    given = iter(scores)
    monkeypatch.setattr(choice, "start_score", lambda *_, **__: next(given))
    assert chosen(EVERY).kind == EVERY[wanted]


def test_it_is_judged_on_the_documents_that_are_named(monkeypatch):
    seen = []

    def judge(logits, labels, *_, **__):
        seen.append((len(logits), labels.shape))
        return 0

    monkeypatch.setattr(choice, "start_score", judge)
    assert chosen(EVERY, judged=np.arange(5, 25)).kind == EVERY[0]
    assert seen == [(20, (20, 4))] * 3


def test_logits_are_judged_as_they_will_be_read(monkeypatch):
    seen = []
    monkeypatch.setattr(choice, "start_score", lambda logits, *_, **__: seen.append(logits.numpy()) or 0)
    chosen(EVERY)
    for logits, kind in zip(seen, EVERY, strict=True):
        above = logits[:, [1, 2, 3, 3]] - logits[:, [0, 0, 1, 2]]  # children over parents
        assert (above.max() <= 1e-5) == kind.condense


def test_what_there_is_to_choose_from():
    assert kinds(0.5, may_condense=True, weights=1, pairs=1) == EVERY
    assert kinds(0.5, may_condense=True, weights=choice.MOST_TOGETHER + 1, pairs=1) == EVERY[:2]
    assert kinds(0.5, may_condense=True, weights=1, pairs=choice.MOST_CONDENSED + 1) == EVERY[:1]
    assert kinds(0.5, may_condense=False, weights=1, pairs=1) == EVERY[:1]
    assert kinds(1e6, may_condense=True, weights=1, pairs=1)[2].strength == 1e6  # the most that settings allow


def test_only_what_is_taken_says_that_it_did_not_settle(monkeypatch):
    real = choice.solved

    def unsettled(*given, loss, **more):
        warnings.warn(loss, UserWarning, stacklevel=1)
        return real(*given, loss=loss, **more)

    monkeypatch.setattr(choice, "solved", unsettled)
    for wanted in EVERY:
        given = iter(EVERY)
        monkeypatch.setattr(choice, "start_score", lambda *_, given=given, w=wanted, **__: 0.5 * (next(given) == w))
        with warnings.catch_warnings(record=True) as heard:
            chosen(EVERY)
        assert [str(one.message) for one in heard] == [wanted.loss]


@pytest.mark.parametrize("wanted", EVERY, ids=lambda kind: f"{kind.loss}-{kind.condense}")
def test_a_model_with_a_chosen_part_is_that_with_the_part_named(wanted, monkeypatch, tmp_path):
    documents, labels = texts()
    forced(monkeypatch, wanted)
    short = {**SMALL, "wide_strength": 0.5}
    made = HiLAPClassifier(TREE, **short, wide_loss="chosen").fit(documents, labels)
    named = {**SMALL, "wide_loss": wanted.loss, "wide_strength": wanted.strength, "condense": wanted.condense}
    other = HiLAPClassifier(TREE, **named).fit(documents, labels)
    assert made.train_settings_ == other.train_settings_
    assert made.policy_settings_ == other.policy_settings_
    np.testing.assert_array_equal(made.predict_proba(documents), other.predict_proba(documents))
    np.testing.assert_array_equal(made.predict(documents).toarray(), other.predict(documents).toarray())
    made.save(tmp_path / "model")
    again = hilap.load(tmp_path / "model")
    assert again.train_settings_.wide_loss == wanted.loss
    np.testing.assert_array_equal(again.predict_proba(documents), made.predict_proba(documents))


class KilledError(RuntimeError):
    """As by Ctrl-C."""


class Kill(hilap.training.callbacks.Callback):
    def __init__(self, phase):
        self.phase = phase

    def on_epoch(self, record):
        if (record["phase"], record["epoch"]) == (self.phase, 2):
            raise KilledError


def forced(monkeypatch, wanted):
    """That part alone to choose from."""
    real = choice.choose
    monkeypatch.setattr(phases, "choose", lambda *given, **more: real(*given[:3], [wanted], **more))


BESIDE = {**SMALL, "encoder": "tfidf", "encoder_options": {"hidden": (5,)}, "flat_epochs": 2, "reinforced_epochs": 3}


@pytest.mark.parametrize("phase", ["flat 2/3", "reinforced"])
@pytest.mark.parametrize("wanted", EVERY, ids=lambda kind: f"{kind.loss}-{kind.condense}")
def test_a_run_that_chooses_is_resumed_to_the_same(wanted, phase, monkeypatch, tmp_path):
    forced(monkeypatch, wanted)
    documents, labels = texts()
    settings = {**BESIDE, "wide_loss": "chosen"}
    whole = HiLAPClassifier(TREE, **settings).fit(documents, labels)
    place = tmp_path / "run.checkpoint"
    with pytest.raises(KilledError):
        HiLAPClassifier(TREE, **settings).fit(documents, labels, checkpoint=place, callbacks=[Kill(phase)])
    resumed = HiLAPClassifier(TREE, **settings).fit(documents, labels, checkpoint=place, resume=True)
    assert resumed.train_settings_ == whole.train_settings_
    np.testing.assert_array_equal(resumed.predict_proba(documents), whole.predict_proba(documents))


def test_a_run_that_would_choose_otherwise_now_is_not_resumed(monkeypatch, tmp_path):
    documents, labels = texts()
    settings, place = {**BESIDE, "wide_loss": "chosen"}, tmp_path / "run.checkpoint"
    forced(monkeypatch, EVERY[2])
    with pytest.raises(KilledError):
        HiLAPClassifier(TREE, **settings).fit(documents, labels, checkpoint=place, callbacks=[Kill("reinforced")])
    forced(monkeypatch, EVERY[0])
    with pytest.raises(ModelError, match=r"it was written with other settings .*wide_loss 'structured' instead of"):
        HiLAPClassifier(TREE, **settings).fit(documents, labels, checkpoint=place, resume=True)


def test_who_borrows_members_has_the_part_that_they_learned_beside(monkeypatch):
    documents, labels = texts()
    forced(monkeypatch, EVERY[2])
    lender = HiLAPClassifier(TREE, **BESIDE, wide_loss="chosen").fit(documents, labels)
    forced(monkeypatch, EVERY[0])
    borrower = HiLAPClassifier(TREE, **BESIDE, wide_loss="chosen").fit(documents, labels, members=lender)
    assert borrower.train_settings_ == lender.train_settings_
    assert borrower.policy_settings_ == lender.policy_settings_
    np.testing.assert_array_equal(borrower.predict_proba(documents), lender.predict_proba(documents))


def test_where_there_is_no_linear_part_members_of_another_preset_can_be_borrowed():
    documents, labels = texts()
    plain = {**BESIDE, "wide": False}
    lender = HiLAPClassifier(TREE, **{**plain, "preset": "recommended"}).fit(documents, labels)
    borrower = HiLAPClassifier(TREE, **plain).fit(documents, labels, members=lender)
    for one, other in zip(borrower.network_.members, lender.network_.members, strict=True):
        assert torch.equal(one.head.weight, other.head.weight)


def test_the_flat_models_alone_choose_the_same_part():
    documents, labels = texts()
    whole, flat = (
        HiLAPClassifier(TREE, preset="recommended", folds=3, reinforced_epochs=1, variant=variant).fit(
            documents, labels
        )
        for variant in ("hilap", "flat")
    )
    for name in ("wide_loss", "wide_strength"):
        assert getattr(whole.train_settings_, name) == getattr(flat.train_settings_, name)
    assert whole.policy_settings_.condense == flat.policy_settings_.condense
    np.testing.assert_array_equal(whole.network_.wide.weight.numpy(), flat.network_.wide.weight.numpy())


def test_without_any_labels_no_part_is_better_than_another():
    nothing = DAG.encode([[]] * 5)
    assert start_score(torch.zeros(5, 4), nothing, DAG, "mean") == 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"condense": True},
            "condense is chosen with the wide part, as wide_loss='chosen' says; leave it out, or name",
        ),
        ({"wide": False}, "wide_loss is of the wide part, which is not there"),
    ],
)
def test_what_contradicts_a_choice_is_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        HiLAPClassifier(TREE, **{**SMALL, "encoder": "tfidf", "wide_loss": "chosen", **settings}).check()


def test_a_max_constraint_leaves_one_part_to_choose():
    documents, labels = texts()
    made = HiLAPClassifier(TREE, **SMALL, wide_loss="chosen", max_constraint=True).fit(documents, labels)
    assert (made.train_settings_.wide_loss, made.policy_settings_.condense) == ("squared_hinge", False)
