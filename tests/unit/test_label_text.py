"""Label texts: are weights what the texts encode to, does all of it learn, and is nothing left of it afterwards?"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

import hilap
from hilap import HiLAPClassifier, label_text
from hilap.corpus import Examples
from hilap.encoders import Encoder, make
from hilap.errors import SettingError
from hilap.label_text import Called, Tie, label_rows, label_texts
from hilap.network import Network, evaluating, supervised_loss
from hilap.settings import PolicySettings
from hilap.taxonomy import Taxonomy
from hilap.training.callbacks import Callback
from tests.contract.pretrained import WORDS, needs, tiny

TREE = Taxonomy.of(
    {"a": [], "b": ["a"], "c": ["a"], "d": [], "e": ["d"]},
    {"a": "beer", "b": "craft beer", "c": "a b", "d": "law", "e": "court unheard"},
)
TEXTCNN = {"preset": "light", "kernels": [1, 2], "filters": 6, "dropout": 0.3}
KINDS = [
    "textcnn",
    "bowcnn",
    "han",
    "static",
    "static tuned",
    "static bare",
    "transformer",
    "transformer tuned",
    "tfidf",
]
SMALL = {
    "encoder": "textcnn",
    "encoder_options": TEXTCNN,
    "hidden": 8,
    "width": 5,
    "batch_size": 8,
    "supervised_epochs": 2,
    "reinforced_epochs": 2,
    "learning_rate": 0.01,
}
CROSS_FITTED = {"preset": "residual", "folds": 2, "flat_epochs": 2, "rollouts": 2}


def documents(n: int = 24, seed: int = 0, taxonomy: Taxonomy = TREE) -> Examples:
    """Texts with the words of their labels' names, and features."""
    random = np.random.default_rng(seed)
    texts, sets = [], []
    for _ in range(n):
        mine = [str(label) for label in taxonomy.labels if random.random() < 0.3]
        words = [word for label in mine for word in taxonomy.name(label).split()]
        texts.append(" ".join([*words, *random.choice([*"fghij"], 3)]))
        sets.append(mine)
    return Examples.of(taxonomy, sets, texts=texts, features=random.normal(size=(n, 3)).astype(np.float32))


def encoder_of(kind: str, folder: Path, examples: Examples) -> Encoder:
    for package in needs(kind):
        pytest.importorskip(package)
    small = {
        "textcnn": TEXTCNN,
        "bowcnn": {"preset": "light", "filters": 6, "regions": [2], "pools": 1},
        "han": {"preset": "light"},
        "tfidf": {"hidden": (7,)},
    }
    made = make(kind, **small[kind]) if kind in small else tiny(kind, folder)
    return made.fit(examples, generator=torch.Generator().manual_seed(1))


def network_of(encoders: list[Encoder], examples: Examples, way: str, **policy) -> Network:
    generator = torch.Generator().manual_seed(2)
    network = Network(examples.taxonomy, encoders, PolicySettings(hidden=9, width=4, **policy), generator)
    network.call_labels(label_rows(examples.taxonomy, encoders[0], examples.features), way, generator)
    return network


def vectors_of(encoder: Encoder, taxonomy: Taxonomy, features: np.ndarray | None = None) -> torch.Tensor:
    """(L, D) the texts of labels, encoded one by one as any document would be; a label has the mean of all features."""
    found = []
    with evaluating(encoder):
        for label in taxonomy.labels:
            names = [taxonomy.name(above) for above in (label, *taxonomy.ancestors(label))]
            text = f"{taxonomy.name(label)}. {' '.join(names)}"
            rows = None if features is None else features.mean(0, keepdims=True)
            found.append(encoder(encoder.prepare(Examples.of(taxonomy, [[]], texts=[text], features=rows)).batch([0])))
    return torch.cat(found)


def centred(vectors: torch.Tensor) -> torch.Tensor:
    away = vectors - vectors.mean(0)
    return away / away.norm(dim=1).square().mean().sqrt()


# -- the values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_weights_start_at_the_encoders_vectors_mapped(kind, tmp_path):
    examples = documents()
    encoder = encoder_of(kind, tmp_path, examples)
    started, tied = (network_of([encoder], examples, way, start_scale=0.5) for way in ("start", "tied"))
    wanted = centred(vectors_of(encoder, TREE))
    torch.testing.assert_close(started.members[0].head.weight, wanted / 3**0.5, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(started.policy.label[:-1], wanted @ tied.tie.map.T, atol=1e-5, rtol=1e-4)
    plain = Network(
        TREE, [encoder], PolicySettings(hidden=9, width=4, start_scale=0.5), torch.Generator().manual_seed(2)
    )
    assert torch.equal(started.policy.label[-1], plain.policy.label[-1])  # the root has no text
    assert torch.equal(started.policy.e_stop, plain.policy.e_stop)
    assert {*started.state_dict()} == {*plain.state_dict()}


def test_rows_are_about_as_long_as_those_that_are_drawn():
    taxonomy = Taxonomy.of({f"w{k}": [] for k in range(200)})
    examples = documents(400, taxonomy=taxonomy)
    encoder = make("textcnn", preset="light").fit(examples, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(0)
    network = Network(taxonomy, [encoder], PolicySettings(width=50), generator)
    weights = network.members[0].head.weight, network.policy.label
    drawn = [weight.norm(dim=1).square().mean().sqrt().item() for weight in weights]
    network.call_labels(label_rows(taxonomy, encoder), "start", generator)
    weights = network.members[0].head.weight, network.policy.label
    for weight, size in zip(weights, drawn, strict=True):
        assert weight.norm(dim=1).square().mean().sqrt().item() == pytest.approx(size, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tied_weight_is_the_free_part_and_the_map_of_what_the_text_encodes_to_now(kind, tmp_path):
    examples = documents()
    encoder = encoder_of(kind, tmp_path, examples)
    network = network_of([encoder], examples, "tied")
    member, random = network.members[0], torch.Generator().manual_seed(5)
    first = vectors_of(encoder, TREE)
    with torch.no_grad():  # as if all had learned
        for weight in (weight for weight in network.parameters() if weight.requires_grad):
            weight += 0.1 * torch.randn(weight.shape, generator=random)
    mean = first.mean(0)
    now = (vectors_of(encoder, TREE) - mean) / (first - mean).norm(dim=1).square().mean().sqrt()
    batch = network.prepare(examples).batch(np.arange(8))
    with evaluating(network):
        seen = network.see(batch)
        network.documents(seen)
        head = member.tie.free + now * member.tie.map
        torch.testing.assert_close(member.head.weight, head, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(seen.flat, encoder(batch) @ head.T + member.head.bias, atol=1e-3, rtol=1e-3)
        labels = network.tie.free[:-1] + now @ network.tie.map.T
        torch.testing.assert_close(network.policy.label[:-1], labels, atol=1e-4, rtol=1e-3)
        assert torch.equal(network.policy.label[-1], network.tie.free[-1])


def test_several_encoders_take_the_features_of_a_label_as_missing():
    examples = documents()
    parts = [{"encoder": "textcnn", "options": TEXTCNN}, {"encoder": "mlp", "options": {"hidden": 4}}]
    encoder = make("several", parts=parts).fit(examples, generator=torch.Generator().manual_seed(0))
    network = network_of([encoder], examples, "start")
    wanted = centred(vectors_of(encoder, TREE, examples.features)) / 3**0.5
    torch.testing.assert_close(network.members[0].head.weight, wanted, atol=1e-5, rtol=1e-4)
    made = HiLAPClassifier(**{**SMALL, "encoder": encoder, "encoder_options": None}, label_text="tied").fit(examples)
    assert made.predict(examples).shape == (24, 5)


def test_labels_that_are_all_called_the_same_get_no_vectors():
    taxonomy = Taxonomy.of({"a": [], "b": []}, {"a": "beer", "b": "beer"})
    examples = documents(taxonomy=taxonomy)
    encoder = encoder_of("textcnn", Path(), examples)
    assert not network_of([encoder], examples, "start").members[0].head.weight.any()


# -- learning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["textcnn", "han", "static", "static tuned", "transformer tuned"])
def test_gradients_reach_the_encoder_the_maps_and_the_free_parts(kind, tmp_path):
    examples = documents()
    encoder = encoder_of(kind, tmp_path, examples)
    network = network_of([encoder], examples, "tied")
    seen = network.see(network.prepare(examples).batch(np.arange(24)))
    gold = torch.from_numpy(examples.labels.toarray().astype(bool))
    supervised_loss(network.policy, network.documents(seen), seen.flat, gold, flat_share=0.5).sum().backward()
    member = network.members[0]
    for weight in (member.tie.free, member.tie.map, network.tie.free, network.tie.map):
        assert weight.grad.abs().max() > 0

    # And to the encoder also through the texts: documents alone give another gradient.
    whole = {name: weight.grad.to_dense() for name, weight in encoder.named_parameters() if weight.grad is not None}
    encoder.zero_grad()
    network.fold()
    torch.manual_seed(0)
    seen = network.see(network.prepare(examples).batch(np.arange(24)))
    supervised_loss(network.policy, network.documents(seen), seen.flat, gold, flat_share=0.5).sum().backward()
    assert any(not torch.allclose(whole[name], weight.grad.to_dense()) for name, weight in encoder.named_parameters())


def test_the_gradient_of_some_labels_is_in_the_mean_that_of_all(monkeypatch):
    examples = documents()
    encoder = encoder_of("textcnn", Path(), examples)
    rows = label_rows(TREE, encoder)
    encoder.eval()  # without dropout, so that nothing but the draw is random
    target = torch.randn(5, encoder.dim, generator=torch.Generator().manual_seed(0))

    def gradients(called: Called) -> list[torch.Tensor]:
        encoder.zero_grad()
        found = called(encoder)
        torch.testing.assert_close(found, whole(encoder))
        (found * target).sum().backward()
        return [weight.grad.to_dense() for weight in encoder.parameters()]

    whole = Called(rows, encoder)
    wanted = gradients(whole)
    monkeypatch.setattr(label_text, "FRESH", 2)
    some = Called(rows, encoder)
    assert some.vectors.shape == (5, encoder.dim)
    draws = list(itertools.combinations(range(5), 2))
    means = [torch.zeros_like(gradient) for gradient in wanted]
    for draw in draws:
        order = torch.tensor([*draw, *(k for k in range(5) if k not in draw)])
        with monkeypatch.context() as patch:
            patch.setattr(torch, "randperm", lambda n, order=order: order)
            patch.setattr(whole, "_learning", lambda encoder: whole._encode_all(encoder))
            for mean, gradient in zip(means, gradients(some), strict=True):
                mean += gradient / len(draws)
    for mean, gradient in zip(means, wanted, strict=True):
        torch.testing.assert_close(mean, gradient, atol=1e-5, rtol=1e-4)


def test_labels_that_are_not_drawn_are_remembered_and_judged_exactly(monkeypatch):
    monkeypatch.setattr(label_text, "FRESH", 2)
    examples = documents()
    encoder = encoder_of("textcnn", Path(), examples)
    called = Called(label_rows(TREE, encoder), encoder)
    before = called.still(encoder).clone()
    with torch.no_grad():
        for weight in encoder.parameters():
            weight += 0.2
    monkeypatch.setattr(torch, "randperm", lambda n: torch.tensor([3, 1, 0, 2, 4]))
    encoder.eval()
    learning, exact = called(encoder), called.still(encoder)
    for label in range(5):
        wanted = exact if label in (1, 3) else before
        torch.testing.assert_close(learning[label], wanted[label], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(exact, before)
    torch.testing.assert_close(called.eval()(encoder), exact)


def test_an_encoder_that_does_not_learn_encodes_texts_once(tmp_path, monkeypatch):
    examples = documents()
    encoder = encoder_of("static bare", tmp_path, examples)
    network = network_of([encoder], examples, "tied")
    batch = network.prepare(examples).batch(np.arange(4))
    network.see(batch)
    asked = []
    monkeypatch.setattr(Called, "_encode_all", lambda self, encoder: asked.append(1))
    network.see(batch)
    network.documents(network.see(batch))
    assert not asked


SIBLINGS = {f"L{k}": ["top"] for k in range(8)} | {"never": ["top"]}
WORD_OF = {f"L{k}": WORDS[k] for k in range(8)} | {"never": "court"}


def sibling_documents(n: int = 200) -> tuple[list[str], list[list[str]]]:
    """Each document has the word of its label four times, and words that say nothing; no one has `never`'s word."""
    random = np.random.default_rng(0)
    labels = [f"L{random.integers(8)}" for _ in range(n)]
    noise = [*"lmnopq"]
    return [" ".join([*[WORD_OF[x]] * 4, *random.choice(noise, 2)]) for x in labels], [[x] for x in labels]


def likings(way: str | bool, name: str, folder: Path, **settings) -> np.ndarray:
    """Flat probabilities of the label that no document has, called `name`, for "court", "law" and siblings' words."""
    pytest.importorskip("tokenizers")
    from tests.contract.pretrained import write_vectors

    write_vectors(folder / "vectors", width=48)
    taxonomy = Taxonomy.of({"top": [], **SIBLINGS}, {"top": "s", **WORD_OF, "never": name})
    options = {"vectors": str(folder / "vectors"), "hidden": None}
    given = {"variant": "flat", "flat_epochs": 15, "learning_rate": 0.01, **settings}
    made = HiLAPClassifier(taxonomy, encoder="static", encoder_options=options, label_text=way, **given)
    made.fit(*sibling_documents())
    chances = made.predict_proba([f"{word} {word} {word} {word} l m" for word in ("court", "law", *WORDS[:8])])
    return chances[:, taxonomy.index("never")]


def test_a_label_without_documents_speaks_for_those_that_share_its_words(tmp_path):
    tied = likings("tied", "court", tmp_path)
    assert tied[0] > 2 * tied[2:].max()
    free = likings(False, "court", tmp_path)
    assert free[0] < 2 * free[2:].max()  # without its text, its own word is nothing special


def test_the_score_of_a_label_without_documents_depends_on_its_text(tmp_path):
    court, law = (likings("tied", name, tmp_path)[:2] for name in ("court", "law"))
    assert court[0] > law[0]
    assert law[1] > court[1]
    assert np.array_equal(likings(False, "court", tmp_path), likings(False, "law", tmp_path))


# -- what is left of it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["start", "tied"])
@pytest.mark.parametrize("settings", [{}, CROSS_FITTED, {"variant": "flat"}])
def test_a_trained_network_is_a_plain_one_and_saving_keeps_its_bits(way, settings, tmp_path):
    examples = documents(40)
    made = HiLAPClassifier(**{**SMALL, **settings}, label_text=way).fit(examples)
    plain = HiLAPClassifier(**{**SMALL, **settings}).fit(examples)
    assert {*made.network_.state_dict()} == {*plain.network_.state_dict()}
    assert not any(isinstance(part, (Called, Tie)) for part in made.network_.modules())
    assert not np.array_equal(made.predict_proba(examples), plain.predict_proba(examples))
    made.save(tmp_path / "model")
    loaded = hilap.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(examples), made.predict_proba(examples))
    assert (loaded.predict(examples) != made.predict(examples)).nnz == 0
    loaded.save(tmp_path / "again")
    for path in (tmp_path / "model").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_folding_changes_no_bit_of_what_the_network_says():
    examples = documents()
    encoders = [make("textcnn", **TEXTCNN).fit(examples, generator=torch.Generator().manual_seed(k)) for k in (0, 1)]
    network = network_of(encoders, examples, "tied", sees="flat")
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.1
    batch = network.prepare(examples).batch(np.arange(24))

    def said() -> tuple[torch.Tensor, torch.Tensor]:
        with evaluating(network):
            seen = network.see(batch)
            documents = network.documents(seen)
            at = torch.full((24,), network.policy.root)
            return seen.flat, network.policy.scores(documents, torch.arange(24), at)

    before = said()
    network.fold()
    assert all(torch.equal(one, other) for one, other in zip(before, said(), strict=True))


@pytest.mark.parametrize("way", ["start", "tied"])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(way):
    examples = documents(40)
    one, same, other = (HiLAPClassifier(**SMALL, label_text=way, seed=s).fit(examples) for s in (0, 0, 1))
    ours, theirs = one.network_.state_dict(), same.network_.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    assert not torch.equal(one.network_.policy.label, other.network_.policy.label)


def test_a_document_is_answered_alike_alone_and_in_company():
    examples = documents(40)
    made = HiLAPClassifier(**SMALL, label_text="tied").fit(examples)
    together = made.predict_proba(examples)
    for rows in ([0], [3, 1], [39, 5, 5, 7, 2, 11, 0]):
        assert np.array_equal(made.predict_proba(examples.take(rows)), together[rows])


class Plug(Callback):
    """Breaks a run at its k-th batch."""

    def __init__(self, k: int) -> None:
        self.left = k

    def on_batch(self, documents: int, loss: float) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("fresh", [2, 256])
@pytest.mark.parametrize("settings", [{}, {**CROSS_FITTED, "wide": False}])
def test_broken_and_resumed_it_ends_at_the_same_bits(settings, fresh, tmp_path, monkeypatch):
    monkeypatch.setattr(label_text, "FRESH", fresh)

    def fit(path: Path, resume: bool, *plugs: Callback) -> HiLAPClassifier:
        made = HiLAPClassifier(**{**SMALL, **settings}, label_text="tied")
        return made.fit(documents(), valid=documents(9, 1), checkpoint=path, resume=resume, callbacks=plugs)

    whole = fit(tmp_path / "whole.safetensors", False).network_.state_dict()
    for k in (2, 7):
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / f"{k}.safetensors", False, Plug(k))
        again = fit(tmp_path / f"{k}.safetensors", True).network_.state_dict()
        assert all(torch.equal(value, again[name]) for name, value in whole.items()), k


# -- cross-fitting --------------------------------------------------------------------------------------------------


def test_where_scores_are_fixed_the_policy_learns_and_encoders_do_not(monkeypatch):
    better = itertools.count()
    monkeypatch.setattr("hilap.training.phases._judge_walk", lambda run: ({"select": float(next(better))}, None))
    settings = {**SMALL, **CROSS_FITTED, "wide": False, "label_text": "tied"}
    shorter, longer = (
        HiLAPClassifier(**{**settings, "reinforced_epochs": n}).fit(documents(40)).network_ for n in (0, 2)
    )
    before, after = shorter.members.state_dict(), longer.members.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert not torch.equal(shorter.policy.label, longer.policy.label)


def test_lent_members_give_the_result_of_training_them():
    settings = {**SMALL, **CROSS_FITTED, "wide": False, "label_text": "tied"}
    first = HiLAPClassifier(**settings).fit(documents(40))
    whole = HiLAPClassifier(**settings, gamma=0.5).fit(documents(40))
    lent = HiLAPClassifier(**settings, gamma=0.5).fit(documents(40), members=first)
    ours = lent.network_.state_dict()
    assert all(torch.equal(value, ours[name]) for name, value in whole.network_.state_dict().items())


def test_heads_beside_a_wide_part_start_at_zero():
    examples = documents()
    encoder = encoder_of("textcnn", Path(), examples)
    from hilap.encoders import TfIdf
    from hilap.wide import Wide

    generator = torch.Generator().manual_seed(0)
    wide = Wide(TfIdf(hidden=(1,)).fit(examples, generator=generator), len(TREE))
    network = Network(TREE, [encoder], PolicySettings(), generator, wide)
    network.call_labels(label_rows(TREE, encoder), "start", generator)
    assert not network.members[0].head.weight.any()
    assert network.policy.label.any()


# -- messages -------------------------------------------------------------------------------------------------------

NEEDS = "needs an encoder that reads texts, as it encodes what labels are called with it, but"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"encoder": "mlp", "encoder_options": None}, f"label_text='tied' {NEEDS} 'mlp' reads feature rows; choose"),
        (
            {**CROSS_FITTED, "encoder": "none", "encoder_options": None},
            f"label_text='tied' {NEEDS} 'none' reads nothing; .* or set label_text=True, which the wide part can use",
        ),
        ({**CROSS_FITTED, "encoder": None, "encoder_options": None}, f"label_text='tied' {NEEDS} 'none' reads nothing"),
        ({"label_text": "ties"}, "label_text must be true, false, 'start' or 'tied', got 'ties'"),
        ({"label_text": True}, "label_text must be false, 'start' or 'tied' unless wide is true, got True"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(settings, says):
    texts = documents()
    with pytest.raises(SettingError, match=says):
        HiLAPClassifier(TREE, **{**SMALL, "label_text": "tied", **settings}).fit([*texts.texts], texts.label_sets)


def test_an_encoder_that_cannot_is_refused_before_anything_is_read():
    with pytest.raises(SettingError, match="'mlp' reads feature rows"):
        HiLAPClassifier(encoder="mlp", label_text="start").check()


def test_feature_rows_have_no_texts_to_share_with_labels():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(SettingError, match=r"label_text='start' needs .* 'mlp' reads feature rows"):
        HiLAPClassifier(TREE, label_text="start").fit(rows, [["a"], []] * 10)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"label_text": "start"}, "members were trained with label_text 'tied', but this run has 'start'"),
        ({}, "members tied to label texts go on learning with the policy unless folds is above 1"),
    ],
)
def test_members_that_cannot_be_lent_are_refused(change, says):
    settings = {**SMALL, "flat_epochs": 1, "label_text": "tied"}
    first = HiLAPClassifier(**settings).fit(documents(40))
    with pytest.raises(SettingError, match=says):
        HiLAPClassifier(**{**settings, **change}).fit(documents(40), members=first)


def test_a_label_is_called_by_its_name_its_definition_and_the_names_above_it():
    taxonomy = Taxonomy.of(
        {"x": [], "y": [], "z": ["x", "y"], "u": ["z"]},
        {"x": "Food", "y": "Shops", "z": "Bars", "u": "Pubs"},
        definitions={"y": "Where one buys.", "z": "Where one drinks."},
    )
    assert label_texts(taxonomy) == [
        "Food",
        "Shops Where one buys.",
        "Bars Where one drinks. Food Shops",
        "Pubs Food Shops Bars",
    ]


def test_a_very_long_definition_drowns_neither_the_name_nor_the_path():
    words = [f"word{i}" for i in range(10_000)]
    taxonomy = Taxonomy.of({"Food": [], "Craft Beer": ["Food"]}, definitions={"Craft Beer": " ".join(words)})
    assert label_texts(taxonomy)[1].split() == ["Craft", "Beer", *words[:30], "Food"]


def test_a_definition_moves_the_vector_of_its_label_alone():
    examples = documents()
    encoder = make("tfidf", hidden=(7,)).fit(examples, generator=torch.Generator().manual_seed(1))
    defined = Taxonomy.of(
        {label: TREE.parents(label) for label in TREE},
        dict(zip(TREE.labels, TREE.names, strict=True)),
        definitions={"e": "beer f g"},
    )
    with evaluating(encoder):
        before, after = (
            encoder(label_rows(taxonomy, encoder).batch(np.arange(len(TREE)))) for taxonomy in (TREE, defined)
        )
    assert (before != after).any(1).tolist() == [False, False, False, False, True]
