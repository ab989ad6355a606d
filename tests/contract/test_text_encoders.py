"""What a classifier promises, with each of the text encoders in a small form."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import hilap
from hilap import HiLAPClassifier
from hilap.errors import ModelError
from hilap.storage import load_folder, save_folder
from tests.contract.classifiers import TREE, texts

OPTIONS = {
    "textcnn": {"preset": "light", "filters": 8, "dimensions": 6},
    "han": {"preset": "light", "hidden": 4, "dimensions": 6},
    "bowcnn": {"preset": "light", "filters": 8, "pools": 2, "regions": (2, 5)},
    "wordgraph": {"preset": "light", "nodes": 12, "maps": [8, 8], "span": 2, "hidden": [8], "dimensions": 6},
}
VARIANTS = {
    "flat": {"variant": "flat"},
    "sl": {"variant": "sl"},
    "paper": {},
    "residual": {"preset": "residual", "folds": 2, "flat_epochs": 3, "rollouts": 2},
}
_fitted: dict[tuple[str, str], HiLAPClassifier] = {}


def made(name: str, variant: str = "paper", **changes) -> HiLAPClassifier:
    small = {"hidden": 12, "width": 5, "supervised_epochs": 3, "reinforced_epochs": 2, "batch_size": 16}
    given = {"learning_rate": 0.01, "encoder": name, "encoder_options": OPTIONS[name], **small, **VARIANTS[variant]}
    return HiLAPClassifier(TREE, **{**given, **changes})


def fitted(name: str, variant: str = "paper") -> HiLAPClassifier:
    if (name, variant) not in _fitted:
        _fitted[name, variant] = made(name, variant).fit(*texts())
    return _fitted[name, variant]


def unseen(n: int = 60) -> list[str]:
    random = np.random.default_rng(1)
    vocabulary = ["beer", "bar.", "Wine", "cellar", "law", "court!", "some", "stranger", "é"]
    return [" ".join(random.choice(vocabulary, random.integers(0, 40))) for _ in range(n)]


def same_answers(one, other, X) -> None:
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert np.array_equal(one.predict(X).toarray(), other.predict(X).toarray())


each = pytest.mark.parametrize("name", OPTIONS)
each_variant = pytest.mark.parametrize("variant", VARIANTS)


@each
@each_variant
def test_saving_changes_nothing(name, variant, tmp_path):
    fitted(name, variant).save(tmp_path / "model")
    opened = hilap.load(tmp_path / "model")
    same_answers(fitted(name, variant), opened, unseen())
    opened.save(tmp_path / "again")
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("model", "again"))
    assert one == two


@each
def test_an_opened_classifier_can_be_trained_again(name, tmp_path):
    fitted(name).save(tmp_path / "model")
    same_answers(hilap.load(tmp_path / "model").fit(*texts()), fitted(name), unseen())


@each
@each_variant
@settings(max_examples=8)
@given(rows=st.lists(st.integers(0, 299), min_size=1, max_size=40))
def test_a_document_is_answered_alike_alone_and_in_any_company(name, variant, rows):
    X, classifier = unseen(300), fitted(name, variant)
    chances, sets = _answers_of_all(name, variant)
    chosen = [X[row] for row in rows]
    assert np.array_equal(classifier.predict_proba(chosen), chances[rows])
    assert np.array_equal(classifier.predict(chosen).toarray(), sets[rows])
    assert np.array_equal(classifier.predict_proba(chosen[:1])[0], chances[rows[0]])


_all: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}


def _answers_of_all(name: str, variant: str) -> tuple[np.ndarray, np.ndarray]:
    if (name, variant) not in _all:
        X, classifier = unseen(300), fitted(name, variant)
        _all[name, variant] = classifier.predict_proba(X), classifier.predict(X).toarray()
    return _all[name, variant]


@each
def test_the_same_seed_gives_the_same_model_and_another_seed_another(name):
    same_answers(fitted(name), made(name).fit(*texts()), unseen())
    other = made(name, seed=1).fit(*texts())
    assert not np.array_equal(fitted(name).predict_proba(unseen()), other.predict_proba(unseen()))


@each
def test_an_encoder_may_be_given_as_an_object(name, tmp_path):
    encoder = hilap.encoders.make(name, **OPTIONS[name])
    classifier = made(name, encoder=encoder, encoder_options=None).fit(*texts())
    same_answers(classifier, fitted(name), unseen())
    classifier.save(tmp_path / "model")
    same_answers(hilap.load(tmp_path / "model"), fitted(name), unseen())


@each
def test_training_leaves_the_random_numbers_of_others_alone(name):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    clone(made(name)).fit(*texts())
    assert torch.equal(torch.rand(3), expected)


@each
def test_it_learns_texts_whose_words_give_the_labels_away(name):
    X, y = texts(64)
    options = {**OPTIONS[name], "dropout": 0.0}
    classifier = made(name, "flat", encoder_options=options, flat_epochs=60).fit(X, y, valid=(X, y))
    assert classifier.score(X, y) > 0.95


@each
def test_no_documents_and_empty_ones_are_answered(name):
    assert fitted(name).predict([]).shape == (0, len(TREE))
    assert np.isfinite(fitted(name).predict_proba(["", "?!", "x" * 100_000])).all()


@each
def test_a_killed_run_goes_on_from_its_checkpoint(name, tmp_path):
    """The words are counted again, and must come out the same."""

    class KilledError(Exception):
        pass

    from hilap.training.callbacks import Callback

    class Kill(Callback):
        def on_epoch(self, record) -> None:
            if record["phase"] == "supervised" and record["epoch"] == 2:
                raise KilledError

    with pytest.raises(KilledError):
        made(name).fit(*texts(), checkpoint=tmp_path / "c", callbacks=[Kill()])
    resumed = made(name).fit(*texts(), checkpoint=tmp_path / "c", resume=True)
    same_answers(resumed, fitted(name), unseen())


@each
def test_where_a_cache_was_is_not_saved(name, tmp_path):
    options = {**made(name).encoder_options, "cache": str(tmp_path / "cache")}
    made(name).set_params(encoder_options=options).fit(*texts()).save(tmp_path / "model")
    assert not any("cache" in path.read_text() for path in (tmp_path / "model").glob("*.json"))
    assert "cache" not in hilap.load(tmp_path / "model").encoder_options


# -- models that a stranger has made ----------------------------------------------------------------------------------

KIND = ("encoders", "kinds", 0)
CHANGES = {
    "no words": lambda kind: kind["learned"].pop("words"),
    "a word more": lambda kind: kind["learned"]["words"].append("more"),
    "a word twice": lambda kind: kind["learned"]["words"].append(kind["learned"]["words"][0]),
    "a number among the words": lambda kind: kind["learned"]["words"].append(7),
    "another width": lambda kind: kind["settings"].update(
        {"filters": 9} if "filters" in kind["settings"] else {"hidden": 5}
    ),
    "a huge width": lambda kind: kind["settings"].update(
        {"filters": 10**6} if "filters" in kind["settings"] else {"hidden": 10**6}
    ),
    "a preset that is not there": lambda kind: kind["settings"].update(preset="heavy"),
    "a cache": lambda kind: kind["settings"].update(cache="somewhere"),
    "an unknown setting": lambda kind: kind["settings"].update(colour=1),
    "settings that are a list": lambda kind: kind.update(settings=[]),
    "another encoder": lambda kind: kind.update(name="tfidf"),
    "words that are an object": lambda kind: kind["learned"].update(words={"a": 1}),
}


@each
@pytest.mark.parametrize("change", CHANGES)
def test_a_model_whose_parts_do_not_fit_together_is_refused(name, change, tmp_path):
    fitted(name).save(tmp_path / "model")
    stored = load_folder(tmp_path / "model")
    extra = copy.deepcopy(stored.extra)
    CHANGES[change](extra["encoders"]["kinds"][0])
    parts = {"settings": stored.settings, "taxonomy": stored.taxonomy, "tensors": stored.tensors, "extra": extra}
    save_folder(tmp_path / "changed", kind=stored.kind, **parts)
    with pytest.raises(ModelError, match=r"do not fit together|is missing"):
        hilap.load(tmp_path / "changed")
