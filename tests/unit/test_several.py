"""Several encoders at once, and encoders of a user's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import hilap
from hilap import HiLAPClassifier
from hilap.corpus.examples import Examples
from hilap.encoders import ENCODERS, MLP, ModuleEncoder, Several, Static, TfIdf, make, restore
from hilap.encoders.base import parameter_rates
from hilap.errors import CorpusError, ModelError, SettingError
from hilap.taxonomy import Taxonomy

TAXONOMY = Taxonomy.of({"a": [], "b": []})
TEXTS = ["craft beer", "a court of law", "craft law", "beer at court"] * 3


def documents(**columns):
    rows = np.random.default_rng(0).normal(size=(len(TEXTS), 4)).astype(np.float32)
    given = {"texts": TEXTS, "features": rows, **columns}
    return Examples.of(TAXONOMY, [["a"], ["b"]] * (len(TEXTS) // 2), **given)


def seeded():
    return torch.Generator().manual_seed(0)


# -- several ----------------------------------------------------------------------------------------------------------


def test_vectors_stand_side_by_side_in_the_order_of_the_parts():
    examples = documents()
    both = Several([TfIdf(hidden=5), {"encoder": "mlp", "options": {"hidden": 3}}]).fit(examples, generator=seeded())
    source = seeded()
    alone = [part.fit(examples, generator=source) for part in (TfIdf(hidden=5), MLP(hidden=3))]
    rows = np.array([3, 0, 7])
    found = both(both.prepare(examples).batch(rows))
    expected = torch.cat([part(part.prepare(examples).batch(rows)) for part in alone], dim=1)
    assert torch.equal(found, expected)
    assert both.dim == 8


def test_parts_read_what_they_need_and_say_what_is_missing():
    both = Several(["tfidf", "mlp"])
    assert both.reads == ("texts", "features")
    assert Several(["hashed"]).reads == ("texts",)
    with pytest.raises(CorpusError, match="the mlp encoder reads features, but these documents have none"):
        both.fit(documents(features=None), generator=seeded())
    with pytest.raises(CorpusError, match="the tfidf encoder reads texts, but these documents have none"):
        both.fit(documents(texts=None), generator=seeded())


def test_a_trained_classifier_says_which_input_is_missing():
    made = HiLAPClassifier(encoder="several", variant="flat", flat_epochs=1).fit(documents())
    with pytest.raises(CorpusError, match=r"mlp encoder reads features, .*; give their features .* --features names"):
        made.predict(TEXTS)
    with pytest.raises(CorpusError, match=r"tfidf encoder reads texts, .*; give their texts .* --text names"):
        made.predict(documents(texts=None))


def test_a_classifier_learns_from_both_inputs(tmp_path):
    """Each label depends on one of the inputs alone: together they do far better than either."""
    random = np.random.default_rng(1)
    texts = [random.choice(["craft beer", "a court"]) for _ in range(160)]
    rows = random.normal(size=(160, 3)).astype(np.float32)
    labels = [
        [*(["a"] if "beer" in text else []), *(["b"] if row[0] > 0 else [])]
        for text, row in zip(texts, rows, strict=True)
    ]
    examples = Examples.of(TAXONOMY, labels, texts=texts, features=rows)
    shape = {"variant": "flat", "flat_epochs": 15, "learning_rate": 0.02, "hidden": 8, "width": 4}
    parts = [{"encoder": kind, "options": {"hidden": 16}} for kind in ("tfidf", "mlp")]
    scores = {}
    for name, mine in {"texts": parts[:1], "features": parts[1:], "both": parts}.items():
        made = HiLAPClassifier(encoder="several", encoder_options={"parts": mine}, **shape).fit(examples)
        scores[name] = made.score(examples)
    assert scores["both"] > max(scores["texts"], scores["features"]) + 0.15
    assert made.n_features_in_ == 3
    made.save(tmp_path / "m")
    assert np.array_equal(hilap.load(tmp_path / "m").predict_proba(examples), made.predict_proba(examples))


def test_learning_rates_of_parts_are_found_in_a_network():
    class Slow(MLP):
        name = "slow"

        def rates(self):
            return {"layers.weights": 0.25}

    examples = documents()
    both = Several([MLP(hidden=3), Slow(hidden=3)]).fit(examples, generator=seeded())
    network = nn.ModuleDict({"encoder": both, "head": nn.Linear(6, 2)})
    slow = both.encoders[1].layers.weights
    assert {*parameter_rates(network)} == {*slow}
    assert set(parameter_rates(network).values()) == {0.25}
    assert both.rates() == {"parts.1.layers.weights": 0.25}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "parts must be a list of encoders, at least 1 and at most 20"),
        ("tfidf", "parts must be a list"),
        (["tfidf"] * 21, "parts must be a list"),
        (["tfidff"], "there is no encoder 'tfidff'; did you mean 'tfidf'"),
        ([{"encoder": "mlp", "hidden": 3}], "a part must be such as"),
        ([{"options": {}}], "a part must be such as"),
        ([{"encoder": "mlp", "options": 3}], "a part must be such as"),
        ([{"encoder": "mlp", "options": {"hiden": 3}}], "the mlp encoder has no setting 'hiden'"),
        (["several"], "a part must be one encoder"),
    ],
)
def test_a_setting_that_cannot_be_is_said(parts, message):
    with pytest.raises(SettingError, match=message):
        make("several", parts=parts)


@pytest.mark.parametrize(
    ("settings", "learned", "message"),
    [
        ({}, {}, "settings of 'parts' and has learned as many"),
        ({"parts": ["mlp"]}, {"parts": [{}]}, "has 'encoder' and 'options'"),
        ({"parts": [{"encoder": "several", "options": {}}]}, {"parts": [{}]}, "is one itself"),
        ({"parts": [{"encoder": "mlp", "options": {}}]}, {"parts": []}, "has learned as many"),
        ({"parts": [{"encoder": "mlp", "options": {}}]}, {"parts": [{}]}, "an mlp encoder has learned 'features'"),
    ],
)
def test_a_model_whose_parts_do_not_fit_is_told(settings, learned, message):
    with pytest.raises(ModelError, match=message):
        restore("several", settings, learned)


# -- one's own --------------------------------------------------------------------------------------------------------


class Sums(ModuleEncoder):
    name = "sums"

    def __init__(self, width: int = 6) -> None:
        super().__init__(width=width)

    def tensor(self, examples):
        return torch.tensor([[float(len(text)), 1.0] for text in examples.texts])

    def module(self):
        return nn.Linear(2, self.options["width"])


def test_the_module_of_ones_own_is_what_encodes():
    examples = documents()
    encoder = Sums(4).fit(examples, generator=seeded())
    found = encoder(encoder.prepare(examples).batch(np.array([2, 1])))
    lengths = torch.tensor([[float(len(TEXTS[2])), 1.0], [float(len(TEXTS[1])), 1.0]])
    assert torch.equal(found, encoder.inner(lengths))
    assert encoder.settings() == {"width": 4}
    assert encoder.dim == 4


def test_a_module_or_a_tensor_of_the_wrong_shape_is_told():
    class Flat(Sums):
        def module(self):
            return nn.Flatten(0)

    class Few(Sums):
        def tensor(self, examples):
            return torch.zeros(1, 2)

    class Lists(Sums):
        def tensor(self, examples):
            return [[0.0, 1.0] for _ in examples.texts]

    with pytest.raises(ModelError, match=r"must give one vector for each document.*it gave shape \(2,\)"):
        Flat().fit(documents(), generator=seeded())
    encoder = Few().fit(documents(), generator=seeded())
    with pytest.raises(ModelError, match=r"must give a row for each of the 12 documents, got \(1, 2\)"):
        encoder.prepare(documents())
    with pytest.raises(ModelError, match="got list"):
        Lists().fit(documents(), generator=seeded())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            nn.Linear(2, 3),
            r"a torch module \(Linear\) is no encoder by itself; a subclass of hilap.encoders.ModuleEncoder",
        ),
        (nn.Linear, r"a torch module \(Linear\) is no encoder by itself; a subclass of hilap.encoders.ModuleEncoder"),
        (Sums, r"an encoder is needed, got its class Sums; write Sums\(\.\.\.\)"),
        (7, r"there is no encoder 7; there are: mlp, "),
        (
            "zzz",
            r"there is no encoder 'zzz'; there are: .*; one of your own .* \(on the command line: --import MODULE\)",
        ),
    ],
)
def test_what_is_no_encoder_is_told_what_makes_it_one(given, message):
    for use in (make, lambda encoder: HiLAPClassifier(encoder=encoder).check(), lambda encoder: Several([encoder])):
        with pytest.raises(SettingError, match=message) as caught:
            use(given)
        assert len(str(caught.value).splitlines()) == 1


def test_a_model_of_ones_own_encoder_opens_once_it_is_in_the_table(tmp_path, monkeypatch):
    examples = documents()
    made = HiLAPClassifier(encoder=Sums(5), variant="flat", flat_epochs=1).fit(examples)
    made.save(tmp_path / "m")
    with pytest.raises(
        ModelError, match=r"there is no encoder 'sums' here; .* command line: --import MODULE\)"
    ) as caught:
        hilap.load(tmp_path / "m")
    assert "do not fit together" not in str(caught.value)
    monkeypatch.setitem(ENCODERS, "sums", Sums)
    assert np.array_equal(hilap.load(tmp_path / "m").predict_proba(examples), made.predict_proba(examples))
    with pytest.raises(ModelError, match="the sums encoder cannot be made from its settings"):
        restore("sums", {"width": "wide"}, {"dim": 5})
    wrong = restore("sums", {"width": 5}, {"dim": 4})
    with pytest.raises(ModelError, match=r"gave shape \(2, 5\) for 2 documents, needed is \(2, 4\)"):
        wrong(torch.zeros(2, 2))
    with pytest.raises(ModelError, match="a sums encoder has learned 'dim'"):
        restore("sums", {"width": 5}, {})


def test_frozen_static_vectors_need_no_learning_rate():
    assert Static().rates() == {}
    assert Static(tune=True, rate=0.5).rates() == {"table": 0.5}
