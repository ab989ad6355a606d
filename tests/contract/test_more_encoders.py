"""What every encoder promises, whatever is inside: hashed, static, transformer, several and one of a user's own."""

from __future__ import annotations

import copy
import json
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hilap
from hilap import HiLAPClassifier
from hilap.encoders import ENCODERS, make, restore
from hilap.errors import CorpusError, HilapError, ModelError
from tests.contract.pretrained import TINY, Letters, documents, needs, tiny

N = 40
_fitted: dict[str, object] = {}


@pytest.fixture(autouse=True, scope="module")
def letters():
    """An encoder of a user's own is in the table while its models are to be opened."""
    ENCODERS["letters"] = Letters
    yield
    del ENCODERS["letters"]


@pytest.fixture(autouse=True)
def one_thread():
    """Several threads may cut a batch into pieces so small that another kernel multiplies them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=TINY)
def name(request) -> str:
    for package in needs(request.param):
        pytest.importorskip(package)
    return request.param


@pytest.fixture(scope="module")
def fitted(name, tmp_path_factory):
    """(encoder, examples, prepared, vectors); the files it was made from are gone."""
    if name not in _fitted:
        folder = tmp_path_factory.mktemp("pretrained")
        examples = documents(N)
        encoder = tiny(name, folder).fit(examples, generator=torch.Generator().manual_seed(0)).eval()
        shutil.rmtree(folder)
        with torch.no_grad():
            prepared = encoder.prepare(examples)
            _fitted[name] = encoder, examples, prepared, encoder(prepared.batch(np.arange(N)))
    return _fitted[name]


def opened(encoder):
    """The encoder as a saved model gives it back."""
    parts = json.loads(json.dumps([encoder.settings(), encoder.learned()]))
    other = restore(encoder.name, *parts)
    other.load_state_dict(encoder.state_dict())
    return other.eval()


def test_vectors_have_the_shape_that_is_said_and_differ(fitted):
    encoder, _, _, vectors = fitted
    assert vectors.shape == (N, encoder.dim)
    assert vectors.isfinite().all()
    assert len(torch.unique(vectors, dim=0)) > N // 2


@settings(max_examples=15)
@given(st.data())
def test_a_document_has_the_same_bits_in_any_batch_of_eight_or_more(fitted, data):
    encoder, examples, prepared, expected = fitted
    chosen = np.array(data.draw(st.lists(st.integers(0, N - 1), min_size=8, max_size=N)))
    chosen = np.resize(chosen, len(chosen) + -len(chosen) % 8)  # as the classifier fills batches up
    with torch.no_grad():
        assert torch.equal(encoder(prepared.batch(chosen)), expected[chosen])
        alone = encoder.prepare(examples.take(chosen))  # prepared among other documents
        assert torch.equal(encoder(alone.batch(torch.arange(len(chosen)))), expected[chosen])


def test_a_document_alone_and_padded_with_others_differ_by_rounding_only(fitted):
    encoder, examples, prepared, expected = fitted
    for rows in ([0], [3, 1], [5]):
        with torch.no_grad():
            torch.testing.assert_close(encoder(prepared.batch(np.array(rows))), expected[rows])
        together = encoder(prepared.batch(np.array(rows)))  # with gradients there are other paths through the code
        torch.testing.assert_close(together.detach(), expected[rows], atol=1e-5, rtol=1e-4)
    assert len(encoder.prepare(examples.take([]))) == 0


def test_gradients_flow_to_every_weight_that_may_learn(fitted):
    encoder = copy.deepcopy(fitted[0]).train()
    vectors = encoder(fitted[2].batch(np.arange(N)))
    if not any(weight.requires_grad for weight in encoder.parameters()):
        assert not vectors.requires_grad
        return
    (vectors * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
    learning = {name: weight for name, weight in encoder.named_parameters() if weight.requires_grad}
    silent = [name for name, weight in learning.items() if weight.grad is None or not weight.grad.abs().any()]
    # Softmax does not see what is added to all keys; ReLU may be shut for single columns only.
    assert [name for name in silent if not name.endswith("key.bias")] == []


def test_an_opened_encoder_gives_the_same_bits(fitted):
    encoder, examples, _, expected = fitted
    other = opened(encoder)
    with torch.no_grad():
        assert torch.equal(other(other.prepare(examples).batch(np.arange(N))), expected)
    assert (other.dim, other.settings(), other.learned()) == (encoder.dim, encoder.settings(), encoder.learned())


def test_fitting_draws_from_its_generator_alone(name, tmp_path):
    examples, states = documents(12), []
    for seed in (3, 3, 4):
        before = torch.get_rng_state()
        encoder = tiny(name, tmp_path / str(len(states))).fit(examples, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(torch.get_rng_state(), before)
        states.append(encoder.state_dict())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    drawn = not (name.startswith(("static bare", "transformer tuned")))
    assert drawn == any(not torch.equal(states[0][key], states[2][key]) for key in states[0])


def test_a_sibling_encodes_what_the_first_one_prepared(name, tmp_path):
    examples = documents(12)
    encoder = tiny(name, tmp_path).fit(examples, generator=torch.Generator().manual_seed(0))
    other = encoder.sibling(examples, generator=torch.Generator().manual_seed(1)).eval()
    again = opened(other)
    with torch.no_grad():
        batch = encoder.prepare(examples).batch(np.arange(12))
        assert other(batch).shape == (12, encoder.dim)
        assert torch.equal(again(batch), other(batch))
    frozen = name in ("static", "static bare", "transformer")
    assert frozen == (
        sum(t.numel() for t in other.state_dict().values()) < sum(t.numel() for t in encoder.state_dict().values())
    )
    if frozen:
        with pytest.raises(ModelError, match="the network's first member prepares"):
            other.prepare(examples)


def test_learning_rates_name_weights_that_are_there(fitted):
    encoder = fitted[0]
    names = [name for name, weight in encoder.named_parameters() if weight.requires_grad]
    for start, share in encoder.rates().items():
        assert 0 < share <= 1
        assert any(name.startswith(start) for name in names)


def test_no_documents_can_be_fitted(name, tmp_path):
    with pytest.raises(HilapError):
        tiny(name, tmp_path).fit(documents(3).take([]), generator=torch.Generator())


def test_documents_without_texts_are_told(name, tmp_path):
    if name == "letters":
        pytest.skip("what its tensor() needs is the user's business")
    features = hilap.Corpus.of(features=np.zeros((2, 3)), labels=[[], []], taxonomy=documents(2).taxonomy).load()
    with pytest.raises(CorpusError, match="reads texts, but these documents have none"):
        tiny(name, tmp_path).fit(features, generator=torch.Generator())


@pytest.mark.parametrize("folds", [1, 2])
def test_a_classifier_with_it_is_saved_and_opened_to_the_last_bit(name, folds, tmp_path):
    examples = documents(30)
    encoder = tiny(name, tmp_path / "source")
    made = HiLAPClassifier(
        encoder=encoder.name,
        encoder_options=encoder.settings(),
        flat_epochs=1,
        supervised_epochs=0,
        reinforced_epochs=1,
        hidden=8,
        width=4,
        folds=folds,
        sees="flat",
        supervised_weight=0.0,
        batch_size=8,
    ).fit(examples)
    made.save(tmp_path / "model")
    shutil.rmtree(tmp_path / "source", ignore_errors=True)  # the model has all that is needed
    again = hilap.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(examples), made.predict_proba(examples))
    assert np.array_equal(again.predict_proba(examples.take([7]))[0], made.predict_proba(examples)[7])
    again.save(tmp_path / "second")
    for path in (tmp_path / "model").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 70) | st.sampled_from([10**9, -(10**30), 1e308, 0.5, "", "x", "bert"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "model", "type"]), inner, max_size=2)
    ),
    max_leaves=3,
)


def _places(value, path=()):
    """The paths to everything in a JSON value, but no deeper into a vocabulary than a few entries."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items)[:30]:
        yield (*path, key)
        yield from _places(inner, (*path, key))


@settings(max_examples=60)
@given(st.data())
def test_hostile_settings_and_learned_give_our_own_errors_only(fitted, data):
    encoder = fitted[0]
    parts = json.loads(json.dumps({"settings": encoder.settings(), "learned": encoder.learned()}))
    path = data.draw(st.sampled_from([p for p in _places(parts) if len(p) > 1] or [("settings",)]))
    place = parts
    for step in path[:-1]:
        place = place[step]
    if data.draw(st.booleans()) or isinstance(place, list):
        place[path[-1]] = data.draw(_JSON)
    else:
        del place[path[-1]]
    try:
        other = restore(encoder.name, parts["settings"], parts["learned"]).eval()
    except HilapError:
        return
    try:  # an encoder that opens has the shape it says, or the weights will not fit; it never breaks in another way
        other.load_state_dict(encoder.state_dict())
    except RuntimeError:
        return
    examples = documents(9)
    try:
        with torch.no_grad():
            assert other(other.prepare(examples).batch(np.arange(9))).shape == (9, other.dim)
    except HilapError:
        pass


def test_make_knows_them_all():
    assert {"hashed", "static", "transformer", "several"} <= {*ENCODERS}
    assert make("hashed").name == "hashed"
