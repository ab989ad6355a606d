"""Encoders: what holds for all documents."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hilap.corpus.examples import Examples
from hilap.encoders import MLP, TfIdf
from hilap.encoders.terms import Terms
from hilap.encoders.tokens import words
from hilap.taxonomy import Taxonomy

TAXONOMY = Taxonomy.of({"a": []})
N = 160


def documents(**columns):
    n = max(len(column) if isinstance(column, list) else column.shape[0] for column in columns.values())
    return Examples.of(TAXONOMY, [[]] * n, **columns)


def _features(kind):
    random = np.random.default_rng(0)
    if kind == "sparse":
        return documents(features=sparse.random_array((N, 300), density=0.1, format="csr", dtype=np.float32, rng=0))
    if kind == "tfidf":
        vocabulary = [f"w{i}" for i in range(200)]
        return documents(texts=[" ".join(random.choice(vocabulary, random.integers(0, 60))) for _ in range(N)])
    values = random.normal(size=(N, 77)).astype(np.float32)
    values[random.random(values.shape) < 0.1] = np.nan
    return documents(features=values)


def _encoder(kind):
    return TfIdf(hidden=(150, 40)) if kind == "tfidf" else MLP(hidden=(150, 40))


@contextmanager
def one_thread():
    """Several threads may cut a batch into pieces so small that another kernel multiplies them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=["dense", "sparse", "tfidf"])
def fitted(request):
    examples = _features(request.param)
    encoder = _encoder(request.param).fit(examples, generator=torch.Generator().manual_seed(0)).eval()
    with one_thread():
        prepared = encoder.prepare(examples)
        return encoder, examples, prepared, encoder(prepared.batch(np.arange(N)))


@given(st.data())
def test_a_document_has_the_same_bits_in_any_batch_of_eight_or_more(fitted, data):
    encoder, examples, prepared, expected = fitted
    chosen = np.array(data.draw(st.lists(st.integers(0, N - 1), min_size=8, max_size=N)))
    with one_thread():
        assert torch.equal(encoder(prepared.batch(chosen)), expected[chosen])
        alone = encoder.prepare(examples.take(chosen))  # prepared among other documents
        assert torch.equal(encoder(alone.batch(torch.arange(len(chosen)))), expected[chosen])


@given(st.lists(st.integers(0, N - 1), min_size=1, max_size=5))
def test_a_small_batch_differs_by_rounding_only(fitted, rows):
    encoder, _, prepared, expected = fitted
    with torch.no_grad():
        torch.testing.assert_close(encoder(prepared.batch(np.array(rows))), expected[rows])


_TEXTS = st.text(st.sampled_from("aBcé _-.1हिΣ漢e\u0301İ\n") | st.characters(), max_size=60)


@given(_TEXTS, st.integers(1, 6))
def test_the_first_words_are_the_first_of_all_words(text, most):
    assert words(text, most) == words(text)[:most]
    assert words(text * 40, most) == words(text * 40)[:most]


@given(st.text(st.characters(max_codepoint=127)))
def test_words_of_ascii_are_those_of_a_plain_expression(text):
    assert words(text) == re.findall("[^\\W_]+", text.lower())


def _counted(text, most, vocabulary):
    line = words(text, most)
    counts = Counter(line) + Counter(f"{a} {b}" for a, b in itertools.pairwise(line))
    return [counts[term] for term in vocabulary]


_LINES = st.lists(st.lists(st.sampled_from(["a", "b", "c", "dd", "é"]), max_size=8).map(" ".join), max_size=7)


@given(_LINES, _LINES, st.booleans(), st.integers(1, 12), st.integers(1, 3), st.none() | st.integers(1, 5))
def test_terms_are_those_of_a_count_by_hand(train, test, bigrams, max_features, min_df, max_words):
    """Against Python's own Counter."""
    found, frequency = Terms.most_frequent(
        train, max_words=max_words, bigrams=bigrams, max_features=max_features, min_df=min_df
    )
    total, having = Counter(), Counter()
    for text in train:
        line = words(text, max_words)
        mine = Counter(line)
        if bigrams:
            mine += Counter(f"{a} {b}" for a, b in itertools.pairwise(line))
        total += mine
        having.update(mine.keys())
    kept = sorted((term for term in total if having[term] >= min_df), key=lambda term: (-total[term], term))
    assert list(found.terms) == kept[:max_features]
    assert frequency.tolist() == [having[term] for term in found.terms]
    assert found.counts(test).toarray().tolist() == [_counted(text, max_words, found.terms) for text in test]
