"""TextCNN, bow-CNN and HAN against the same thing written with loops, and their gradients against torch's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hilap.corpus.examples import Examples
from hilap.encoders import make
from hilap.encoders.tokens import sentences, words
from hilap.taxonomy import Taxonomy

RANDOM = np.random.default_rng(0)
WORDS = [f"w{i}" for i in range(12)]
TEXTS = [
    "",
    "w1",
    "w1 w1",
    "stranger",
    "w3 stranger w3. W4 w4 w4 w5! W1",
    *[
        ". W0 ".join(" ".join(RANDOM.choice(WORDS, RANDOM.integers(1, 9))) for _ in range(RANDOM.integers(1, 6)))
        for _ in range(12)
    ],
]
MOST = 20


def fitted(name, **options):
    """An encoder that knows w0 to w11, and the documents."""
    known = Examples.of(Taxonomy.of({"a": []}), [[]], texts=[" ".join(WORDS)])
    encoder = make(name, max_words=MOST, **options).fit(known, generator=torch.Generator().manual_seed(3)).eval()
    return encoder, Examples.of(Taxonomy.of({"a": []}), [[]] * len(TEXTS), texts=TEXTS)


def batch_of(encoder, examples):
    return encoder.prepare(examples).batch(np.arange(len(examples)))


def predicted(encoder, examples):
    with torch.no_grad():
        return encoder(batch_of(encoder, examples)).numpy()


def number(encoder, word):
    return encoder.words.index(word) + 2 if word in encoder.words else 1


def double(tensor):
    return tensor.detach().double().numpy()


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.fixture(params=["compiled loops", "torch alone"])
def both_ways(request, monkeypatch):
    """The encoders as they are on the CPU, and as they are elsewhere."""
    from hilap.encoders import bowcnn, ragged, textcnn

    for module in (bowcnn, ragged, textcnn):
        monkeypatch.setattr(module, "loops_run", lambda tokens: request.param == "compiled loops")


# -- TextCNN ----------------------------------------------------------------------------------------------------------


def textcnn_by_loops(encoder, text, kernels):
    table = double(encoder.word_vectors.weight)
    found = []
    for kernel, weight, bias in zip(kernels, encoder.weights, encoder.biases, strict=True):
        line = [0] * (kernel - 1) + [number(encoder, w) for w in words(text, MOST)] + [0] * (kernel - 1)
        line = line if len(line) >= kernel else [0] * kernel
        for one, constant in zip(double(weight).reshape(len(bias), kernel, -1), double(bias), strict=True):
            answers = [
                sum(one[k] @ table[line[i + k]] for k in range(kernel)) + constant
                for i in range(len(line) - kernel + 1)
            ]
            found.append(max(0.0, *answers, 0.0))
    return found


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("kernels", [(3, 4, 5), (1,), (2, 30)])
def test_textcnn_is_the_highest_answer_of_each_filter_at_any_place(kernels):
    encoder, examples = fitted("textcnn", kernels=kernels, filters=7, dimensions=5)
    expected = [textcnn_by_loops(encoder, text, kernels) for text in TEXTS]
    close(predicted(encoder, examples), expected)
    close(encoder(batch_of(encoder, examples)).detach(), expected)


@pytest.mark.usefixtures("both_ways")
def test_textcnn_with_more_filters_than_are_worked_on_at_a_time():
    encoder, examples = fitted("textcnn", kernels=(2,), filters=230, dimensions=4)
    close(predicted(encoder, examples), [textcnn_by_loops(encoder, text, (2,)) for text in TEXTS])


def conv1d(encoder, examples, kernels):
    """With torch's own convolution and gradients, text by text."""
    rows = []
    for text in examples.texts:
        found = []
        for kernel, weight, bias in zip(kernels, encoder.weights, encoder.biases, strict=True):
            ids = [0] * (kernel - 1) + [number(encoder, w) for w in words(text, MOST)] + [0] * (kernel - 1)
            ids += [0] * (kernel - len(ids))
            vectors = F.embedding(torch.tensor(ids), encoder.word_vectors.weight, padding_idx=0)
            filters = weight.view(len(bias), kernel, -1).transpose(1, 2)
            found.append(F.relu(F.conv1d(vectors.T[None], filters, bias)[0].max(1).values))
        rows.append(torch.cat(found))
    return torch.stack(rows)


def gradients(encoder, vectors):
    encoder.zero_grad(set_to_none=True)
    weights = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(1))
    (vectors * weights).sum().backward()
    return {name: parameter.grad.to_dense() for name, parameter in encoder.named_parameters()}


@pytest.mark.usefixtures("both_ways")
def test_gradients_of_textcnn_are_those_of_torchs_convolution():
    encoder, examples = fitted("textcnn", kernels=(2, 3), filters=9, dimensions=5)
    ours = gradients(encoder, encoder(batch_of(encoder, examples)))
    theirs = gradients(encoder, conv1d(encoder, examples, (2, 3)))
    for name, grad in theirs.items():
        torch.testing.assert_close(ours[name], grad, rtol=1e-4, atol=1e-5, msg=name)


# -- bow-CNN ----------------------------------------------------------------------------------------------------------


def multi_hot(encoder, text, size):
    """(R, V) one row a region, 1 where a word of the vocabulary is in it."""
    line = [number(encoder, w) for w in words(text, MOST)]
    rows = np.zeros((max(1, len(line) - size + 1), len(encoder.words) + 2))
    for begin, row in enumerate(rows):
        row[[i for i in line[begin : begin + size] if i >= 2]] = 1
    return rows


def bowcnn_by_multi_hot(encoder, text, regions, pools, pooling):
    pool = {"average": F.adaptive_avg_pool1d, "max": F.adaptive_max_pool1d}[pooling]
    found = []
    for size, weight, bias in zip(regions, encoder.weights, encoder.biases, strict=True):
        answers = F.relu(torch.from_numpy(multi_hot(encoder, text, size)).to(weight.dtype) @ weight + bias)
        found.append(pool(answers.T[None], pools)[0].T.flatten())
    return torch.cat(found)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("pooling", ["average", "max"])
@pytest.mark.parametrize(("regions", "pools"), [((3,), 2), ((1, 4), 3), ((20,), 10), ((50,), 1)])
def test_bowcnn_is_a_convolution_of_multi_hot_regions(regions, pools, pooling):
    encoder, examples = fitted("bowcnn", regions=regions, filters=6, pools=pools, pooling=pooling)
    expected = [bowcnn_by_multi_hot(encoder, text, regions, pools, pooling).detach().numpy() for text in TEXTS]
    close(predicted(encoder, examples), expected)
    close(encoder(batch_of(encoder, examples)).detach(), expected)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("pooling", ["average", "max"])
def test_gradients_of_bowcnn_are_those_of_the_multi_hot_product(pooling):
    encoder, examples = fitted("bowcnn", regions=(2, 5), filters=6, pools=2, pooling=pooling)
    ours = gradients(encoder, encoder(batch_of(encoder, examples)))
    plain = torch.stack([bowcnn_by_multi_hot(encoder, text, (2, 5), 2, pooling) for text in TEXTS])
    theirs = gradients(encoder, plain)
    for name, grad in theirs.items():
        torch.testing.assert_close(ours[name], grad, rtol=1e-4, atol=1e-5, msg=name)


def test_regions_are_the_same_however_many_documents_are_worked_on_at_a_time(monkeypatch):
    from hilap.encoders import bowcnn, textcnn

    for name, module in (("bowcnn", bowcnn), ("textcnn", textcnn)):
        monkeypatch.setattr(module, "loops_run", lambda tokens: False)
        encoder, examples = fitted(name, filters=6)
        whole = predicted(encoder, examples)
        monkeypatch.setattr(module, "_CHUNK", 300)
        assert np.array_equal(predicted(encoder, examples), whole)


# -- HAN --------------------------------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru_by_loops(gru, rows):
    """Cho et al.'s unit, in both directions."""
    sides = []
    for ending, order in (("", 1), ("_reverse", -1)):
        wi, wh, bi, bh = (
            double(getattr(gru.cell, f"{kind}_l0{ending}")) for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        state, states = np.zeros(wh.shape[1]), []
        for row in rows[::order]:
            (ri, zi, ni), (rh, zh, nh) = np.split(wi @ row + bi, 3), np.split(wh @ state + bh, 3)
            update, new = sigmoid(zi + zh), np.tanh(ni + sigmoid(ri + rh) * nh)
            state = (1 - update) * new + update * state
            states.append(state)
        sides.append(states[::order])
    return np.concatenate(sides, axis=1)


def attention_by_loops(attention, states):
    weight, bias, question = (double(part) for part in (attention.weight, attention.bias, attention.question))
    scores = np.array([np.exp(question[0] @ np.tanh(weight @ state + bias)) for state in states])
    return (scores / scores.sum()) @ states


def han_by_loops(encoder, text, longest):
    table = double(encoder.word_vectors.weight)
    found = []
    for sentence in sentences(text, MOST, longest):
        rows = np.array([table[number(encoder, word)] for word in sentence])
        found.append(attention_by_loops(encoder.word_attention, gru_by_loops(encoder.word_gru, rows)))
    if not found:
        return np.zeros(encoder.dim)
    return attention_by_loops(encoder.sentence_attention, gru_by_loops(encoder.sentence_gru, np.array(found)))


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(("hidden", "longest"), [(3, 50), (5, 4), (1, 1)])
def test_han_is_two_grus_with_attention(hidden, longest):
    encoder, examples = fitted("han", hidden=hidden, dimensions=4, sentence_words=longest)
    expected = [han_by_loops(encoder, text, longest) for text in TEXTS]
    close(predicted(encoder, examples), expected)
    close(encoder(batch_of(encoder, examples)).detach(), expected)


@pytest.mark.usefixtures("both_ways")
def test_gradients_of_han_are_the_slopes_of_what_it_gives():
    """Against differences in double precision, in a direction that moves every weight."""
    encoder, examples = fitted("han", hidden=3, dimensions=4)
    encoder.double()
    batch = batch_of(encoder, examples)
    grads = gradients(encoder, encoder(batch))
    weights = torch.randn(len(TEXTS), encoder.dim, generator=torch.Generator().manual_seed(1)).double()
    for name, parameter in encoder.named_parameters():
        direction = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2)).double()
        if name == "word_vectors.weight":
            direction[0] = 0  # nothing learns nothing
        values = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                parameter += step * direction
                values.append((encoder(batch) * weights).sum())
                parameter -= step * direction
        slope = (values[0] - values[1]) / 2e-5
        torch.testing.assert_close((grads[name] * direction).sum(), slope, rtol=1e-4, atol=1e-6, msg=name)
