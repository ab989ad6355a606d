"""TextCNN, HAN and bow-CNN: what they learn, keep and say; the contract that all encoders share."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from hilap.corpus.examples import Examples
from hilap.encoders import make, restore
from hilap.encoders.text import TextEncoder
from hilap.errors import CorpusError, ModelError, SettingError
from hilap.taxonomy import Taxonomy

TEXTS = [
    "Craft beer, craft rum and jerk chicken. Craft it!",
    "Jerk chicken & plantain; craft beer on tap. Beer.",
    "A lawyer for tax law. A tax office? Yes",
    "",
    "Tax law and craft " * 30,
]
SMALL = {
    "textcnn": {"filters": 6, "dimensions": 4, "dropout": 0.0},
    "han": {"hidden": 3, "dimensions": 4},
    "bowcnn": {"filters": 6, "pools": 3, "dropout": 0.0},
}
each = pytest.mark.parametrize("name", SMALL)


def documents(texts=TEXTS):
    return Examples.of(Taxonomy.of({"a": []}), [[]] * len(texts), texts=texts)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def small(name, **options):
    return make(name, **{**SMALL[name], **options})


def encoded(encoder, examples=None):
    examples = examples or documents()
    encoder.eval()
    with torch.no_grad():
        return encoder(encoder.prepare(examples).batch(np.arange(len(examples))))


# -- what every encoder promises --------------------------------------------------------------------------------------


@each
def test_weights_come_from_the_generator_alone(name):
    before = torch.random.get_rng_state()
    first = encoded(small(name).fit(documents(), generator=seeded(1)))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(3)
    assert torch.equal(encoded(small(name).fit(documents(), generator=seeded(1))), first)
    assert not torch.equal(encoded(small(name).fit(documents(), generator=seeded(2))), first)


@each
def test_fit_starts_anew(name):
    encoder = small(name).fit(documents(["other words"]), generator=seeded(5))
    first = encoded(small(name).fit(documents(), generator=seeded(1)))
    assert torch.equal(encoded(encoder.fit(documents(), generator=seeded(1))), first)


@each
def test_a_sibling_is_what_fit_would_have_made(name):
    encoder = small(name).fit(documents(), generator=seeded(1))
    sibling = encoder.sibling(documents(), generator=seeded(2))
    assert torch.equal(encoded(sibling), encoded(small(name).fit(documents(), generator=seeded(2))))
    assert torch.equal(encoded(encoder), encoded(small(name).fit(documents(), generator=seeded(1))))


@each
def test_a_restored_encoder_gives_the_same_bits(name):
    encoder = small(name).fit(documents(), generator=seeded())
    settings, learned = json.loads(json.dumps([encoder.settings(), encoder.learned()]))
    again = restore(name, settings, learned)
    again.load_state_dict({key: tensor.clone() for key, tensor in encoder.state_dict().items()})
    assert (again.dim, again.settings(), again.learned()) == (encoder.dim, encoder.settings(), encoder.learned())
    assert torch.equal(encoded(again), encoded(encoder))


@each
def test_restoring_touches_no_random_numbers(name):
    encoder = small(name).fit(documents(), generator=seeded())
    before = torch.random.get_rng_state()
    restore(name, encoder.settings(), encoder.learned())
    assert torch.equal(torch.random.get_rng_state(), before)


@each
@pytest.mark.parametrize("tuned", [True, False])
def test_gradients_reach_every_weight(name, tuned):
    options = {} if name == "bowcnn" else {"tune_vectors": tuned}
    encoder = small(name, **options).fit(documents(), generator=seeded())
    vectors = encoder(encoder.prepare(documents()).batch(np.arange(len(TEXTS))))
    (vectors * torch.randn(vectors.shape, generator=seeded(1))).sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in encoder.parameters())
    if name != "bowcnn":
        assert ("word_vectors.weight" in dict(encoder.named_parameters())) == tuned
        assert "word_vectors.weight" in encoder.state_dict()


@each
def test_dropout_works_in_training_only(name):
    plain = encoded(small(name).fit(documents(), generator=seeded()))
    noisy = small(name, dropout=0.5).fit(documents(), generator=seeded())
    assert torch.equal(encoded(noisy), plain)
    noisy.train()
    batch = noisy.prepare(documents()).batch(np.arange(len(TEXTS)))
    assert not torch.equal(noisy(batch), noisy(batch))


@each
def test_no_documents_and_documents_without_words_are_fine(name):
    encoder = small(name).fit(documents(), generator=seeded())
    nothing = encoder.prepare(documents()).batch(np.arange(0))
    assert encoder(nothing).shape == (0, encoder.dim)
    with torch.no_grad():
        assert encoder(nothing).shape == (0, encoder.dim)
    assert len(encoder.prepare(documents([]))) == 0
    for found in (encoded(encoder, documents(["", "?!", " "])), encoder(encoder.prepare(documents([""])).batch([0]))):
        assert torch.isfinite(found).all()
        assert torch.equal(found, found[:1].expand_as(found))


@each
def test_a_very_long_text_is_read_as_far_as_its_first_words(name):
    encoder = small(name).fit(documents(), generator=seeded())
    long = "craft beer. " * 128
    found = encoded(
        encoder, documents([long, long + "tax law " * 500_000, "\n" * 300_000 + long, long + " \n" * 300_000])
    )
    assert torch.equal(found, found[:1].expand_as(found))


@each
def test_a_row_that_is_not_there_is_an_index_error(name):
    prepared = small(name).fit(documents(), generator=seeded()).prepare(documents())
    with pytest.raises(IndexError):
        prepared.batch(np.array([len(TEXTS)]))


@each
def test_a_batch_moves_to_a_device(name):
    batch = small(name).fit(documents(), generator=seeded()).prepare(documents()).batch(np.arange(3)).to("meta")
    parts = [part for part in (batch.tokens, batch.starts, batch.begins) if part is not None]
    assert {part.device.type for part in parts} == {"meta"}
    assert len(parts) == (3 if name == "han" else 2)
    assert len(batch) == 3


@each
def test_labels_are_never_looked_at(name):
    examples = documents()
    blind = Examples(None, examples.ids, examples.labels, examples.texts, None)
    object.__setattr__(blind, "labels", None)
    encoded(small(name).fit(blind, generator=seeded()), blind)


# -- presets and settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "preset", "dim"),
    [
        ("textcnn", "paper", 3000),
        ("textcnn", "light", 300),
        ("bowcnn", "paper", 10_000),
        ("bowcnn", "light", 1000),
        ("han", "paper", 100),
        ("han", "light", 50),
    ],
)
def test_presets_have_their_sizes_and_the_papers_is_the_default(name, preset, dim):
    encoder = make(name, preset=preset)
    assert encoder.settings()["vocabulary"] == 30_000
    assert encoder.fit(documents(), generator=seeded()).dim == dim
    assert make(name).settings() == make(name, preset="paper").settings()


def test_the_papers_sizes():
    textcnn, han, bowcnn = (make(name).settings() for name in ("textcnn", "han", "bowcnn"))
    assert (textcnn["kernels"], textcnn["filters"], textcnn["dimensions"]) == ([3, 4, 5], 1000, 50)
    assert (bowcnn["regions"], bowcnn["filters"], bowcnn["pools"]) == ([20], 1000, 10)
    assert (han["hidden"], han["dimensions"]) == (50, 50)
    assert {settings["max_words"] for settings in (textcnn, han, bowcnn)} == {256}


@each
def test_what_is_given_goes_before_the_preset(name):
    assert make(name, preset="light", max_words=7).settings()["max_words"] == 7
    assert make(name, **make(name, preset="light", max_words=7).settings()).settings()["max_words"] == 7


@each
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "papr"}, r"preset must be one of 'paper', 'light', got 'papr'; did you mean 'paper'\?"),
        ({"preset": None}, "preset must be one of 'paper', 'light', got None"),
        ({"max_words": 0}, "max_words must be a whole number, at least 1, got 0"),
        ({"vocabulary": 2.5}, "vocabulary must be a whole number"),
        ({"vocabulary": 10**9}, "vocabulary must be at most 1,000,000, got 1000000000"),
        ({"dropout": 1}, "dropout must be a number from 0 to below 1, got 1"),
        ({"cache": 3}, "cache must be a folder, or None, got 3"),
        ({"colour": 3}, "encoder has no setting 'colour'"),
    ],
)
def test_a_setting_that_cannot_be_is_said(name, options, message):
    with pytest.raises(SettingError, match=message):
        make(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("textcnn", {"kernels": ()}, "kernels must be how many words filters span, at least one, all different"),
        ("textcnn", {"kernels": (3, 3)}, "kernels must be"),
        ("textcnn", {"kernels": (3, 0)}, "kernels must be"),
        ("textcnn", {"kernels": "3"}, "kernels must be"),
        ("textcnn", {"kernels": (10**9,)}, "kernels must be"),
        ("textcnn", {"filters": True}, "filters must be a whole number"),
        ("textcnn", {"vectors": 3}, "vectors must be the path of a file, or None, got 3"),
        ("textcnn", {"tune_vectors": 1}, "tune_vectors must be True or False, got 1"),
        ("han", {"dimensions": 0}, "dimensions must be"),
        ("han", {"hidden": -1}, "hidden must be"),
        ("han", {"sentence_words": 0}, "sentence_words must be"),
        ("bowcnn", {"regions": [1.5]}, "regions must be how many words a region has, at least one, all different"),
        ("bowcnn", {"pools": 0}, "pools must be"),
        ("bowcnn", {"pooling": "mean"}, "pooling must be 'average' or 'max', got 'mean'"),
    ],
)
def test_a_setting_of_one_encoder_that_cannot_be_is_said(name, options, message):
    with pytest.raises(SettingError, match=message):
        make(name, **options)


def test_one_number_is_one_span():
    assert make("textcnn", kernels=2).settings()["kernels"] == [2]
    assert make("bowcnn", regions=2).settings()["regions"] == [2]


@each
def test_texts_without_a_word_and_features_are_said(name):
    with pytest.raises(CorpusError, match=f"none of the 2 texts has a word in it; give the {name} encoder texts"):
        small(name).fit(documents(["", "?!"]), generator=seeded())
    rows = Examples.of(Taxonomy.of({"a": []}), [[]], features=np.zeros((1, 2), dtype=np.float32))
    with pytest.raises(CorpusError, match=f"the {name} encoder reads texts, but these documents have none"):
        small(name).fit(rows, generator=seeded())


# -- what a stranger may write into a model ---------------------------------------------------------------------------


@each
@pytest.mark.parametrize(
    ("settings", "learned", "error", "message"),
    [
        ({}, {}, ModelError, "has learned 'words', a list of different words, but the model has not"),
        ({}, {"words": []}, ModelError, "has learned 'words'"),
        ({}, {"words": "abc"}, ModelError, "has learned 'words'"),
        ({}, {"words": ["a", "a"]}, ModelError, "has learned 'words'"),
        ({}, {"words": ["a", 3]}, ModelError, "has learned 'words'"),
        ({}, {"words": ["a", []]}, ModelError, "has learned 'words'"),
        ({"cache": "somewhere"}, {"words": ["a"]}, ModelError, "names a cache folder, which hilap never writes"),
        ({"cache": None}, {"words": ["a"]}, ModelError, "names a cache folder"),
        ({"preset": "x"}, {"words": ["a"]}, SettingError, "preset must be one of"),
        ({"x": 1}, {"words": ["a"]}, SettingError, "has no setting 'x'"),
        ({"max_words": None, "dropout": "a"}, {"words": ["a"]}, SettingError, "dropout must be"),
    ],
)
def test_what_a_stranger_says_an_encoder_learned_is_checked(name, settings, learned, error, message):
    with pytest.raises(error, match=message):
        restore(name, settings, learned)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("textcnn", {"filters": 10**6, "dimensions": 10**6}),
        ("bowcnn", {"filters": 10**6}),
        ("han", {"hidden": 10**6}),
    ],
)
def test_a_model_that_asks_for_too_much_memory_is_refused(name, settings):
    words = {"words": [f"w{i}" for i in range(3000)]}
    with pytest.raises(SettingError, match="numbers is too large; choose smaller sizes"):
        restore(name, settings, words)


def test_every_text_encoder_is_described():
    assert all(set(kind.PRESETS) == {"paper", "light"} for kind in TextEncoder.__subclasses__())


@pytest.mark.parametrize("name", ["textcnn", "han", "bowcnn"])
def test_half_precision_works_too_without_the_compiled_loops(name):
    examples = documents(["beer and rum. A bar.", "", "law"])
    encoder = (
        make(name, preset="light").fit(examples, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16).eval()
    )
    batch = encoder.prepare(examples).batch(np.arange(3))
    encoder(batch).sum().backward()
    with torch.no_grad():
        assert encoder(batch).isfinite().all()


def test_what_is_not_a_number_is_not_lost_in_the_highest_answer():
    examples = documents(["beer and rum", "law"])
    encoder = make("textcnn", preset="light").fit(examples, generator=torch.Generator().manual_seed(0)).eval()
    with torch.no_grad():
        encoder.word_vectors.weight[2:4] = torch.nan
    batch = encoder.prepare(examples).batch(np.arange(2))
    assert encoder(batch).isnan().any()
