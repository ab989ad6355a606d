"""Encoders: what they learn, what they give, what they say about bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from hilap.corpus.examples import Examples
from hilap.encoders import ENCODERS, MLP, Encoder, TfIdf, make, restore, terms
from hilap.encoders.tokens import words
from hilap.errors import CorpusError, ModelError, SettingError
from hilap.taxonomy import Taxonomy

TAXONOMY = Taxonomy.of({"a": []})
TEXTS = [
    "Craft beer, craft rum and jerk chicken.",
    "Jerk chicken & plantain; craft beer on tap",
    "A lawyer for tax law, a tax office",
    "",
    "Tax law and craft",
]


def documents(*, features=None, texts=None):
    n = len(texts) if features is None else features.shape[0]
    return Examples.of(TAXONOMY, [[]] * n, texts=texts, features=features)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def rows(n=20, width=5, missing=0.2, seed=0):
    random = np.random.default_rng(seed)
    values = (random.normal(size=(n, width)) * 3 + 2).astype(np.float32)
    values[random.random(values.shape) < missing] = np.nan
    return values


def sparse_rows(n=20, width=9, seed=0):
    return sparse.random_array((n, width), density=0.3, format="csr", dtype=np.float32, rng=seed)


def encoded(encoder, examples):
    encoder.eval()
    with torch.no_grad():
        prepared = encoder.prepare(examples)
        return encoder(prepared.batch(np.arange(len(prepared))))


def feed_forward(encoder, x):
    """The layers by hand, in double precision."""
    for weight, bias in zip(encoder.layers.weights, encoder.layers.biases, strict=True):
        x = np.maximum(x @ weight.detach().double().numpy() + bias.detach().double().numpy(), 0)
    return x


# -- the table ------------------------------------------------------------------------------------------------


def test_every_encoder_is_in_the_table_under_its_name():
    assert {name: kind.name for name, kind in ENCODERS.items()} == {name: name for name in ENCODERS}


def test_make_takes_a_name_with_options_or_an_encoder():
    assert make("mlp", hidden=(7, 3)).settings()["hidden"] == [7, 3]
    encoder = MLP()
    assert make(encoder) is encoder


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ("tfidff", {}, "there is no encoder 'tfidff'; did you mean 'tfidf'?"),
        ("qqq", {}, "there is no encoder 'qqq'; there are: mlp, tfidf, .*; one of your own is given as an Encoder"),
        (3, {}, "there is no encoder 3; there are: mlp, tfidf"),
        ("mlp", {"hiden": 3}, "the mlp encoder has no setting 'hiden'; did you mean 'hidden'?"),
        ("mlp", {"qqq": 3}, "no setting 'qqq'; it has: hidden, standardise, dropout, input_dropout"),
        (MLP(), {"hidden": 3}, r"options \(hidden\) go with an encoder's name"),
    ],
)
def test_a_wrong_name_or_option_is_said(given, options, message):
    with pytest.raises(SettingError, match=message.replace("?", r"\?")):
        make(given, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mlp", {"hidden": ()}, "hidden must be the width of each layer, at least one layer"),
        ("mlp", {"hidden": (3, 0)}, "hidden must be"),
        ("mlp", {"hidden": "150"}, "hidden must be"),
        ("mlp", {"hidden": True}, "hidden must be"),
        ("mlp", {"dropout": 1.0}, "dropout must be a number from 0 to below 1, got 1.0"),
        ("mlp", {"input_dropout": -0.1}, "input_dropout must be"),
        ("mlp", {"dropout": float("nan")}, "dropout must be"),
        ("mlp", {"standardise": 1}, "standardise must be True or False, got 1"),
        ("tfidf", {"max_words": 0}, "max_words must be a whole number, at least 1, got 0"),
        ("tfidf", {"max_features": 2.5}, "max_features must be"),
        ("tfidf", {"min_df": 0}, "min_df must be"),
        ("tfidf", {"bigrams": "yes"}, "bigrams must be True or False"),
        ("tfidf", {"sublinear": None}, "sublinear must be True or False"),
        ("tfidf", {"dropout": 2}, "dropout must be"),
    ],
)
def test_a_setting_that_cannot_be_is_said(name, options, message):
    with pytest.raises(SettingError, match=message):
        make(name, **options)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_that_is_not_fitted_says_so(name):
    encoder, examples = make(name), documents(features=rows(3), texts=["a", "b", "c"])
    uses = [lambda: encoder.dim, lambda: encoder.prepare(examples), encoder.learned, lambda: encoder(torch.zeros(1, 5))]
    for use in uses:
        with pytest.raises(ModelError, match=rf"this {name} encoder is not fitted; call fit\(examples, generator"):
            use()


def test_an_encoder_of_ones_own_fits_the_protocol():
    class Lengths(Encoder):
        name = "lengths"

        def fit(self, examples, *, generator):
            self.dim = 1
            return self

        def prepare(self, examples):
            return MLP(standardise=False).prepare(examples)

        def forward(self, batch):
            return batch

        def settings(self):
            return {}

        def learned(self):
            return {}

        @classmethod
        def restore(cls, settings, learned):
            return cls()

    with pytest.raises(ModelError, match="this lengths encoder is not fitted"):
        _ = make(Lengths()).dim
    assert make(Lengths()).fit(documents(texts=["a"]), generator=seeded()).dim == 1


# -- both -----------------------------------------------------------------------------------------------------

KINDS = {
    "dense": lambda: (MLP(hidden=(6, 4)), documents(features=rows())),
    "sparse": lambda: (MLP(hidden=(6, 4)), documents(features=sparse_rows())),
    "raw": lambda: (MLP(hidden=6, standardise=False), documents(features=rows())),
    "tfidf": lambda: (TfIdf(min_df=1, hidden=(6,), bigrams=True), documents(texts=TEXTS)),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_weights_come_from_the_generator_alone(kind):
    encoder, examples = KINDS[kind]()
    before = torch.random.get_rng_state()
    first = encoded(encoder.fit(examples, generator=seeded(1)), examples)
    torch.rand(3)
    assert torch.equal(encoded(KINDS[kind]()[0].fit(examples, generator=seeded(1)), examples), first)
    assert not torch.equal(encoded(KINDS[kind]()[0].fit(examples, generator=seeded(2)), examples), first)
    torch.random.set_rng_state(before)
    KINDS[kind]()[0].fit(examples, generator=seeded(1))
    assert torch.equal(torch.random.get_rng_state(), before)


@each_kind
def test_fit_starts_anew(kind):
    encoder, examples = KINDS[kind]()
    first = encoded(encoder.fit(examples, generator=seeded(1)), examples)
    encoder.fit(examples.take([0, 1]), generator=seeded(5))
    assert torch.equal(encoded(encoder.fit(examples, generator=seeded(1)), examples), first)


@each_kind
def test_a_restored_encoder_gives_the_same_bits(kind):
    encoder, examples = KINDS[kind]()
    expected = encoded(encoder.fit(examples, generator=seeded()), examples)
    settings, learned = json.loads(json.dumps([encoder.settings(), encoder.learned()]))
    again = restore(encoder.name, settings, learned)
    again.load_state_dict({name: tensor.clone() for name, tensor in encoder.state_dict().items()})
    assert again.dim == encoder.dim
    assert (again.settings(), again.learned()) == (encoder.settings(), encoder.learned())
    assert torch.equal(encoded(again, examples), expected)


@each_kind
def test_labels_are_never_looked_at(kind):
    encoder, examples = KINDS[kind]()
    blind = Examples(None, examples.ids, examples.labels, examples.texts, examples.features)
    object.__setattr__(blind, "labels", None)
    encoded(encoder.fit(blind, generator=seeded()), blind)


@each_kind
def test_gradients_reach_every_weight(kind):
    encoder, examples = KINDS[kind]()
    encoder.fit(examples, generator=seeded())
    encoder(encoder.prepare(examples).batch(torch.arange(len(examples)))).sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in encoder.parameters())


@each_kind
def test_dropout_works_in_training_only(kind):
    encoder, examples = KINDS[kind]()
    noisy = make(encoder.name, **encoder.settings() | {"dropout": 0.5, "input_dropout": 0.5})
    plain = encoded(encoder.fit(examples, generator=seeded()), examples)
    assert torch.equal(encoded(noisy.fit(examples, generator=seeded()), examples), plain)
    noisy.train()
    batch = noisy.prepare(examples).batch(np.arange(len(examples)))
    assert not torch.equal(noisy(batch), noisy(batch))


@each_kind
def test_an_empty_batch_and_an_empty_block_are_fine(kind):
    encoder, examples = KINDS[kind]()
    encoder.fit(examples, generator=seeded())
    assert encoder(encoder.prepare(examples).batch(np.arange(0))).shape == (0, encoder.dim)
    assert len(encoder.prepare(examples.take([]))) == 0


@each_kind
def test_a_row_that_is_not_there_is_an_index_error(kind):
    encoder, examples = KINDS[kind]()
    prepared = encoder.fit(examples, generator=seeded()).prepare(examples)
    with pytest.raises(IndexError):
        prepared.batch(np.array([len(examples)]))


def test_a_sparse_batch_moves_to_a_device():
    encoder = MLP().fit(documents(features=sparse_rows()), generator=seeded())
    batch = encoder.prepare(documents(features=sparse_rows())).batch(np.arange(3)).to("meta")
    assert {batch.columns.device.type, batch.values.device.type, batch.starts.device.type} == {"meta"}
    assert len(batch) == 3


@pytest.mark.parametrize(
    ("name", "settings", "learned", "error"),
    [
        ("mlp", {}, {}, ModelError),
        ("mlp", {}, {"features": 10**15, "sparse": False}, ModelError),
        ("mlp", {}, {"features": True, "sparse": False}, ModelError),
        ("mlp", {}, {"features": 3, "sparse": 0}, ModelError),
        ("mlp", {"hidden": [10**12]}, {"features": 3, "sparse": False}, SettingError),
        ("mlp", {"x": 1}, {"features": 3, "sparse": False}, SettingError),
        ("mlp", [], {}, SettingError),
        ("mlp", {}, None, SettingError),
        ("tfidf", {}, {}, ModelError),
        ("tfidf", {}, {"terms": []}, ModelError),
        ("tfidf", {}, {"terms": "abc"}, ModelError),
        ("tfidf", {}, {"terms": ["a", "a"]}, ModelError),
        ("tfidf", {}, {"terms": ["a", 3]}, ModelError),
        ("svm", {}, {}, SettingError),
    ],
)
def test_what_a_stranger_says_an_encoder_learned_is_checked(name, settings, learned, error):
    with pytest.raises(error):
        restore(name, settings, learned)


# -- mlp ------------------------------------------------------------------------------------------------------


def test_the_default_is_the_papers_one_layer_of_150():
    assert MLP().fit(documents(features=rows()), generator=seeded()).dim == 150


@pytest.mark.parametrize("standardise", [True, False])
def test_missing_values_become_the_mean_of_the_training_data(standardise):
    train, test = rows(50, seed=1), rows(30, seed=2)
    encoder = MLP(hidden=(8, 3), standardise=standardise).fit(documents(features=train), generator=seeded())
    filled = np.where(np.isnan(test), np.nanmean(train.astype(np.float64), axis=0), test)
    scaler = StandardScaler().fit(train.astype(np.float64))  # it leaves missing values out, too
    expected = scaler.transform(filled) if standardise else filled
    prepared = encoder.prepare(documents(features=test))
    np.testing.assert_allclose(prepared.batch(np.arange(30)), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        encoded(encoder, documents(features=test)), feed_forward(encoder, expected), rtol=1e-4, atol=1e-5
    )


def test_sparse_features_are_scaled_but_not_shifted():
    train, test = sparse_rows(60, seed=1), sparse_rows(30, seed=2)
    encoder = MLP(hidden=(8,)).fit(documents(features=train), generator=seeded())
    expected = StandardScaler(with_mean=False).fit(train.astype(np.float64)).transform(test.astype(np.float64))
    np.testing.assert_allclose(
        encoder.prepare(documents(features=test)).matrix.toarray(), expected.toarray(), rtol=1e-5
    )
    np.testing.assert_allclose(
        encoded(encoder, documents(features=test)), feed_forward(encoder, expected.toarray()), rtol=1e-4, atol=1e-5
    )


def test_sparse_and_dense_input_give_the_same():
    """Also for a constant column, an empty one, and values that are stored as missing."""
    matrix = sparse_rows(40).toarray()
    matrix[:, 0], matrix[:, 1], matrix[3, 2] = 2.0, 0.0, np.nan
    test = sparse_rows(30, seed=5).toarray()
    test[2, 4] = np.nan
    dense = MLP(hidden=(16, 4), standardise=False).fit(documents(features=matrix), generator=seeded())
    thin = MLP(hidden=(16, 4), standardise=False).fit(documents(features=sparse.csr_array(matrix)), generator=seeded())
    expected = encoded(dense, documents(features=test))
    torch.testing.assert_close(
        encoded(thin, documents(features=sparse.csr_array(test))), expected, rtol=1e-6, atol=1e-6
    )
    # What was fitted on one may be given the other.
    assert torch.equal(encoded(dense, documents(features=sparse.csr_array(test))), expected)
    torch.testing.assert_close(encoded(thin, documents(features=test)), expected, rtol=1e-6, atol=1e-6)


def test_old_sparse_matrices_with_repeated_entries_are_taken():
    repeated = sparse.csr_matrix((np.ones(3, dtype=np.int64), [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    encoder = MLP(standardise=False).fit(documents(features=repeated), generator=seeded())
    assert encoder.prepare(documents(features=repeated)).matrix.toarray().tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize("make_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("standardise", [True, False])
def test_a_feature_that_never_varied_or_was_always_missing_says_nothing(make_rows, standardise):
    train = rows(20, 4, missing=0)
    train[:, 1], train[:, 2] = 7.1, np.nan
    encoder = MLP(hidden=(5,), standardise=standardise)
    encoder.fit(documents(features=make_rows(train)), generator=seeded())
    one, other = rows(6, 4, missing=0, seed=3), rows(6, 4, missing=0, seed=3)
    other[:, 1], other[:, 2] = 1e6, -1e6
    vectors = encoded(encoder, documents(features=make_rows(one)))
    assert torch.isfinite(vectors).all()
    assert torch.equal(encoded(encoder, documents(features=make_rows(other))), vectors)


def test_a_deviation_too_small_for_a_reciprocal_is_none():
    train = np.array([[1e-44, 1.0], [0.0, 2.0]], dtype=np.float32)
    encoder = MLP().fit(documents(features=train), generator=seeded())
    assert encoder.rate[0] == 0
    assert torch.isfinite(encoded(encoder, documents(features=train))).all()


def test_statistics_do_not_depend_on_the_size_of_blocks(monkeypatch):
    train = documents(features=rows(100))
    whole = MLP().fit(train, generator=seeded()).state_dict()
    monkeypatch.setattr("hilap.encoders.mlp._BLOCK", 7)
    parts = MLP().fit(train, generator=seeded())
    torch.testing.assert_close(parts.state_dict(), whole)
    assert torch.equal(encoded(parts, train), encoded(parts, train.take(np.arange(100))))


@pytest.mark.parametrize("make_rows", [np.asarray, sparse.csr_array])
def test_another_number_of_features_is_said_with_both(make_rows):
    encoder = MLP().fit(documents(features=make_rows(rows(9, 5))), generator=seeded())
    with pytest.raises(CorpusError, match="fitted on 5 features, but these documents have 4; give the same features"):
        encoder.prepare(documents(features=make_rows(rows(9, 4))))


@pytest.mark.parametrize("make_rows", [np.asarray, sparse.csr_array])
def test_an_infinite_value_is_said_with_its_place(make_rows):
    encoder = MLP().fit(documents(features=make_rows(rows(9, 5))), generator=seeded())
    for value in (np.inf, -np.inf):
        bad = rows(9, 5)
        bad[7, 2] = value
        for use in (lambda b: MLP().fit(b, generator=seeded()), encoder.prepare):
            with pytest.raises(CorpusError, match=r"document '7': feature 2 \(counted from 0\) is infinite or far too"):
                use(documents(features=make_rows(bad)))


@pytest.mark.parametrize("make_rows", [np.asarray, sparse.csr_array])
def test_a_value_that_overflows_when_scaled_is_said_with_its_place(make_rows):
    encoder = MLP().fit(documents(features=make_rows(rows(9, 5) * np.float32(1e-9))), generator=seeded())
    bad = rows(9, 5)
    bad[4, 1] = 3e38
    with pytest.raises(CorpusError, match="document '4': feature 1"):
        encoder.prepare(documents(features=make_rows(bad)))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.array([1.0, 2.0]), "must be a matrix with one row for each document, got shape"),
        (np.array([["a"], ["b"]]), "features must be numbers"),
        (np.zeros((0, 3)), r"cannot learn from features of shape \(0, 3\)"),
        (np.zeros((3, 0)), r"cannot learn from features of shape \(3, 0\)"),
    ],
)
def test_features_that_are_none_are_said(features, message):
    with pytest.raises(CorpusError, match=message):
        MLP().fit(documents(features=features), generator=seeded())


def test_documents_of_the_other_sort_are_said():
    with pytest.raises(CorpusError, match="the mlp encoder reads features, but these documents have none"):
        MLP().fit(documents(texts=["a"]), generator=seeded())
    with pytest.raises(CorpusError, match="the tfidf encoder reads texts, but these documents have none"):
        TfIdf().fit(documents(features=rows(3)), generator=seeded())


# -- tfidf ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bigrams", [False, True])
@pytest.mark.parametrize("sublinear", [False, True])
@pytest.mark.parametrize("min_df", [1, 2])
def test_tfidf_is_that_of_scikit_learn(bigrams, sublinear, min_df):
    encoder = TfIdf(min_df=min_df, bigrams=bigrams, sublinear=sublinear).fit(documents(texts=TEXTS), generator=seeded())
    theirs = TfidfVectorizer(
        tokenizer=words,
        token_pattern=None,
        lowercase=False,
        ngram_range=(1, 2 if bigrams else 1),
        min_df=min_df,
        sublinear_tf=sublinear,
    ).fit(TEXTS)
    assert sorted(encoder.terms) == [*theirs.get_feature_names_out()]
    unseen = [*TEXTS, "plantain beer beer and a new word law tax law", "quite other"]
    order = [theirs.vocabulary_[term] for term in encoder.terms]
    expected = theirs.transform(unseen)[:, order].toarray()
    matrix = encoder.tfidf_matrix(documents(texts=unseen))
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix.toarray(), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        encoded(encoder, documents(texts=unseen)), feed_forward(encoder, expected), rtol=1e-4, atol=1e-5
    )


def test_terms_come_by_count_then_by_alphabet():
    texts = ["b a b c", "a d c", "e b"]
    assert TfIdf(min_df=1).fit(documents(texts=texts), generator=seeded()).terms == ("b", "a", "c", "d", "e")
    for most in range(1, 6):
        fitted = TfIdf(min_df=1, max_features=most).fit(documents(texts=texts), generator=seeded())
        assert fitted.terms == ("b", "a", "c", "d", "e")[:most]


def test_blocks_of_texts_change_nothing(monkeypatch):
    examples = documents(texts=TEXTS * 3)
    whole = TfIdf(bigrams=True, min_df=1).fit(examples, generator=seeded())
    matrix = whole.tfidf_matrix(examples)
    monkeypatch.setattr(terms, "_BLOCK", 4)
    parts = TfIdf(bigrams=True, min_df=1).fit(examples, generator=seeded())
    assert parts.terms == whole.terms
    assert torch.equal(parts.idf, whole.idf)
    assert (parts.tfidf_matrix(examples) != matrix).nnz == 0


def test_only_the_first_words_are_read():
    encoder = TfIdf(max_words=2, min_df=1, bigrams=True).fit(documents(texts=["one two three"]), generator=seeded())
    assert set(encoder.terms) == {"one", "two", "one two"}
    assert encoder.tfidf_matrix(documents(texts=["x y one two"])).nnz == 0
    everything = TfIdf(max_words=None, min_df=1).fit(documents(texts=["w " * 999 + "end"]), generator=seeded())
    assert everything.terms == ("w", "end")


def test_texts_without_any_word_are_said():
    with pytest.raises(CorpusError, match="no word occurs in at least 2 of the 3 texts; give more texts, or"):
        TfIdf().fit(documents(texts=["", "?!", "once"]), generator=seeded())
    with pytest.raises(CorpusError, match="no word occurs in at least 2 of the 0 texts"):
        TfIdf().fit(documents(texts=[]), generator=seeded())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's 3.5 GHz, snake_case & CamelCase", ["it", "s", "3", "5", "ghz", "snake", "case", "camelcase"]),
        ("Über STRASSE café cafe\u0301", ["über", "strasse", "café", "café"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Привет, мир! 漢字", ["привет", "мир", "漢", "字"]),
        ("İstanbul", ["i̇stanbul"]),
        ("ü_x", ["ü", "x"]),
        ("\ud800 a", ["a"]),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_and_digits_of_any_script(text, expected):
    assert words(text) == expected
