"""Which words spoke for a label, against a recomputation by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hilap import HiLAPClassifier, attribution
from hilap.attribution import words
from hilap.corpus.examples import Examples
from hilap.encoders import tokens
from hilap.errors import SettingError
from hilap.taxonomy import Taxonomy

TREE = Taxonomy.of({"food": [], "bars": ["food"], "law": [], "never": ["law"]})
DAG = Taxonomy.of({"food": [], "pubs": [], "bars": ["food", "pubs"], "law": []})
EVIDENT = {"bars": "craft beer pint", "food": "dinner menu", "law": "court ruling"}
TEXT = "We had craft beer, and dinner at the Court; craft!"


def documents(n=64):
    sets = [[label for k, label in enumerate(EVIDENT) if (i >> k) & 1] for i in range(n)]
    return [" ".join(["we had", *(EVIDENT[label] for label in labels)]) for labels in sets], sets


def trained(taxonomy=TREE, **settings):
    small = {"encoder_options": {"hidden": 24}, "hidden": 16, "width": 8, "learning_rate": 0.01, "batch_size": 16}
    epochs = {"flat_epochs": 8, "supervised_epochs": 8, "reinforced_epochs": 3}
    return HiLAPClassifier(taxonomy, **{**small, **epochs, **settings}).fit(*documents())


@pytest.fixture(scope="module")
def flat():
    return trained(variant="flat")


@pytest.fixture(scope="module")
def walking():
    return trained()


def left_out(text, word):
    """The text without a word, by hand."""
    kept = [part for part in text.split(" ") if part.strip(",;!").casefold() != word.casefold()]
    return " ".join(kept)


def flat_logits(classifier, text):
    """TF-IDF, layers and head, in double precision."""
    network = classifier.network_
    encoder = network.encoder
    x = encoder.tfidf_matrix(Examples.of(TREE, [[]], texts=[text])).toarray().astype(np.float64)
    for weight, bias in zip(encoder.layers.weights, encoder.layers.biases, strict=True):
        x = np.maximum(x @ weight.detach().double().numpy() + bias.detach().double().numpy(), 0)
    head = network.members[0].head
    return (x @ head.weight.detach().double().numpy().T + head.bias.detach().double().numpy())[0]


def test_scores_are_the_logits_that_are_lost_without_the_word(flat):
    found = words(flat, TEXT)
    assert {*found} == {label for labels in flat.taxonomy_.decode(flat.predict([TEXT])) for label in labels}
    whole = flat_logits(flat, TEXT)
    for label, scores in found.items():
        k = TREE.index(label)
        assert {scored.word for scored in scores} == {
            "We",
            "had",
            "craft",
            "beer",
            "and",
            "dinner",
            "at",
            "the",
            "Court",
        }
        for scored in scores:
            expected = whole[k] - flat_logits(flat, left_out(TEXT, scored.word))[k]
            assert scored.score == pytest.approx(expected, abs=1e-4)
        assert [scored.score for scored in scores] == sorted((scored.score for scored in scores), reverse=True)


def test_the_words_that_the_labels_come_from_are_on_top(flat):
    learned = trained(residual=True, supervised_epochs=16, reinforced_epochs=10)  # a walk that has learned its lesson
    assert learned.score(*documents()) == 1
    for classifier in (flat, learned):
        for label, text in EVIDENT.items():
            found = words(classifier, f"we had {text}", top=1)
            assert found[label][0].word in text.split()


@pytest.fixture(scope="module")
def recommended():
    return HiLAPClassifier(TREE, preset="residual", reinforced_epochs=2).fit(*documents())


def test_the_recommended_policy_ranks_words_by_what_they_add_to_its_linear_part(recommended):
    text = "we had dinner, craft beer and a pint; we had a ruling"
    wide = recommended.network_.wide
    row = wide.rows(Examples.of(TREE, [[]], texts=[text])).toarray()[0]
    found = words(recommended, text)
    assert {*found} == {"food", "bars", "law"}
    for label, scores in found.items():
        added = row * wide.weight[:, TREE.index(label)].numpy()  # weight x value
        known = dict(zip(wide.terms.terms, added.tolist(), strict=True))
        # Equal ones go as they stand in the text: "craft" and "beer" are always together.
        expected = sorted(
            ["we", "had", "dinner", "craft", "beer", "and", "a", "pint", "ruling"],
            key=lambda word: -round(known.get(word, 0.0), 4),
        )
        by_score = sorted(scores, key=lambda scored: (-round(scored.score, 3), expected.index(scored.word)))
        assert [scored.word for scored in by_score] == expected
        for scored in scores:
            assert np.sign(round(scored.score, 4)) == np.sign(known.get(scored.word, 0.0))


def test_a_sure_step_has_words_too(recommended):
    text = "we had craft beer pint"
    steps = recommended.explain([text])[0]
    sure = {step.action for step in steps if step.probability > 0.9999} - {"stop"}
    assert sure
    found = words(recommended, text)
    for label in sure:
        assert found[label][0].word in EVIDENT["bars"].split()
        assert found[label][0].score > 1


def test_the_papers_policy_finds_the_planted_word():
    texts, labels = documents()
    planted = [f"{text} zebra" if "law" in own else text for text, own in zip(texts, labels, strict=True)]
    small = {"encoder_options": {"hidden": 24}, "hidden": 32, "width": 16, "learning_rate": 0.01, "batch_size": 16}
    classifier = HiLAPClassifier(TREE, preset="paper", **small, supervised_epochs=20, reinforced_epochs=10)
    classifier.fit(planted, labels)
    assert classifier.score(planted, labels) == 1
    # The second is placed at bars too: one step's words must not be taken for another's.
    for text in ("we had a zebra", "we had craft beer and a zebra"):
        found = words(classifier, text)
        assert found["law"][0].word == "zebra"
        assert found["law"][0].score > 1
        for label in {*found} - {"law"}:
            assert found[label][0].word in ("craft", "beer")


def test_the_default_is_what_decides(flat, walking, recommended):
    for classifier, by in ((flat, "flat"), (recommended, "flat"), (walking, "action")):
        assert words(classifier, TEXT)
        assert words(classifier, TEXT) == words(classifier, TEXT, by=by)


def by_walk(classifier, text, steps):
    """The log-odds of each step's action for another text, by the policy itself in its plainest form."""
    network = classifier.network_.eval()
    policy = network.policy
    with torch.no_grad():
        batch = network.encoder.prepare(Examples.of(classifier.taxonomy_, [[]], texts=[text])).batch(np.array([0]))
        docs = network.documents(network.see(batch), classifier._bias(classifier.decode_))
        walk, found = policy.start(1), []
        taken = [classifier.taxonomy_.index(step) for step in steps if step != "stop"]
        placed = {k for action in taken for k in policy.places.of(torch.tensor([action]))[1].tolist()}
        for action in taken:
            against = [k for k in walk.open[0].nonzero().squeeze(1).tolist() if k not in placed]
            chances = policy.log_probs(docs, torch.tensor([0]), walk.at, walk.open)[0].double().exp()
            found.append(float(torch.log(chances[action]) - torch.log(chances[against].sum())))
            walk = policy.step(walk, torch.tensor([action]))
    return found


@pytest.mark.parametrize("taxonomy", [TREE, DAG], ids=["tree", "dag"])
def test_scores_of_a_walk_are_the_odds_that_its_own_actions_lose(taxonomy):
    classifier = trained(taxonomy, stop_bias=0.1)
    steps = [step.action for step in classifier.explain([TEXT])[0]]
    whole = by_walk(classifier, TEXT, steps)
    found = words(classifier, TEXT, by="action")
    assert found
    for label, scores in found.items():
        # The step that placed the label is the first whose action is the label or lies below it.
        number = next(i for i, action in enumerate(steps) if label in taxonomy.close([action]))
        for scored in scores:
            expected = whole[number] - by_walk(classifier, left_out(TEXT, scored.word), steps)[number]
            assert scored.score == pytest.approx(expected, abs=1e-3)


def test_scores_by_probability_are_log_odds(flat):
    chance = flat.predict_proba([TEXT, left_out(TEXT, "beer")])[:, TREE.index("food")].astype(np.float64)
    odds = np.log(chance / (1 - chance))
    found = {scored.word: scored.score for scored in words(flat, TEXT, by="probability")["food"]}
    assert found["beer"] == pytest.approx(odds[0] - odds[1], abs=1e-4)
    supervised = trained(variant="sl")
    assert words(supervised, TEXT) == words(supervised, TEXT, by="probability")


def test_every_place_of_a_word_is_left_out_at_once(flat):
    seen = []
    predict_proba = flat.predict_proba
    flat.predict_proba = lambda examples: seen.extend(examples.texts) or predict_proba(examples)
    try:
        words(flat, "Beer! beer\n(BEER) court", by="probability")
    finally:
        del flat.predict_proba
    assert {*seen} == {"Beer! beer\n(BEER) court", "court", "Beer! beer\n(BEER) "}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", []),
        (" , -- ! ", []),
        ("  two  words ", ["two", "words"]),
        ("漢字 beer", ["漢", "字", "beer"]),
        ("USB接口，25個", ["USB", "接", "口", "25", "個"]),
        ("カ\u3099ラス ไทยที่", ["カ\u3099", "ラ", "ス", "ไ", "ท", "ย", "ที่"]),  # letters with their marks
        ("हिन्दी का की के उपयोग", ["हिन्दी", "का", "की", "के", "उपयोग"]),
        ("«हिन्दी», \u0940", ["हिन्दी"]),  # a mark without a letter is none
        ("beer❤\ufe0f beer!", ["beer"]),  # nor one on a sign
        ("café CAFE\u0301", ["café"]),
        ("don't (stop)", ["don't", "stop"]),
    ],
)
def test_what_counts_as_a_word(text, shown):
    variants = attribution._Variants(text)
    assert variants.shown == shown
    assert variants.without(np.zeros(0, dtype=np.int64)) == text


def test_leaving_out_a_word_leaves_others_of_the_same_letters():
    variants = attribution._Variants("हिन्दी का की के")
    assert variants.without(np.array([variants.shown.index("का")])) == "हिन्दी की के"


@pytest.mark.parametrize(
    "text", ["カタカナとひらがな", "ภาษาไทย ที่นี่", "漢字かな交じり文 mixed 123", "हिन्दी का की", "한국어 단어"]
)
def test_words_are_those_of_the_tokeniser(text):
    seen = dict.fromkeys(tokens.words(text))
    assert attribution._Variants(text).shown == [*seen]


def test_a_step_without_a_choice_has_no_words():
    chances = torch.log_softmax(torch.randn(3, 4), dim=1)
    assert attribution._log_odds(chances, 1, torch.zeros(4, dtype=torch.bool)).tolist() == [0, 0, 0]


def test_a_long_text_is_looked_at_a_bounded_number_of_times(flat, monkeypatch):
    filler = [f"word{i}" for i in range(1_000)]
    text = " ".join([*filler[:5], "craft", "beer", *filler[5:]])
    looked = []
    examples = attribution._Given.examples
    monkeypatch.setattr(
        attribution._Given, "examples", lambda self, texts: looked.extend(texts) or examples(self, texts)
    )
    found = words(flat, text, most=50)["bars"]
    assert len(looked) <= 2 * 50 + 3
    alone = {scored.word: scored.score for scored in words(flat, text, most=2_000)["bars"]}  # every word by itself
    assert len(alone) == 1_002
    assert len(found) <= 50
    assert found[0].word == max(alone, key=alone.__getitem__)
    for scored in found:
        assert scored.score == pytest.approx(alone[scored.word], abs=1e-5)
    looked.clear()
    assert len(words(flat, text, most=4)["bars"]) <= 4  # groups of groups: 251 words, then 63, 16 and 4
    assert len(looked) <= 5 * 4 + 7


def test_large_texts_are_looked_at_in_small_lots(flat, monkeypatch):
    expected = words(flat, TEXT)
    monkeypatch.setattr(attribution, "_LETTERS", 60)
    for label, scores in words(flat, TEXT).items():
        for one, other in zip(scores, expected[label], strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-5)


def test_a_text_without_labels_has_no_words(flat):
    assert words(flat.with_decoding(threshold=1.0), TEXT) == {}


def test_features_go_along_with_every_variant():
    rows = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    texts, labels = documents()
    examples = Examples.of(TREE, labels, texts=texts, features=rows)
    parts = [{"encoder": kind, "options": {"hidden": 16}} for kind in ("tfidf", "mlp")]
    classifier = HiLAPClassifier(
        encoder="several", encoder_options={"parts": parts}, variant="flat", flat_epochs=8, learning_rate=0.02
    ).fit(examples)
    found = words(classifier, "we had craft beer pint", features=rows[0], top=3)
    two = Examples.of(TREE, [[]] * 2, texts=["we had craft beer pint", "we had craft pint"], features=rows[[0, 0]])
    (seen, _, _), *_ = classifier.documents(two)
    lost = (seen.flat[0] - seen.flat[1])[TREE.index("bars")]
    scores = {scored.word: scored.score for scored in found["bars"]}
    assert scores["beer"] == pytest.approx(float(lost), abs=1e-4)
    with pytest.raises(SettingError, match="this classifier needs the document's features too"):
        words(classifier, "we had")


def test_what_cannot_be_asked_is_told(flat):
    features = HiLAPClassifier(TREE, variant="flat", flat_epochs=1).fit(np.eye(20), [["law"], []] * 10)
    for asked, says in (
        (lambda: words(features, TEXT), "only a classifier whose encoder reads texts"),
        (lambda: words(flat, TEXT, features=[1.0]), "this classifier reads no features"),
        (lambda: words(flat, TEXT, by="action"), "by='action' needs a policy that walks"),
        (lambda: words(flat, TEXT, by="magic"), "by must be 'action', 'flat' or 'probability', got 'magic'"),
        (lambda: words(flat, [TEXT]), "text must be one text"),
        (lambda: words(flat, TEXT, top=0), "top must be a whole number"),
        (lambda: words(flat, TEXT, most=1), "most must be a whole number, at least 2"),
    ):
        with pytest.raises(SettingError, match=says):
            asked()


def test_any_classifier_with_probabilities_can_be_asked():
    class Keyword:
        """Says law to court, and nothing else."""

        taxonomy_ = TREE

        def predict_proba(self, examples):
            chances = np.full((len(examples), len(TREE)), 0.1)
            chances[:, TREE.index("law")] = [0.9 if "court" in text else 0.2 for text in examples.texts]
            return chances

        def predict(self, examples):
            from scipy import sparse

            return sparse.csr_array(self.predict_proba(examples) > 0.5)

    found = words(Keyword(), "the court sat")
    assert [scored.word for scored in found["law"]] == ["court", "the", "sat"]
    assert found["law"][0].score == pytest.approx(np.log(0.9 / 0.1) - np.log(0.2 / 0.8))
    with pytest.raises(SettingError, match="by='flat' needs a network with a flat head"):
        words(Keyword(), "the court sat", by="flat")
