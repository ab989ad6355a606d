"""The neural baselines: that they learn, keep the best epoch, resume, save, and open no stranger's model blindly."""

from __future__ import annotations

import contextlib
import copy
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from hilap.baselines import learning, neural
from hilap.baselines.c_hmcnn import CHMCNN
from hilap.baselines.conditional import Conditional
from hilap.baselines.flat import Flat
from hilap.baselines.heads import FeatureRows
from hilap.baselines.hmcn import HMCN
from hilap.baselines.judging import F1S, SELECTS, Judge
from hilap.baselines.learning import Course, Learning
from hilap.corpus import Examples
from hilap.corpus.datasets import load
from hilap.encoders import make
from hilap.errors import ModelError, SettingError
from hilap.metrics.ranking import pooled_area
from hilap.storage import Stored, load_folder, read_checkpoint, save_folder, write_checkpoint
from hilap.taxonomy import Taxonomy

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": [], "f": ["e"], "never": ["e"]})
DAG = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d", "a"], "f": [], "never": ["f"]})
LEAVES = {"tree": ["d", "c", "f"], "dag": ["e", "f", "b"]}
TAXONOMIES = {"tree": TREE, "dag": DAG}
NET = {"hidden": (9,), "dropout": 0.0}
SMALL = {"encoder": "mlp", "encoder_options": NET, "batch_size": 16, "learning_rate": 0.02, "epochs": 4}
KINDS = {
    "flat": (Flat, {}),
    "conditional": (Conditional, {"adjust": 0.5}),
    "c-hmcnn": (CHMCNN, {}),
    "hmcn-f": (HMCN, {"hidden": 16, "dropout": 0.2}),
    "hmcn-r": (HMCN, {"hidden": 10, "form": "R", "order": "sum-sigmoid", "objective": "final", "encoder": "rows"}),
}
CONSISTENT = ("conditional", "c-hmcnn")


def make_one(name: str, taxonomy: Taxonomy | None = TREE, **changes):
    kind, own = KINDS[name]
    settings = {**SMALL, **own, **changes}
    if settings["encoder"] == "rows":
        settings.pop("encoder_options")
    return kind(taxonomy, **settings)


def documents(kind: str = "tree", n: int = 60, seed: int = 0) -> tuple[np.ndarray, list[list[str]]]:
    rng = np.random.default_rng([seed, 5])
    features = rng.normal(size=(n, 6)).astype(np.float32)
    labels = [[leaf for k, leaf in enumerate(LEAVES[kind]) if row[k] > 0.3] for row in features]
    features[rng.random(features.shape) < 0.03] = np.nan
    return features, labels


_fitted: dict[tuple[str, str], object] = {}


def fitted(name: str, kind: str = "tree"):
    if (name, kind) not in _fitted:
        _fitted[name, kind] = make_one(name, TAXONOMIES[kind]).fit(*documents(kind))
    return _fitted[name, kind]


def kept(model) -> dict:
    """The record of the epoch whose weights the model has: the best, of equals the one with the lowest loss."""
    return max(model.history_, key=lambda record: (record["select"], -record["validation_loss"]))


def weights(model) -> dict[str, torch.Tensor]:
    return model.network_.state_dict()


def same_weights(one, other) -> None:
    assert weights(one).keys() == weights(other).keys()
    assert all(torch.equal(value, weights(other)[name]) for name, value in weights(one).items())


@pytest.fixture(params=KINDS)
def name(request) -> str:
    return request.param


@pytest.fixture(params=TAXONOMIES)
def kind(request) -> str:
    return request.param


# -- learning ---------------------------------------------------------------------------------------------------------


def test_each_learns_what_features_give_away(name, kind):
    X, y = documents(kind, n=200)
    made = make_one(name, TAXONOMIES[kind], epochs=25, tune="example_f1").fit(X, y)
    rest = documents(kind, n=200, seed=1)
    assert made.score(*rest) > 0.8
    constant = make_one(name, TAXONOMIES[kind], epochs=1, learning_rate=1e-9, tune="example_f1").fit(X, y)
    assert constant.score(*rest) < 0.7


def test_each_learns_what_words_give_away(name):
    words = {"d": "beer bar", "c": "wine cellar", "f": "law court"}
    sets = [[label for k, label in enumerate(words) if (i >> k) & 1] for i in range(96)]
    texts = [" ".join(["some", *(words[label] for label in labels)]) for labels in sets]
    made = make_one(name, TREE, encoder="tfidf", encoder_options={"hidden": (16,)}, epochs=25).fit(texts, sets)
    assert made.score(texts, sets) > 0.9


def test_probabilities_and_sets_of_the_coherent_ones_fit_together(kind):
    for name in CONSISTENT:
        for tune in (None, "mean", "scut"):
            made = make_one(name, TAXONOMIES[kind], tune=tune).fit(*documents(kind))
            X = documents(kind, n=100, seed=2)[0]
            chances, taxonomy = made.predict_proba(X), TAXONOMIES[kind]
            edges = taxonomy.parent_matrix.tocoo()
            assert (chances[:, edges.row] <= chances[:, edges.col]).all()
            assert not taxonomy.inconsistent_rows(made.predict(X)).any()


def test_thresholds_of_their_own_for_each_label_need_the_repair(kind):
    """So that the test above can fail: without it, labels are given whose parents are not."""
    found = []
    for seed in range(5):
        made = make_one("c-hmcnn", TAXONOMIES[kind], tune="scut", seed=seed).fit(*documents(kind))
        made.repair = None
        found.append(TAXONOMIES[kind].inconsistent_rows(made.predict(documents(kind, n=200, seed=2)[0])).any())
    assert any(found)


@pytest.mark.parametrize("select", SELECTS)
def test_the_kept_epoch_is_the_best_by_what_was_asked(select):
    X, y = documents(n=80)
    made = make_one("flat", select=select, tune="mean", epochs=8).fit(X, y)
    best = kept(made)
    assert [record["epoch"] for record in made.history_] == list(range(1, 9))
    for metric in ("example_f1", "micro_f1"):
        assert best[metric] == pytest.approx(made.validation_.scores[metric])
    if select in (*F1S, "au_prc"):
        assert best["select"] == best[select]
    if select == "mean":
        assert best["select"] == pytest.approx(np.mean([best[metric] for metric in F1S]))


def test_the_loss_that_chooses_an_epoch_is_that_of_the_validation_documents():
    (X, y), rest = documents(n=80), documents(n=30, seed=3)
    made = make_one("flat", select="loss", epochs=3).fit(X, y, valid=rest)
    best = kept(made)
    gold, chances = TREE.encode(rest[1], close=True).toarray(), made.predict_proba(rest[0]).astype(np.float64)
    literal = -(gold * np.log(chances) + (1 - gold) * np.log(1 - chances)).mean()
    assert best["validation_loss"] == -best["select"] == pytest.approx(literal, rel=1e-5)


def test_the_epoch_is_judged_at_its_own_threshold_and_by_scut_if_asked():
    X, y = documents(n=80)
    for changes in ({"threshold": 0.2}, {"tune": "scut"}, {"tune": "scut", "repair": "add"}, {"repair": "drop"}):
        made = make_one("flat", epochs=3, **changes).fit(X, y)
        best = kept(made)
        assert best["example_f1"] == pytest.approx(made.validation_.scores["example_f1"])


@pytest.mark.parametrize("tune", [None, "mean", "scut", "scutfbr"])
def test_a_label_that_no_training_document_has_is_given_at_no_threshold(name, tune, tmp_path):
    X, y = documents(n=60)
    valid, gold = documents(n=30, seed=1)
    tempting = [[*labels, "never"] if "f" in labels else labels for labels in gold]  # "e" is above both
    made = make_one(name, tune=tune, epochs=2).fit(X, y, valid=(valid, tempting))
    made.save(tmp_path / "m")
    opened, repaired = type(made).load(tmp_path / "m"), made.with_decoding(repair="add")
    for one in (made, opened, repaired, made.with_decoding(threshold=0)):
        assert not one.predict(valid).toarray()[:, TREE.index("never")].any()
    if tune != "scutfbr":  # and epochs are judged by what will be given
        assert kept(made)["micro_f1"] == pytest.approx(made.validation_.scores["micro_f1"])


def test_scutfbr_trains_its_further_models_and_ends_with_a_threshold_for_each_label(monkeypatch):
    judges = []
    monkeypatch.setattr(neural, "Judge", lambda **facts: judges.append(facts) or Judge(**facts))
    made = make_one("flat", tune="scutfbr", epochs=2).fit(*documents(n=60))
    assert len(np.unique(made.thresholds_)) > 1
    assert len(made.history_) == 2
    assert [facts["tune"] for facts in judges] == ["scutfbr"] * 16  # all choose their epoch in the same way


def test_a_parameter_that_is_given_wins_over_the_preset_and_the_preset_over_what_all_share():
    model = CHMCNN(TREE, preset="paper-funcat")
    assert (model.setting("batch_size"), model.setting("learning_rate"), model.setting("select")) == (4, 1e-4, "au_prc")
    assert CHMCNN(TREE, preset="paper-funcat", batch_size=8).setting("batch_size") == 8
    assert CHMCNN(TREE).setting("clip") is None
    hidden = {p: CHMCNN(TREE, preset=p)._encoder("features").settings()["hidden"] for p in CHMCNN.PRESETS}
    assert hidden == {"default": [1000, 1000], "paper-funcat": [500, 500], "paper-go": [1000, 1000]}
    small = Flat(TREE, encoder_options={"hidden": (3,)})._encoder("features").settings()
    assert (small["hidden"], small["dropout"]) == ([3], 0.7)
    assert HMCN(TREE)._encoder("features").name == "rows"
    assert [HMCN(TREE, preset=p).setting("order") for p in HMCN.PRESETS] == ["sigmoid-sum", "sum-sigmoid"]
    assert HMCN(TREE, preset="hilap", order="sigmoid-sum", dropout=0.1).setting("dropout") == 0.1


def test_the_presets_network_stays_where_its_encoder_is_named():
    def settings_of(documents="features", **changes):
        encoder = CHMCNN(TREE, preset="paper-funcat", **changes)._encoder(documents)
        return {key: value for key, value in encoder.settings().items() if key in ("hidden", "dropout", "standardise")}

    assert settings_of(encoder="mlp") == settings_of() == {"hidden": [500, 500], "dropout": 0.7, "standardise": True}
    small = settings_of(encoder="mlp", encoder_options={"hidden": (3,)})
    assert small == {"hidden": [3], "dropout": 0.7, "standardise": True}
    assert settings_of(encoder="rows") == {"standardise": True}  # another one takes nothing of it
    assert settings_of(encoder=make("mlp", hidden=(4,)))["dropout"] == 0.0
    one, other = (
        CHMCNN(TREE, preset="paper-funcat", encoder=encoder, encoder_options={"hidden": (5,)}, epochs=1, refit=False)
        for encoder in (None, "mlp")
    )
    same_weights(one.fit(*documents()), other.fit(*documents()))


@pytest.mark.parametrize(
    ("kind", "preset"), [(Flat, "paper"), (Flat, "deep"), (CHMCNN, "paper-funcat"), (CHMCNN, "paper-go")]
)
@pytest.mark.parametrize("encoder", [None, "tfidf"])
def test_a_preset_that_is_made_for_features_is_refused_for_texts(kind, preset, encoder):
    says = (
        f"^preset='{preset}' of {kind.kind} is made for features, but these documents are texts; take "
        r"preset='default', and give beside it what you want of the other, such as epochs or learning_rate$"
    )
    with pytest.raises(SettingError, match=says):
        kind(TREE, preset=preset, encoder=encoder).fit(["beer bar", "court law"] * 5, [["d"], ["f"]] * 5)


@pytest.mark.parametrize(
    ("kind", "preset"), [(Flat, "default"), (CHMCNN, "default"), (HMCN, "default"), (HMCN, "hilap")]
)
def test_the_other_presets_are_for_texts_too(kind, preset):
    texts, sets = ["beer bar", "court law"] * 10, [["d"], ["f"]] * 10
    made = kind(TREE, preset=preset, encoder_options={"hidden": (5,)}, epochs=1).fit(texts, sets)
    assert made.network_.encoder.settings()["dropout"] == 0.0  # a preset's network is one for features


@pytest.mark.parametrize(("adjust", "expected"), [(0.0, 0.2), (1.0, 0.5)])
def test_adjusted_logits_leave_out_how_frequent_a_label_is(adjust, expected):
    """Features that say nothing: what is learned is the share of documents that have a label, or nothing at all."""
    X, y = np.zeros((100, 2), dtype=np.float32), [["a"] if i % 5 == 0 else ["e"] for i in range(100)]
    made = make_one("conditional", adjust=adjust, epochs=60, select="loss", weight_decay=0.0)
    chances = made.fit(X, y, valid=(X, y)).predict_proba(X[:1])[0]
    assert chances[TREE.index("a")] == pytest.approx(expected, abs=0.03)
    assert chances[TREE.index("e")] == pytest.approx(1 - expected if adjust == 0 else 0.5, abs=0.03)


def test_clipped_gradients_and_weight_decay_change_what_is_learned():
    X, y = documents()
    plain = fitted("flat")
    for changes in ({"clip": 1e-3}, {"weight_decay": 0.1}):
        other = make_one("flat", **changes).fit(X, y)
        assert not np.array_equal(other.predict_proba(X), plain.predict_proba(X))


def test_batches_of_one_document_are_legal_with_batch_normalisation(name):
    X, y = documents(n=9)
    made = make_one(name, batch_size=1, epochs=1).fit(X, y)
    assert np.isfinite(made.predict_proba(X)).all()


def test_documents_without_labels_teach_to_give_none(name):
    X, y = documents(n=24)[0], [[] for _ in range(24)]
    changes = {"adjust": 0.0} if name == "conditional" else {}  # adjusted logits leave out that labels are rare
    made = make_one(name, epochs=30, patience=30, **changes).fit(X, y, valid=(X, y))
    assert made.score(X, y) == 1
    assert np.isfinite(make_one(name).fit(X, y).predict_proba(X)).all()


def test_missing_values_are_taken_as_the_mean_of_training(name):
    X, y = documents()
    made = make_one(name).fit(X, y, valid=(X, y))
    rows = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    holes = rows.copy()
    holes[:, 2] = np.nan
    rows[:, 2] = np.nanmean(X[:, 2].astype(np.float64))
    np.testing.assert_allclose(made.predict_proba(holes), made.predict_proba(rows), atol=1e-5)


def test_sparse_and_dense_features_agree(name):
    X, y = documents()
    dense = np.where(np.random.default_rng(2).random(X.shape) < 0.5, 0, np.nan_to_num(X)).astype(np.float32)
    options = {"standardise": False, **({} if name == "hmcn-r" else NET)}
    kind, own = KINDS[name]
    settings = {**SMALL, **own, "encoder_options": options, "epochs": 2}
    from_dense = kind(TREE, **settings).fit(dense, y)
    assert np.array_equal(from_dense.predict_proba(sparse.csr_array(dense)), from_dense.predict_proba(dense))
    from_sparse = kind(TREE, **settings).fit(sparse.csr_array(dense), y)
    np.testing.assert_allclose(from_sparse.predict_proba(dense), from_dense.predict_proba(dense), atol=2e-2)


def test_training_leaves_the_random_numbers_of_others_alone(name):
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - numpy's global state is what is asked about
    expected = torch.rand(3), np.random.random(3)  # noqa: NPY002
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    make_one(name, epochs=1).fit(*documents(n=30))
    assert torch.equal(torch.rand(3), expected[0])
    assert np.array_equal(np.random.random(3), expected[1])  # noqa: NPY002


def test_the_same_seed_gives_the_same_model_and_another_seed_another(name):
    X, y = documents()
    same_weights(fitted(name), make_one(name).fit(X, y))
    assert not np.array_equal(fitted(name).predict_proba(X), make_one(name, seed=2**70).fit(X, y).predict_proba(X))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kind", TAXONOMIES)
@settings(max_examples=5)
@given(rows=st.lists(st.integers(0, 299), min_size=1, max_size=40))
def test_a_document_is_answered_alike_alone_and_in_any_company(name, kind, rows):
    made, X = fitted(name, kind), documents(kind, n=300, seed=6)[0]
    if (name, kind, "all") not in _fitted:
        _fitted[name, kind, "all"] = made.predict_proba(X)
    together = _fitted[name, kind, "all"]
    assert np.array_equal(made.predict_proba(X[rows]), together[rows])
    assert np.array_equal(made.predict_proba(X[rows[:1]])[0], together[rows[0]])


def test_no_document_gets_no_answer(name):
    assert fitted(name).predict(np.zeros((0, 6), dtype=np.float32)).shape == (0, len(TREE))


def test_scikit_learn_can_clone_and_search(name):
    X, y = documents()
    other = clone(fitted(name))
    assert not hasattr(other, "network_")
    search = GridSearchCV(make_one(name, epochs=1), {"batch_size": np.array([8, 24])}, cv=2, error_score="raise")
    assert search.fit(X, TREE.encode(y, close=True)).best_params_["batch_size"] in (8, 24)


# -- checkpoints ------------------------------------------------------------------------------------------------------


def broken_off(monkeypatch, model, data, path, after: int) -> None:
    """Train until this many checkpoints are written, then be interrupted."""
    written = []

    def write(*args):
        write_checkpoint(*args)
        written.append(args)
        if len(written) == after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(learning, "write_checkpoint", write)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*data, checkpoint=path)


def test_a_run_that_was_broken_off_ends_as_an_unbroken_one(name, tmp_path, monkeypatch):
    data, path = documents(), tmp_path / "checkpoint.safetensors"
    changes = {"epochs": 5, "tune": "mean", "encoder": "mlp", "encoder_options": {"hidden": (9,), "dropout": 0.5}}
    unbroken = make_one(name, **changes).fit(*data)
    broken_off(monkeypatch, make_one(name, **changes), data, path, after=2)
    assert len(read_checkpoint(path)[1]["standing"]["history"]) == 2
    resumed = make_one(name, **changes).fit(*data, checkpoint=path, resume=True)
    same_weights(resumed, unbroken)

    def scores(model) -> list[dict]:
        return [{k: v for k, v in record.items() if k != "seconds"} for record in model.history_]

    assert scores(resumed) == scores(unbroken)
    again = make_one(name, **changes).fit(*data, checkpoint=path, resume=True)  # there is nothing left to do
    same_weights(again, unbroken)
    assert scores(again) == scores(unbroken)


def test_patience_counts_on_across_a_break(tmp_path, monkeypatch):
    data, path = documents(), tmp_path / "c.safetensors"
    changes = {"epochs": 30, "patience": 2, "learning_rate": 1e-9, "threshold": 0.99}
    unbroken = make_one("flat", **changes).fit(*data)
    assert len(unbroken.history_) == 3  # the first is as good as those after it
    broken_off(monkeypatch, make_one("flat", **changes), data, path, after=2)
    resumed = make_one("flat", **changes).fit(*data, checkpoint=path, resume=True)
    assert len(resumed.history_) == 3


def test_resuming_without_a_checkpoint_starts_anew_and_without_its_name_is_an_error(tmp_path):
    data = documents()
    made = make_one("flat").fit(*data, checkpoint=tmp_path / "new.safetensors", resume=True)
    same_weights(made, fitted("flat"))
    with pytest.raises(SettingError, match=r"resume needs the checkpoint .* give checkpoint="):
        make_one("flat").fit(*data, resume=True)


def test_a_checkpoint_that_is_there_is_not_overwritten(tmp_path):
    path = tmp_path / "c.safetensors"
    make_one("flat").fit(*documents(), checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ModelError, match=r"c\.safetensors: there is a checkpoint already; go on .* or remove it"):
        make_one("flat", seed=1).fit(*documents(), checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "data", "says"),
    [
        ({"seed": 1}, {}, "another settings"),
        ({"epochs": 5}, {}, "another settings"),
        ({"encoder_options": {**NET, "hidden": (8,)}}, {}, "another encoder"),
        ({}, {"seed": 1}, "another training data"),
        ({}, {"labels": True}, "another training data"),
        ({"taxonomy": Taxonomy.of({**{label: TREE.parents(label) for label in TREE}, "x": []})}, {}, "taxonomy"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(changes, data, says, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    valid = documents(seed=9)
    make_one("flat").fit(*documents(), valid=valid, checkpoint=path)
    X, y = documents(seed=data.get("seed", 0))
    if "labels" in data:
        y = [*y[:-1], ["f"]] if y[-1] != ["f"] else [*y[:-1], ["c"]]
    with pytest.raises(ModelError, match=f"checkpoint.safetensors: it was written with {says}|another {says}"):
        make_one("flat", **changes).fit(X, y, valid=valid, checkpoint=path, resume=True)


def test_the_method_is_part_of_what_a_checkpoint_must_agree_with(tmp_path):
    path = tmp_path / "c.safetensors"
    make_one("flat").fit(*documents(), checkpoint=path)
    with pytest.raises(ModelError, match="written with another method"):
        make_one("hmcn-f").fit(*documents(), checkpoint=path, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors, state: state.pop("standing"),
        lambda tensors, state: state.pop("identity"),
        lambda tensors, state: state["standing"].update(epochs_done="many"),
        lambda tensors, state: state["standing"].update(epochs_done=99),
        lambda tensors, state: state["standing"].update(history=[1, 2, 3, 4]),
        lambda tensors, state: state["standing"].update(surprise=1),
        lambda tensors, state: tensors.pop("weights/head.output.weight"),
        lambda tensors, state: tensors.update({"best/head.output.bias": torch.zeros(2)}),
        lambda tensors, state: tensors.pop("optimizer/0/exp_avg"),
        lambda tensors, state: tensors.update({"optimizer/0/exp_avg": torch.zeros(2)}),
        lambda tensors, state: tensors.update({"optimizer/77/step": torch.tensor(1.0)}),
        lambda tensors, state: tensors.update({"optimizer/x/step": torch.tensor(1.0)}),
    ],
)
def test_a_checkpoint_whose_parts_do_not_fit_is_refused(change, tmp_path):
    path = tmp_path / "c.safetensors"
    make_one("flat").fit(*documents(), checkpoint=path)
    tensors, state = read_checkpoint(path)
    change(tensors, state)
    write_checkpoint(path, tensors, state)
    with pytest.raises(ModelError, match=r"c\.safetensors: this is no checkpoint of such a run; train anew"):
        make_one("flat").fit(*documents(), checkpoint=path, resume=True)


def test_of_equal_epochs_the_one_with_the_lowest_loss_is_kept_and_patience_counts_from_the_first():
    weight = torch.nn.Linear(1, 1, bias=False)
    seen = []
    scores = iter([(0.1, 1.0), (0.5, 3.0), (0.5, 2.0), (0.5, 2.5), (0.4, 0.1), (0.9, 9.0)])

    def judge() -> dict[str, float]:
        seen.append(weight.weight.item())
        return dict(zip(("select", "validation_loss"), next(scores), strict=True))

    run = Learning(
        weight, Course(6, 4, 0.5, 0.0, None, 3, 0), "x", 8, lambda rows: (weight.weight - 3).square().sum(), judge
    )
    assert len(run.run()) == 5  # epoch 2 was the best, and three came after it
    assert weight.weight.item() == seen[2] not in (seen[1], seen[4])


def test_a_loss_that_is_no_number_ends_training_with_advice():
    weight = torch.nn.Linear(1, 1)
    course = Course(3, 4, 0.5, 0.0, None, None, 0)
    run = Learning(
        weight,
        course,
        "x",
        8,
        lambda rows: weight.weight.sum() * torch.nan,
        lambda: {"select": 0.0, "validation_loss": 0.0},
    )
    with pytest.raises(ModelError, match=r"in epoch 1 the loss is no longer a number; take a lower learning_rate"):
        run.run()


def test_parameters_with_a_share_of_the_learning_rate_move_by_that_share():
    """Adam's first step is the learning rate, whatever the gradient: so the shares can be read off it."""

    class Halved(FeatureRows):
        name = "halved"

        def _build(self, n_features: int, is_sparse: bool) -> None:
            super()._build(n_features, is_sparse)
            self.scale = torch.nn.Parameter(torch.ones(n_features))

        def forward(self, batch):
            return super().forward(batch) * self.scale

        def rates(self) -> dict[str, float]:
            return {"scale": 0.5}

    X, y = documents()
    X = np.nan_to_num(X)
    made = make_one("flat", encoder=Halved(), encoder_options=None, epochs=1, batch_size=100, weight_decay=0.0)
    made.fit(X, y, valid=(X, y))
    moved = (made.network_.encoder.scale.detach() - 1).abs()
    assert moved.numpy() == pytest.approx(np.full(6, 0.01), rel=1e-3)  # half of 0.02


# -- saving -----------------------------------------------------------------------------------------------------------


def test_a_saved_model_says_the_same_to_the_last_bit_and_can_be_trained_again(name, kind, tmp_path):
    made, X = fitted(name, kind), documents(kind, n=30, seed=4)[0]
    made.save(tmp_path / "m")
    opened = type(made).load(tmp_path / "m")
    assert np.array_equal(opened.predict_proba(X), made.predict_proba(X))
    assert np.array_equal(opened.predict(X).toarray(), made.predict(X).toarray())
    assert opened.history_ == made.history_
    assert opened.n_features_in_ == 6
    opened.save(tmp_path / "again")
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("m", "again"))
    assert one == two
    same_weights(opened.fit(*documents(kind)), made)


def test_an_encoder_that_was_given_as_an_object_comes_back_as_one(tmp_path):
    made = make_one("flat", encoder=make("mlp", hidden=(7,)), encoder_options=None).fit(*documents())
    made.save(tmp_path / "m")
    opened = Flat.load(tmp_path / "m")
    assert opened.encoder.settings()["hidden"] == [7]
    same_weights(opened, made)
    rows = HMCN(TREE, encoder=FeatureRows(standardise=False), hidden=4, epochs=1).fit(*documents())
    rows.save(tmp_path / "rows")
    assert HMCN.load(tmp_path / "rows").encoder.settings() == {"standardise": False}


@pytest.fixture(scope="module", params=["c-hmcnn", "hmcn-r"])
def stored(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    fitted(request.param, "dag").save(folder)
    return load_folder(folder)


def opened(stored, folder, change):
    """The model after a change that its hashes know of: as a stranger could make it."""
    parts = {
        "settings": copy.deepcopy(stored.settings),
        "taxonomy": copy.deepcopy(stored.taxonomy),
        "tensors": dict(stored.tensors),
        "extra": copy.deepcopy(stored.extra),
    }
    change(parts)
    save_folder(folder, kind=stored.kind, **parts)
    return {"c-hmcnn": CHMCNN, "hmcn": HMCN}[stored.kind].load(folder)


def put(*path, to):
    def change(parts):
        place = parts
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def cut(*path):
    def change(parts):
        place = parts
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


def first(stored) -> str:
    return next(name for name in stored.tensors if name.endswith("weight"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: put("tensors", first(s), to=torch.zeros(2, 2)), "of shape (2, 2), needed is"),
        (lambda s: put("tensors", first(s), to=s.tensors[first(s)].double()), "torch.float64"),
        (lambda s: cut("tensors", first(s)), "is missing"),
        (lambda s: put("tensors", "more", to=torch.zeros(1)), "do not fit together"),
        (lambda s: cut("extra", "learned", "encoder"), "'encoder' is missing"),
        (lambda s: cut("extra", "learned", "encoder", "settings"), "'settings' is missing"),
        (lambda s: put("extra", "learned", "encoder", "name", to="mpl"), "there is no encoder 'mpl'"),
        (lambda s: put("extra", "learned", "encoder", "learned", to=3), "do not fit together"),
        (lambda s: put("extra", "learned", "encoder", "learned", "features", to=-1), "do not fit together"),
        (lambda s: put("settings", "parameters", "epochs", to="all"), "epochs must be"),
        (lambda s: put("settings", "parameters", "shell", to="rm"), "has no parameter 'shell'"),
        (lambda s: put("settings", "parameters", "encoder", to={"name": "mlp", "settings": 3}), "cannot be made"),
        (lambda s: put("settings", "parameters", "encoder", to={"name": "x", "settings": {}}), "cannot be made"),
        (lambda s: put("settings", "parameters", "encoder", to={}), "cannot be made"),
        (lambda s: put("settings", "parameters", to=3), "do not fit together"),
    ],
)
def test_a_model_whose_parts_do_not_belong_together_gets_one_clear_error(stored, tmp_path, change, says):
    with pytest.raises(ModelError, match=re.escape(says)):
        opened(stored, tmp_path / "m", change(stored))


def test_no_memory_is_taken_for_layers_that_the_file_does_not_have(tmp_path):
    """A layer of a million by a million would be four terabytes."""
    fitted("hmcn-f", "dag").save(tmp_path / "m")
    change = put("settings", "parameters", "hidden", to=1_000_000)
    with pytest.raises(ModelError, match=r"tensor 'head\.flow.* needed is"):
        opened(load_folder(tmp_path / "m"), tmp_path / "changed", change)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25)
@given(facts=JSON, place=st.sampled_from(["all", "name", "settings", "learned"]))
def test_any_json_in_the_place_of_what_was_learned_gives_only_our_errors(facts, place):
    model = fitted("hmcn-r", "dag")
    tensors, good = model._stored()
    whole = facts if place == "all" else {"encoder": {**good["encoder"], place: facts}}
    parameters = {k: v for k, v in model.get_params(deep=False).items() if v is not None and k != "taxonomy"}
    validation = model.validation_.to_json(per_label=True)
    training = {
        "documents": 1,
        "label_counts": [0] * 7,
        "thresholds": [0.5] * 7,
        "sigmoid": None,
        "history": [],
    }
    extra = {"training": training, "learned": whole, "validation": validation}
    folder = Stored("x", "hmcn", "0", {"parameters": parameters}, DAG.to_json(), tensors, extra)
    with contextlib.suppress(ModelError):
        HMCN.from_stored(folder)


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "changes", "says"),
    [
        (Flat, {"epochs": 0}, "epochs must be a whole number, at least 1, got 0"),
        (Flat, {"batch_size": 2.5}, "batch_size must be a whole number"),
        (Flat, {"learning_rate": "fast"}, "learning_rate must be a number above 0, got 'fast'"),
        (Flat, {"weight_decay": -1}, "weight_decay must be a number, at least 0"),
        (Flat, {"clip": 0}, "clip must be a number above 0"),
        (Flat, {"patience": 0}, "patience must be a whole number"),
        (Flat, {"select": "accuracy"}, "select must be one of 'example_f1'"),
        (Flat, {"preset": "best"}, "preset must be one of 'default', 'paper', 'deep', got 'best'"),
        (Flat, {"encoder": "mpl"}, "there is no encoder 'mpl'; did you mean 'mlp'?"),
        (Flat, {"encoder": "mlp", "encoder_options": {"hiden": 3}}, "has no setting 'hiden'"),
        (Flat, {"encoder_options": 3}, "encoder_options must be names with values, got 3"),
        (Flat, {"encoder_options": {"min_dff": 3}}, "has no setting 'min_dff'"),
        (Conditional, {"adjust": -0.5}, "adjust must be a number, at least 0"),
        (Conditional, {"repair": None}, "repair must be one of 'drop', 'add', got None"),
        (CHMCNN, {"repair": None}, "repair must be one of 'drop', 'add', got None"),
        (CHMCNN, {"preset": "paper"}, "preset must be one of 'default', 'paper-funcat', 'paper-go'"),
        (HMCN, {"form": "G"}, "form must be one of 'F', 'R', got 'G'"),
        (HMCN, {"order": "sum"}, "order must be one of 'sigmoid-sum', 'sum-sigmoid'"),
        (HMCN, {"objective": "all"}, "objective must be one of 'parts', 'final'"),
        (HMCN, {"hidden": 0}, "hidden must be a whole number, at least 1"),
        (HMCN, {"hidden": 10**9}, "hidden must be at most 1,000,000"),
        (HMCN, {"dropout": 1.0}, "dropout must be a number from 0 to below 1"),
        (HMCN, {"beta": 1.5}, "beta must be a number from 0 to 1"),
        (HMCN, {"penalty": -1}, "penalty must be a number, at least 0"),
        (HMCN, {"batch_norm": "yes"}, "batch_norm must be True or False"),
    ],
)
def test_a_bad_parameter_gets_one_clear_sentence(kind, changes, says):
    with pytest.raises(SettingError, match="^" + re.escape(says) if says[0] != "h" else re.escape(says)):
        kind(TREE, **changes).fit(*documents())


def test_rows_have_no_layers_to_set():
    with pytest.raises(SettingError, match="the rows encoder has no setting 'hidden'"):
        HMCN(TREE, encoder_options={"hidden": (3,)}).fit(*documents())


def test_rows_are_the_standardised_features_dense_or_sparse():
    X = np.array([[1.0, 0.0, 5.0], [3.0, 2.0, 5.0], [0.0, np.nan, 5.0]], dtype=np.float32)
    generator = torch.Generator().manual_seed(0)
    examples = Examples.of(TREE, [[]] * 3, features=X)
    encoder = FeatureRows().fit(examples, generator=generator)
    found = encoder(encoder.prepare(examples).batch(np.arange(3))).numpy()
    filled = np.where(np.isnan(X), np.nanmean(X, 0), X)[:, :2]
    np.testing.assert_allclose(found[:, :2], (filled - filled.mean(0)) / np.nanstd(X[:, :2], 0), rtol=1e-5)
    assert not found[:, 2].any()
    assert not [*encoder.parameters()]
    thin = Examples.of(TREE, [[]] * 3, features=sparse.csr_array(np.nan_to_num(X)))
    encoder = FeatureRows(standardise=False).fit(thin, generator=generator)
    rows = encoder(encoder.prepare(thin).batch(np.array([2, 0])))
    np.testing.assert_array_equal(rows[:, :2].numpy(), np.nan_to_num(X)[[2, 0], :2])


# -- real data --------------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_the_max_constraint_holds_on_the_gene_ontology(data_folder):
    from hilap.levels import Levels

    taxonomy = load("go", data_folder / "go")["valid"].taxonomy
    values = np.random.default_rng(0).random((8, len(taxonomy)))
    found = Levels(taxonomy).highest(values)
    reach = taxonomy.descendant_matrix
    for label in np.random.default_rng(1).choice(len(taxonomy), 200, replace=False):
        members = reach.indices[reach.indptr[label] : reach.indptr[label + 1]]
        np.testing.assert_array_equal(found[:, label], values[:, members].max(1))


@pytest.mark.slow  # six minutes
@pytest.mark.data
def test_the_area_of_c_hmcnn_as_its_authors_train_it_comes_close_to_the_published_one(data_folder):
    """Giunchiglia and Lukasiewicz (2020), cellcycle of FunCat; the pooled area as they take it: average precision."""
    parts = load("funcat", data_folder / "funcat")
    made = CHMCNN(preset="paper-funcat").fit(parts["train"], valid=parts["valid"])
    assert made.n_documents_ == len(parts["train"]) + len(parts["valid"])
    area = pooled_area(parts["test"].labels, made.predict_proba(parts["test"]))
    assert area == pytest.approx(0.255, abs=0.01)


@pytest.mark.parametrize("method", ["c-hmcnn", "hmcn-r", "flat", "conditional"])
def test_refit_trains_on_all_documents_for_as_many_epochs_as_were_best_and_keeps_thresholds(method):
    train, valid = documents(n=60), documents(n=30, seed=7)
    options = {"tune": "mean", "epochs": 4, "select": "au_prc"}
    plain = make_one(method, **options).fit(*train, valid=valid)
    anew = make_one(method, **options, refit=True).fit(*train, valid=valid)
    assert np.array_equal(plain.thresholds_, anew.thresholds_)
    assert plain.validation_.scores == anew.validation_.scores
    both = np.concatenate([train[0], valid[0]]), [*train[1], *valid[1]]
    by_hand = make_one(method, epochs=kept(plain)["epoch"], select="loss").fit(*both, valid=both)
    assert kept(by_hand)["epoch"] == kept(plain)["epoch"]  # its loss falls to the end
    same_weights(anew, by_hand)
    assert np.isnan(both[0]).any()  # and their means are those of all documents
    with pytest.raises(SettingError, match="refit must be True or False, got 3"):
        make_one(method, refit=3).check()


def test_a_refitted_model_tells_what_it_learned_from_and_how_well_it_did_before(tmp_path):
    train, valid = documents(n=60), documents(n=30, seed=7)
    plain = make_one("c-hmcnn").fit(*train, valid=valid)
    anew = make_one("c-hmcnn", refit=True).fit(*train, valid=valid)
    anew.save(tmp_path)
    counts = np.asarray(TREE.encode([*train[1], *valid[1]], close=True).sum(0)).ravel()
    for model in (anew, CHMCNN.load(tmp_path)):
        assert (plain.n_documents_, model.n_documents_) == (60, 90)
        assert np.array_equal(model.label_counts_, counts)
        assert model.validation_.to_json(per_label=True) == plain.validation_.to_json(per_label=True)
        assert model.validation_.documents == 30
