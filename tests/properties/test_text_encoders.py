"""Text encoders: what holds for all documents."""

from __future__ import annotations

import re
import sys
import unicodedata
from unicodedata import category, normalize

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hilap.corpus.examples import Examples
from hilap.encoders import make
from hilap.encoders.tokens import _THEIR_FIRST_BYTES, _WITHOUT_BLANKS, _word_of_any_script, sentences, words
from hilap.taxonomy import Taxonomy

N = 120
KINDS = {
    "textcnn": ("textcnn", {"filters": 130}),
    "textcnn narrow": ("textcnn", {"filters": 5, "kernels": (1, 2)}),
    "han": ("han", {}),
    "han narrow": ("han", {"hidden": 5, "sentence_words": 7}),
    "bowcnn": ("bowcnn", {"filters": 120}),
    "bowcnn narrow": ("bowcnn", {"filters": 5, "regions": (2, 9), "pools": 3, "pooling": "max"}),
}


def documents(texts):
    return Examples.of(Taxonomy.of({"a": []}), [[]] * len(texts), texts=texts)


def some_texts(n=N):
    random = np.random.default_rng(0)
    vocabulary = [f"w{i}" for i in range(300)]
    share = 1 / np.arange(1, 301)
    lengths = [0, 1, 2, *random.integers(0, 300, n - 3)]
    lines = [random.choice(vocabulary, length, p=share / share.sum()) for length in lengths]
    return [" ".join(f"{word}. X" if random.random() < 0.06 else word for word in line) for line in lines]


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    name, options = KINDS[request.param]
    examples = documents(some_texts())
    encoder = make(name, **options).fit(examples, generator=torch.Generator().manual_seed(0)).eval()
    prepared = encoder.prepare(examples)
    with torch.no_grad():
        return encoder, examples, prepared, encoder(prepared.batch(np.arange(N)))


@settings(max_examples=15)
@given(st.lists(st.integers(0, N - 1), min_size=1, max_size=N))
def test_a_document_has_the_same_bits_alone_in_any_batch_and_in_any_order(fitted, rows):
    encoder, examples, prepared, expected = fitted
    with torch.no_grad():
        assert torch.equal(encoder(prepared.batch(np.array(rows))), expected[rows])
        assert torch.equal(encoder(prepared.batch(np.array(rows[:1]))), expected[rows[:1]])
        alone = encoder.prepare(examples.take(rows))  # prepared among other documents
        assert torch.equal(encoder(alone.batch(torch.arange(len(rows)))), expected[rows])


def test_the_same_on_two_threads(fitted):
    encoder, _, prepared, expected = fitted
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with torch.no_grad():
            assert torch.equal(encoder(prepared.batch(np.arange(3, 11))), expected[3:11])
    finally:
        torch.set_num_threads(threads)


@settings(max_examples=5)
@given(st.lists(st.integers(0, N - 1), min_size=1, max_size=40))
def test_with_gradients_it_is_the_same_up_to_rounding(fitted, rows):
    encoder, _, prepared, expected = fitted
    torch.testing.assert_close(encoder(prepared.batch(np.array(rows))).detach(), expected[rows], rtol=1e-5, atol=2e-6)


_LETTERS = (
    st.sampled_from("aBcZ09é _-.'1हिΣσς漢字ガーกั้ခြ๒e\u0301İIK\u212aﬁß=\u0338\u00a0\u2028\n\t\x1c\ud800½²ǅ")
    | st.characters()
)
_TEXTS = st.text(_LETTERS, max_size=60)


_ALONE = re.compile(f"[{_WITHOUT_BLANKS}]")


@settings(max_examples=400)
@given(_TEXTS)
def test_words_are_those_of_one_expression_over_the_whole_text(text):
    """However a text is taken apart for speed."""
    expected = _word_of_any_script().findall(normalize("NFC", text.lower()).replace("_", " "))
    assert words(text) == expected


@settings(max_examples=400)
@given(_TEXTS)
def test_letters_of_scripts_without_blanks_are_words_and_all_others_form_runs_as_if_these_were_blanks(text):
    """With their marks; so in a text that has none of them, words are unbroken runs as they always were."""
    folded = normalize("NFC", text.lower()).replace("_", " ")
    expected, alone, run = [], False, ""
    for letter in [*folded, " "]:
        mark = category(letter)[0] == "M" and letter <= "\uffff"
        if run and (mark or (not alone and letter.isalnum() and not _ALONE.match(letter))):
            run += letter
        else:
            expected += [run] if run else []
            run, alone = (letter, bool(_ALONE.match(letter))) if letter.isalnum() else ("", False)
    assert words(text) == expected
    if not _ALONE.search(folded):
        assert words(text) == _word_of_any_script(without_blanks=False).findall(folded)


def test_every_letter_of_a_script_without_blanks_is_found_by_its_first_byte():
    scripts = ("CJK UNIFIED", "CJK COMPATIBILITY IDEO", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
    for code in range(sys.maxunicode + 1):
        folded = normalize("NFC", chr(code).lower())
        if category(folded[0])[0] == "L" and (
            _ALONE.search(folded) or unicodedata.name(folded[0], "").startswith(scripts)
        ):
            assert chr(code).encode("utf-8", "surrogatepass")[0] in _THEIR_FIRST_BYTES
            assert _ALONE.search(folded)


@settings(max_examples=150)
@given(_TEXTS, st.integers(1, 9), st.integers(1, 4), st.integers(1, 30))
def test_sentences_hold_the_first_words_in_pieces_that_are_not_too_long(text, most, longest, times):
    found = sentences(text * times, most, longest)
    assert all(1 <= len(line) <= longest for line in found)
    whole = sentences(text * times, 10**6, 10**6)
    flat = [word for line in whole for word in line]
    assert [word for line in found for word in line] == flat[:most]


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["Beer", "rum", "It.", "so!", "J.", "\n\n", "x"]), max_size=40), st.integers(1, 12))
def test_a_text_that_is_cut_has_the_sentences_of_the_whole(parts, most):
    text = " ".join(parts)
    whole, left, expected = sentences(text, 10**6, 10**6), most, []
    for line in whole:
        if left > 0:
            expected.append(line[:left])
            left -= len(line)
    assert sentences(text, most, 10**6) == expected


@settings(max_examples=25)
@given(st.lists(_TEXTS, min_size=1, max_size=6))
def test_any_texts_are_encoded(texts):
    for name, options in (("textcnn", {"filters": 2}), ("han", {"hidden": 2}), ("bowcnn", {"filters": 2, "pools": 2})):
        examples = documents([*texts, "one word"])
        encoder = make(name, **options).fit(examples, generator=torch.Generator().manual_seed(0)).eval()
        with torch.no_grad():
            assert torch.isfinite(encoder(encoder.prepare(examples).batch(np.arange(len(examples))))).all()


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.lists(st.integers(0, 6), max_size=14), min_size=1, max_size=4),
    size=st.integers(1, 9),
    pools=st.integers(1, 5),
    average=st.booleans(),
)
def test_sliding_over_a_text_is_summing_every_region_anew_and_so_are_gradients(texts, size, pools, average):
    from hilap.encoders.bowcnn import _Slide

    draw = torch.Generator().manual_seed(len(texts))
    table, bias = (torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True) for shape in ((7, 3), 3))
    words = torch.tensor([word for text in texts for word in text], dtype=torch.long)
    starts = torch.tensor([0, *np.cumsum([len(text) for text in texts])])
    slid = _Slide.apply(table, bias, words, starts, size, pools, average)
    pool = torch.nn.functional.adaptive_avg_pool1d if average else torch.nn.functional.adaptive_max_pool1d
    plain = []
    for text in texts:
        regions = [set(text[i : i + size]) - {0} for i in range(max(1, len(text) - size + 1))]
        sums = torch.stack([table[sorted(region)].sum(0) + bias for region in regions])
        plain.append(pool(torch.relu(sums).T[None], pools)[0].T)
    expected = torch.stack(plain)
    torch.testing.assert_close(slid, expected)
    weight = torch.randn(expected.shape, generator=draw, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((found * weight).sum(), (table, bias)) for found in (slid, expected))
    torch.testing.assert_close(ours, theirs)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.lists(st.integers(0, 6), max_size=9), min_size=1, max_size=4),
    span=st.integers(1, 6),
)
def test_highest_answers_are_those_of_every_window_by_itself_and_so_are_gradients(texts, span):
    from hilap.encoders.textcnn import _Highest

    draw = torch.Generator().manual_seed(len(texts))
    vectors, weight = (
        torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True) for shape in ((7, 2), (3, span, 2))
    )
    words = torch.tensor([word for text in texts for word in text], dtype=torch.long)
    starts = torch.tensor([0, *np.cumsum([len(text) for text in texts])])
    found = _Highest.apply(vectors, weight, words, starts)
    plain = []
    for text in texts:
        nothing = torch.zeros(span - 1 if text else span, 2, dtype=torch.float64)
        line = torch.cat([nothing, vectors[torch.tensor(text, dtype=torch.long)], nothing])
        answers = [(line[i : i + span] * weight).sum((1, 2)) for i in range(len(line) - span + 1)]
        plain.append(torch.stack(answers).max(0).values)
    expected = torch.stack(plain)
    torch.testing.assert_close(found, expected)
    share = torch.randn(expected.shape, generator=draw, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((rows * share).sum(), (vectors, weight)) for rows in (found, expected))
    torch.testing.assert_close(ours, theirs)


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    hidden=st.integers(1, 20),
    size=st.sampled_from([1.0, 30.0, 1000.0]),
)
def test_compiled_states_are_those_of_torchs_gru_and_so_are_gradients(lengths, hidden, size):
    from hilap.encoders.ragged import RaggedGRU, ends, packed_order

    gru = RaggedGRU(3, hidden)
    gru.draw(torch.Generator().manual_seed(hidden))
    gru.double()
    rows = torch.tensor(lengths)
    draw = torch.Generator().manual_seed(len(lengths))
    vectors = (size * torch.randn(int(rows.sum()), 3, generator=draw, dtype=torch.float64)).requires_grad_()
    ours = torch.cat([gru._looped(vectors, ends(rows), backward) for backward in (False, True)], dim=1)
    order, sizes = packed_order(rows)
    packed = torch.nn.utils.rnn.PackedSequence(vectors[order], sizes)
    theirs = gru.cell(packed)[0].data[torch.argsort(order)]
    torch.testing.assert_close(ours, theirs)
    share = torch.randn(theirs.shape, generator=draw, dtype=torch.float64)
    learned = (vectors, *gru.parameters())
    found, expected = (torch.autograd.grad((states * share).sum(), learned) for states in (ours, theirs))
    torch.testing.assert_close(found, expected)
