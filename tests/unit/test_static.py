"""Static vectors: the mean against numpy, the files they come from, and the real ones of wordllama."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from hilap.corpus.examples import Examples
from hilap.encoders import Static, make, restore, static
from hilap.encoders.pieces import Pieces
from hilap.encoders.static import read_vectors
from hilap.errors import HilapError, ModelError, SettingError
from hilap.taxonomy import Taxonomy
from tests.contract.pretrained import SPECIAL, WORDS, documents, word_pieces, write_vectors

tokenizers = pytest.importorskip("tokenizers")
VOCABULARY = [*SPECIAL, *WORDS]
TEXTS = ["craft beers", "Beer, beer & unheard law", "", "a b c d e f g h", "\ud800 beer"]
TAXONOMY = Taxonomy.of({"a": []})
PIECES = [  # by hand; what has no piece is left out
    ["craft", "beer", "##s"],
    ["beer", "beer", "law"],
    [],
    [*"abcdefgh"],
    ["beer"],
]


def texts(lines=TEXTS):
    return Examples.of(TAXONOMY, [[]] * len(lines), texts=lines)


def fitted(folder, **options):
    given = {"hidden": None, "standardise": False, **options}
    return Static(folder, **given).fit(texts(), generator=torch.Generator().manual_seed(0)).eval()


def means(encoder, examples=None):
    examples = texts() if examples is None else examples
    with torch.no_grad():
        return encoder(encoder.prepare(examples).batch(np.arange(len(examples)))).numpy()


def by_hand(table, weights, most=512):
    """(n, D) weighted means of the pieces' vectors."""
    rows = []
    for pieces in PIECES:
        ids = [VOCABULARY.index(piece) for piece in pieces][:most]
        total = sum(weights[i] for i in ids)
        rows.append(sum((weights[i] * table[i] for i in ids), np.zeros(table.shape[1])) / (total or 1))
    return np.array(rows)


@pytest.mark.parametrize("tune", [False, True])
@pytest.mark.parametrize("weighting", ["none", "idf", "sif"])
def test_a_text_is_the_weighted_mean_of_its_pieces(tmp_path, weighting, tune):
    table = write_vectors(tmp_path)
    counts = np.array([sum(line.count(piece) for line in PIECES) for piece in VOCABULARY])
    having = np.array([sum(piece in line for line in PIECES) for piece in VOCABULARY])
    weights = {
        "none": np.ones(len(VOCABULARY)),
        "idf": 1 + np.log((1 + len(PIECES)) / (1 + having)),
        "sif": 1e-3 / (1e-3 + counts / counts.sum()),
    }[weighting]
    found = means(fitted(tmp_path, weighting=weighting, tune=tune))
    np.testing.assert_allclose(found, by_hand(table, weights), atol=1e-5)


def test_only_the_first_pieces_are_read(tmp_path):
    table = write_vectors(tmp_path)
    found = means(fitted(tmp_path, weighting="none", max_tokens=2))
    np.testing.assert_allclose(found, by_hand(table, np.ones(len(table)), most=2), atol=1e-5)


def test_vectors_are_standardised_by_the_training_documents(tmp_path):
    write_vectors(tmp_path)
    examples = documents(40)
    plain = Static(tmp_path, hidden=None, standardise=False).fit(examples, generator=torch.Generator()).eval()
    scaled = Static(tmp_path, hidden=None).fit(examples, generator=torch.Generator()).eval()
    raw = means(plain, examples).astype(np.float64)
    np.testing.assert_allclose(means(scaled, examples), (raw - raw.mean(0)) / raw.std(0), atol=1e-4)


def test_words_that_cannot_be_cut_alone_are_cut_in_their_text(tmp_path, monkeypatch):
    """Where a tokenizer looks beyond blanks, the whole text is given to it; both ways end at the same vectors."""
    write_vectors(tmp_path)
    fast = fitted(tmp_path)
    assert fast.learned()["by_word"]
    monkeypatch.setattr(Pieces, "can_split_at_blanks", lambda self, texts: False)
    slow = fitted(tmp_path)
    assert not slow.learned()["by_word"]
    assert np.array_equal(means(fast), means(slow))


def test_a_tokenizer_that_joins_words_is_not_given_words_alone():
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {"[UNK]": 0, "a": 1, "b": 2, "Ġ": 3, "Ġa": 4}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("Ġ", "a")], unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces = Pieces(json.loads(tokenizer.to_str()), vocabulary=5, special=False)
    assert not pieces.can_split_at_blanks(["b a"])
    assert pieces.rows(["b a"], 9).ids.tolist() == [2, 4]


def test_forgetting_words_changes_nothing(tmp_path, monkeypatch):
    from hilap.encoders import pieces

    write_vectors(tmp_path)
    encoder = fitted(tmp_path)
    expected = means(encoder)
    monkeypatch.setattr(pieces, "_REMEMBERED", 1)
    monkeypatch.setattr(static, "_BLOCK", 2)
    assert np.array_equal(means(encoder), expected)


def test_shared_and_weighted_vectors_of_model2vec_are_understood(tmp_path):
    mapping = np.arange(len(VOCABULARY))[::-1].copy()
    weights = np.linspace(0.5, 2, len(VOCABULARY)).astype(np.float64)
    table = write_vectors(tmp_path, mapping=mapping, weights=weights)
    _, found = read_vectors(str(tmp_path))
    np.testing.assert_allclose(found, table[mapping] * weights[:, None], rtol=1e-6)


def test_half_precision_is_read(tmp_path):
    table = write_vectors(tmp_path)
    save_file({"embedding.weight": table.astype(np.float16)}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(read_vectors(str(tmp_path))[1], table.astype(np.float16).astype(np.float32))


# -- what goes wrong --------------------------------------------------------------------------------------------------


def _tensors(**tensors):
    return lambda folder: save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: (f / "tokenizer.json").unlink(), "lacks tokenizer.json or model.safetensors"),
        (lambda f: (f / "tokenizer.json").write_text("{"), "is no valid JSON"),
        (lambda f: (f / "tokenizer.json").write_text("[]"), "holds no JSON object"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "a tokenizer is an object with a 'model'"),
        (lambda f: (f / "tokenizer.json").write_text('{"model": {"type": "X"}}'), "the tokenizer cannot be used"),
        (lambda f: (f / "model.safetensors").write_bytes(b"PK"), "damaged or truncated"),
        (_tensors(other=np.zeros((3, 3), np.float32)), "holds no matrix called 'embeddings'"),
        (_tensors(embeddings=np.zeros(3, np.float32)), "holds no matrix"),
        (_tensors(embeddings=np.zeros((3, 3), np.int64)), "holds no matrix"),
        (_tensors(embeddings=np.full((30, 3), np.nan, np.float32)), "numbers that are none"),
        (_tensors(embeddings=np.zeros((3, 3), np.float32)), "gives piece"),
        (
            _tensors(embeddings=np.zeros((3, 3), np.float32), mapping=np.array([0, 3])),
            "'mapping' does not fit the vectors",
        ),
        (
            _tensors(embeddings=np.zeros((3, 3), np.float32), weights=np.ones(2)),
            "'weights' does not fit the vectors",
        ),
    ],
)
def test_bad_files_get_one_clear_sentence(tmp_path, spoil, says):
    write_vectors(tmp_path)
    spoil(tmp_path)
    with pytest.raises(HilapError, match=says):
        fitted(tmp_path)


def test_a_folder_that_is_not_there_and_a_missing_package_are_told(tmp_path, monkeypatch):
    for source in (str(tmp_path / "none"), "a\0b"):
        with pytest.raises(SettingError, match="vectors: there is no folder"):
            fitted(source)
    monkeypatch.setattr(static, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match="the package wordllama is not installed; pip install wordllama"):
        fitted("wordllama")


def test_two_files_of_vectors_are_not_chosen_between(tmp_path):
    write_vectors(tmp_path / "one")
    for name in ("tokenizers", "weights"):
        (tmp_path / name).mkdir()
    (tmp_path / "tokenizers" / "t.json").write_text("{}")
    for name in "ab":
        (tmp_path / "weights" / f"{name}.safetensors").write_bytes(b"")
    with pytest.raises(SettingError, match=r"holds several files 'a\.safetensors'"):
        fitted(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vectors": ""}, "vectors must be 'wordllama' or a folder, got ''"),
        ({"vectors": 3}, "vectors must be"),
        ({"weighting": "tf"}, "weighting must be one of 'none', 'idf', 'sif', got 'tf'"),
        ({"weighting": []}, "weighting must be"),
        ({"max_tokens": 0}, "max_tokens must be"),
        ({"tune": 1}, "tune must be True or False"),
        ({"rate": 0}, "rate must be a number above 0, at most 1, got 0"),
        ({"rate": float("nan")}, "rate must be"),
        ({"standardise": None}, "standardise must be"),
        ({"hidden": (0,)}, "hidden must be"),
        ({"dropout": -1}, "dropout must be"),
    ],
)
def test_a_setting_that_cannot_be_is_said(options, message):
    with pytest.raises(SettingError, match=message):
        make("static", **options)


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ({}, "has learned 'pieces', 'width' and 'by_word'"),
        ({"pieces": 10**12, "width": 3, "by_word": True}, "has learned 'pieces'"),
        ({"pieces": 3, "width": 3, "by_word": True}, "has learned a 'tokenizer' with its pieces"),
        ({"pieces": 0, "width": 3, "by_word": True, "tokenizer": {}}, "has learned a 'tokenizer'"),
        ({"pieces": 3, "width": 3, "by_word": True, "tokenizer": {"model": {}}}, "the tokenizer cannot be used"),
    ],
)
def test_a_model_that_does_not_fit_is_told(learned, message):
    with pytest.raises(ModelError, match=message):
        restore("static", {}, learned)


def test_a_tokenizer_with_pieces_beyond_the_table_is_told():
    pieces = Pieces(word_pieces(), vocabulary=10, special=False)
    with pytest.raises(ModelError, match="the tokenizer gives piece 24, but the model has 10"):
        pieces.rows(["beer"], 5)


# -- the real ones ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="needs the package wordllama")
def test_wordllama_gives_what_its_own_tokenizer_and_numpy_give():
    from hilap.encoders.static import _files, _folder

    lines = ["Craft beer and a plate of plantain", "tax law; the Court's ruling, 2024!", "", "naïve café 漢字"]
    encoder = Static(hidden=None, standardise=False, weighting="none")
    encoder.fit(texts(lines), generator=torch.Generator()).eval()
    assert encoder.learned()["by_word"]
    assert encoder.dim == 256
    tokenizer_file, _ = _files(_folder("wordllama"))
    own = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    table = read_vectors("wordllama")[1]
    for line, found in zip(lines, means(encoder, texts(lines)), strict=True):
        ids = own.encode(line, add_special_tokens=False).ids if line else []
        expected = table[ids].mean(0) if ids else np.zeros(256)
        np.testing.assert_allclose(found, expected, atol=1e-5)
