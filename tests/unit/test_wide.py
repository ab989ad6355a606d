"""The wide part: is it the linear model it says, honest where it must be, and part of the classifier in every way?"""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import hilap
from hilap import HiLAPClassifier, wide
from hilap.consistent.condensing import condensed
from hilap.consistent.structured import solve
from hilap.corpus import Examples
from hilap.encoders import TfIdf
from hilap.encoders.static import read_vectors
from hilap.errors import HilapError, ModelError, SettingError
from hilap.storage import load_folder, save_folder
from hilap.taxonomy import Taxonomy
from hilap.wide import Wide, cross_fit
from tests.contract.pretrained import SPECIAL, word_pieces, write_bert

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": [], "never": ["d"]})
FOUR = Taxonomy.of({name: [] for name in "abcd"})
WORDS = {"b": "beer bar pub", "c": "cake tea cafe", "d": "dog cat bird"}
SMALL = {
    "preset": "residual",
    "encoder": "none",
    "wide": True,
    "sees": "profile",
    "folds": 3,
    "flat_epochs": 1,
    "reinforced_epochs": 2,
    "rollouts": 2,
    "hidden": 8,
    "width": 4,
}


def texts(n: int = 60, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(seed)
    labels = [[label for label in WORDS if rng.random() < 0.5] for _ in range(n)]
    found = []
    for row in labels:
        words = [word for label in row for word in rng.permutation(WORDS[label].split())[:2]]
        found.append(" ".join([*words, *rng.permutation(["the", "of", "and", "some", "any"])[:3]]))
    return found, labels


def problem(n: int = 40, seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = sparse.csr_array(np.where(rng.random((n, 12)) < 0.4, rng.random((n, 12)), 0).astype(np.float32))
    gold = np.zeros((n, 4), dtype=np.int32)
    gold[:, 0] = rows.toarray()[:, 0] > 0.2
    gold[:, 1] = rng.random(n) < 0.4
    gold[:, 3] = 1  # label 2 never occurs, label 3 always
    return rows, sparse.csr_array(gold)


def folds_of(n: int, k: int, repeats: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [np.sort(fold) for _ in range(repeats) for fold in np.array_split(rng.permutation(n), k)]


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_honest_margins_are_those_of_svms_that_have_not_seen_the_document(loss, monkeypatch):
    monkeypatch.setattr(wide, "TOLERANCE", 1e-6)  # the hinge is flat near its optimum: other margins cost as much
    rows, labels = problem()
    folds = folds_of(40, 4, 2)
    found = cross_fit(rows, labels, folds, repeats=2, strength=0.7, loss=loss, taxonomy=FOUR)
    raw = np.full((2, 40, 4), np.nan)
    weight, bias = np.zeros((12, 4)), np.zeros(4)
    for number, fold in enumerate(folds):
        rest = np.setdiff1d(np.arange(40), fold)
        for label in (0, 1):
            svm = LinearSVC(C=0.7, loss=loss, tol=1e-6, max_iter=100_000, random_state=0)
            svm.fit(rows.toarray()[rest], labels.toarray()[rest, label])
            raw[number // 4, fold, label] = svm.decision_function(rows.toarray()[fold])
            weight[:, label] += svm.coef_[0] / 8
            bias[label] += svm.intercept_[0] / 8
    raw[:, :, 2], raw[:, :, 3] = -1, 1
    bias[2:] = -1, 1
    slope = (found.honest[0, 1, 3] - found.honest[0, 1, 2]) / 2
    intercept = (found.honest[0, 1, 3] + found.honest[0, 1, 2]) / 2
    assert slope > 0
    np.testing.assert_allclose(found.honest, raw * slope + intercept, atol=2e-3)
    np.testing.assert_allclose(found.weight, weight * slope, atol=2e-3)
    np.testing.assert_allclose(found.bias, bias * slope + intercept, atol=2e-3)


def test_on_labels_without_edges_the_structured_loss_is_the_hinge_of_each(monkeypatch):
    monkeypatch.setattr(wide, "TOLERANCE", 1e-7)
    monkeypatch.setattr(wide, "SET_TOLERANCE", 1e-7)
    monkeypatch.setattr(wide, "SET_PASSES", 5_000)
    rows, labels = problem()
    each, together = (
        cross_fit(rows, labels, folds_of(40, 4, 2), repeats=2, strength=0.7, loss=loss, taxonomy=FOUR)
        for loss in ("hinge", "structured")
    )
    # Labels 2 and 3 have no SVM of their own there, so slope and intercept differ; the same ones for all labels.
    slope, intercept = np.polyfit(each.honest[..., :2].ravel(), together.honest[..., :2].ravel(), 1)
    assert slope > 0.2
    np.testing.assert_allclose(together.honest[..., :2], slope * each.honest[..., :2] + intercept, atol=2e-3)
    np.testing.assert_allclose(together.weight[:, :2], slope * each.weight[:, :2], atol=2e-3)
    np.testing.assert_allclose(together.bias[:2], slope * each.bias[:2] + intercept, atol=2e-3)
    assert each.weight[:, :2].std() > 0.1  # else nothing was compared


@pytest.mark.parametrize("condense", [False, True])
def test_honest_margins_with_the_structured_loss_have_not_seen_the_document(condense):
    chain = Taxonomy.of({"a": [], "b": ["a"], "c": ["b"], "d": []})
    rows, labels = problem(60)
    closed = labels.toarray()
    closed[:, 1] *= closed[:, 0]
    gold = sparse.csr_array(closed)
    folds = folds_of(60, 3, 2)
    kind = {"loss": "structured", "taxonomy": chain, "condense": condense}
    found = cross_fit(rows, gold, folds, repeats=2, strength=1.0, **kind)
    raw, weights = np.empty((2, 60, 4)), []
    for number, fold in enumerate(folds):
        rest = np.setdiff1d(np.arange(60), fold)
        given = sparse.csr_array(rows[rest], dtype=np.float64)
        weight, _ = solve(given, gold[rest], chain, cost=1.0, tolerance=0.01, passes=50, seed=number)
        raw[number // 3, fold] = rows[fold] @ weight[:-1] + weight[-1]
        weights.append(weight)
    read = np.mean([condensed(margins, chain) for margins in raw], axis=0) if condense else raw.mean(0)
    platt = LogisticRegression(C=1e6).fit(read.reshape(-1, 1), closed.ravel())
    slope, intercept = platt.coef_[0, 0], platt.intercept_[0]
    weight = np.mean(weights, axis=0)
    np.testing.assert_allclose(found.honest, slope * raw + intercept, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.weight, slope * weight[:-1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.bias, slope * weight[-1] + intercept, rtol=1e-4, atol=1e-4)


def test_condensed_structured_margins_under_a_policy_are_read_alike_before_and_after_saving(tmp_path):
    documents, labels = texts(80)
    made = HiLAPClassifier(TREE, **SMALL, wide_loss="structured", condense=True).fit(documents, labels)
    network, examples = made.network_, Examples.of(TREE, labels, texts=documents)
    logits = network.wide(network.prepare(examples).batch(np.arange(80)).wide)
    seen = torch.cat([seen.flat[:n] for seen, _, n in made.documents(examples)])
    np.testing.assert_allclose(seen, condensed(logits.numpy(), TREE), atol=1e-5)
    assert not np.allclose(seen, logits, atol=1e-3)  # else nothing was condensed
    made.save(tmp_path / "model")
    again = HiLAPClassifier.load(tmp_path / "model")
    assert again.condense
    np.testing.assert_array_equal(again.predict_proba(documents), made.predict_proba(documents))
    np.testing.assert_array_equal(again.predict(documents).toarray(), made.predict(documents).toarray())


def test_members_that_say_the_same_are_condensed_once(monkeypatch):
    documents, labels = texts(80)
    made = HiLAPClassifier(TREE, **SMALL, wide_loss="structured", condense=True).fit(documents, labels)
    assert len(made.network_.members) == SMALL["folds"]
    calls = []
    condensing = made.network_.condensing
    monkeypatch.setattr(made.network_, "condensing", lambda scores: calls.append(len(scores)) or condensing(scores))
    made.predict(documents)
    assert len(calls) == 1


def test_flat_logits_that_learn_with_the_policy_are_not_condensed():
    with pytest.raises(SettingError, match="no gradient goes through it; set folds above 1, or condense=False"):
        HiLAPClassifier(TREE, condense=True).check()
    HiLAPClassifier(TREE, condense=True, variant="flat").check()
    HiLAPClassifier(TREE, **SMALL, condense=True).check()


@pytest.mark.parametrize("loss", ["squared_hinge", "structured"])
@pytest.mark.parametrize("named", [False, True])
def test_condensed_logits_are_calibrated_as_a_whole(loss, named):
    chain = Taxonomy.of({"a": [], "b": ["a"], "c": ["b"], "d": []})
    rows, labels = problem(200)
    closed = labels.toarray()
    closed[:, 1] *= closed[:, 0]
    gold = sparse.csr_array(closed)
    called = sparse.csr_array(np.eye(4, 12, dtype=np.float32)) if named else None
    kind = {"loss": loss, "taxonomy": chain, "condense": True, "label_rows": called}
    found = cross_fit(rows, gold, folds_of(200, 5, 1), repeats=1, strength=1.0, **kind)
    chances = 1 / (1 + np.exp(-condensed(found.honest[0], chain)))
    assert chances.mean() == pytest.approx(closed.mean(), abs=1e-3)


def test_a_structured_loss_that_is_far_from_its_optimum_says_so(monkeypatch):
    monkeypatch.setattr(wide, "SET_PASSES", 1)
    rows, labels = problem(60)
    kind = {"loss": "structured", "taxonomy": FOUR}
    with pytest.warns(ConvergenceWarning, match=r"above its optimum after 1 passes .*wide_strength \(now 50\)"):
        cross_fit(rows, labels, folds_of(60, 3, 1), repeats=1, strength=50.0, **kind)


@pytest.mark.parametrize(("name", "value"), [("wide_loss", "hinge"), ("wide_strength", 0.5)])
def test_what_is_said_of_a_wide_part_that_is_not_there_is_refused(name, value):
    with pytest.raises(
        SettingError, match=f"{name} is of the wide part, which is not there; leave it out, or set wide"
    ):
        HiLAPClassifier(TREE, **{name: value}).check()


def test_logits_are_calibrated_as_a_whole():
    rows, labels = problem(200)
    found = cross_fit(rows, labels, folds_of(200, 5, 1), repeats=1, strength=1.0, taxonomy=FOUR)
    chances = 1 / (1 + np.exp(-found.honest.mean(0)))
    assert chances.mean() == pytest.approx(labels.toarray().mean(), abs=1e-3)


def test_a_likeness_to_the_label_is_a_second_voice():
    rows, labels = problem(200)
    called = sparse.csr_array(np.eye(4, 12, dtype=np.float32))
    folds = folds_of(200, 5, 1)
    margins, weight, bias = np.zeros((200, 4)), np.zeros((12, 4)), np.zeros(4)
    for fold in folds:
        rest = np.setdiff1d(np.arange(200), fold)
        for label in range(4):
            found, offset = np.zeros(12), 1.0 if label == 3 else -1.0
            if label < 2:
                svm = LinearSVC(C=1.0, tol=1e-6).fit(rows.toarray()[rest], labels.toarray()[rest, label])
                found, offset = svm.coef_[0], svm.intercept_[0]
            margins[fold, label] = rows[fold] @ found + offset
            weight[:, label] += found / 5
            bias[label] += offset / 5
    alike = (rows @ called.T).toarray()
    voices = np.stack([margins.ravel(), alike.ravel()], axis=1)
    platt = LogisticRegression(C=1e6).fit(voices, labels.toarray().ravel())
    (slope, named), intercept = platt.coef_[0], platt.intercept_[0]
    both = cross_fit(rows, labels, folds, repeats=1, strength=1.0, label_rows=called, taxonomy=FOUR)
    np.testing.assert_allclose(both.honest[0], slope * margins + named * alike + intercept, atol=1e-3)
    np.testing.assert_allclose(both.weight, slope * weight + named * called.T.toarray(), atol=1e-3)
    np.testing.assert_allclose(both.bias, slope * bias + intercept, atol=1e-3)


def test_the_name_speaks_for_a_label_that_no_document_has():
    taxonomy = Taxonomy.of({"a": [], "beer": ["a"], "dog": ["a"], "c": ["a"]})
    documents, labels = texts(80)
    sets = [["c"] if "c" in row else [] for row in labels]  # what is about beer is not labelled
    made = HiLAPClassifier(taxonomy, **SMALL, label_text=True).fit(documents, sets)
    chances = made.predict_proba(["beer", "dog"])
    beer, dog = taxonomy.index("beer"), taxonomy.index("dog")
    slope = made.network_.wide.weight[made.network_.wide.terms.terms.index("beer")]
    assert slope[beer] != slope[dog]
    assert (chances[0, beer] > chances[0, dog]) == (slope[beer] > slope[dog])


@pytest.mark.parametrize("value", [0, 1])
def test_labels_that_never_or_always_occur_leave_margins_as_they_are(value):
    rows, labels = problem()
    same = sparse.csr_array(np.full(labels.shape, value, dtype=np.int32))
    found = cross_fit(rows, same, folds_of(40, 2, 1), repeats=1, strength=1.0, taxonomy=FOUR)
    np.testing.assert_array_equal(found.honest, 2 * value - 1)


def test_it_is_a_linear_function_of_the_rows():
    documents, labels = texts()
    examples = Examples.of(TREE, labels, texts=documents)
    terms = TfIdf(hidden=(1,)).fit(examples, generator=torch.Generator().manual_seed(0))
    part = Wide(terms, len(TREE))
    torch.manual_seed(0)
    part.weight.normal_()
    part.bias.normal_()
    rows = np.array([3, 1, 1, 7])
    expected = terms.tfidf_matrix(examples).toarray()[rows] @ part.weight.numpy() + part.bias.numpy()
    np.testing.assert_allclose(part(part.prepare(examples).batch(rows)).numpy(), expected, atol=1e-5)
    assert not [weight for weight in part.parameters() if weight.requires_grad]


@pytest.fixture(scope="module")
def fitted():
    return HiLAPClassifier(TREE, **SMALL).fit(*texts(), valid=texts(30, 1))


def test_it_learns_texts_whose_words_give_the_labels_away(fitted):
    assert fitted.score(*texts(50, 2)) > 0.9


def test_what_the_network_says_is_what_members_and_wide_part_say(fitted):
    documents, labels = texts(9, 3)
    examples = Examples.of(TREE, labels, texts=documents)
    with hilap.network.evaluating(fitted.network_) as network:
        batch = network.prepare(examples).batch(np.arange(9))
        deep = torch.stack([member(batch)[1] for member in network.members]).mean(0)
        torch.testing.assert_close(network.see(batch).flat, deep + network.wide(batch.wide))
        assert network.wide.weight.abs().sum() > 0


def test_a_document_gets_the_same_in_any_company(fitted):
    documents, _ = texts(23, 4)
    together = fitted.predict_proba(documents)
    order = np.random.default_rng(0).permutation(23)
    np.testing.assert_array_equal(fitted.predict_proba([documents[i] for i in order]), together[order])
    np.testing.assert_array_equal(np.concatenate([fitted.predict_proba([text]) for text in documents]), together)


def test_saving_changes_nothing(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = hilap.load(tmp_path / "model")
    documents, _ = texts(23, 4)
    np.testing.assert_array_equal(again.predict_proba(documents), fitted.predict_proba(documents))
    assert (again.predict(documents) != fitted.predict(documents)).nnz == 0


@pytest.mark.parametrize("more", [{"encoder": "tfidf", "encoder_options": {"hidden": (4,)}}, {"pool_validation": True}])
def test_a_broken_run_ends_as_an_unbroken_one(more, tmp_path):
    from hilap.training.callbacks import Callback

    class Stop(Callback):
        def on_epoch(self, record):
            if record["phase"] == "reinforced":
                raise KeyboardInterrupt

    def made():
        return HiLAPClassifier(TREE, **{**SMALL, **more})

    whole = made().fit(*texts(), valid=texts(30, 1))
    with pytest.raises(KeyboardInterrupt):
        made().fit(*texts(), valid=texts(30, 1), checkpoint=tmp_path / "c", callbacks=[Stop()])
    resumed = made().fit(*texts(), valid=texts(30, 1), checkpoint=tmp_path / "c", resume=True)
    for name, value in whole.network_.state_dict().items():
        assert torch.equal(value, resumed.network_.state_dict()[name]), name


def test_heads_beside_a_wide_part_start_at_zero():
    made = HiLAPClassifier(TREE, **{**SMALL, "flat_epochs": 0}).fit(*texts(), valid=texts(30, 1))
    assert all(not weight.any() for member in made.network_.members for weight in member.head.parameters())


def test_features_alone_have_no_words():
    with pytest.raises(HilapError, match="reads texts, but these documents have none"):
        HiLAPClassifier(TREE, **{**SMALL, "encoder": "mlp"}).fit(np.ones((20, 3)), [["b"]] * 20)


def test_a_wide_part_that_would_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(wide, "MOST_WEIGHTS", 10)
    with pytest.raises(SettingError, match=r"would have \d+ terms x 5 labels; give wide_options a smaller"):
        HiLAPClassifier(TREE, **SMALL).fit(*texts())


def test_an_unknown_option_is_named():
    with pytest.raises(SettingError, match="tfidf encoder has no setting 'max_word'; did you mean 'max_words'"):
        HiLAPClassifier(TREE, **SMALL, wide_options={"max_word": 3}).fit(*texts())


def refused_when_changed(made, change, folder):
    """A model whose description of the wide part was changed is not opened."""
    made.save(folder / "model")
    stored = load_folder(folder / "model")
    change(stored.extra["encoders"]["wide"])
    parts = {"settings": stored.settings, "taxonomy": stored.taxonomy, "tensors": stored.tensors, "extra": stored.extra}
    save_folder(folder / "changed", kind=stored.kind, **parts)
    with pytest.raises(ModelError, match=r"do not fit together|is missing"):
        hilap.load(folder / "changed")


@pytest.mark.parametrize(
    "change",
    [
        lambda wide: wide["learned"]["terms"].append("more"),
        lambda wide: wide.pop("learned"),
        lambda wide: wide.update(settings={"colour": 1}),
        lambda wide: wide.update(settings=3),
    ],
)
def test_a_strangers_model_that_does_not_fit_together_is_refused(fitted, change, tmp_path):
    refused_when_changed(fitted, change, tmp_path)


# -- vectors beside the words -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Static vectors of our words: what beer, bars and pubs have in common is in them, though not in the words."""
    pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(0)
    known = [word for row in WORDS.values() for word in row.split()] + ["the", "of", "and", "some", "any", "ale"]
    table = rng.normal(0, 0.1, (len(known), 3)).astype(np.float32)
    for column, row in enumerate(WORDS.values()):
        for word in row.split():
            table[known.index(word), column] += 1
    table[known.index("ale")] = table[known.index("beer")]
    save_file({"embeddings": np.vstack([np.zeros((len(SPECIAL), 3), np.float32), table])}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(json.dumps(word_pieces(known)))
    return folder


def beside(vectors, **more):
    return HiLAPClassifier(
        TREE, **{**SMALL, "wide_vectors": "static", "wide_vector_options": {"vectors": str(vectors)}, **more}
    )


@pytest.fixture(scope="module")
def with_vectors(vectors):
    return beside(vectors).fit(*texts(), valid=texts(30, 1))


def test_rows_are_words_and_unit_vectors_side_by_side(with_vectors):
    part = with_vectors.network_.wide
    documents = [*texts(9, 3)[0], "", "unheard"]
    examples = Examples.of(TREE, [[]] * len(documents), texts=documents)
    found = part.rows(examples)
    words = part.terms.tfidf_matrix(examples).toarray()
    encoder = part.vectors
    with torch.no_grad():
        plain = encoder(encoder.prepare(examples).batch(np.arange(len(documents)))).numpy()
    expected = np.hstack([words, plain / np.linalg.norm(plain, axis=1, keepdims=True)])
    assert found.shape == (11, len(part.terms.terms) + 3) == (11, part.weight.shape[0])
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)
    assert found.has_sorted_indices
    batch = part.prepare(examples).batch(np.arange(11))
    np.testing.assert_allclose(part(batch), expected @ part.weight.numpy() + part.bias.numpy(), atol=1e-5)


def test_a_word_never_seen_speaks_by_its_vector(with_vectors, fitted):
    label = TREE.index("b")
    seen, unseen, silent = (with_vectors.predict_proba([text])[0, label] for text in ("beer", "ale", "unheard"))
    assert seen > unseen > silent
    alone = [fitted.predict_proba([text])[0, label] for text in ("ale", "unheard")]
    assert alone[0] == alone[1]


def test_vectors_stay_as_they_are_and_are_saved(with_vectors, vectors, tmp_path):
    table = with_vectors.network_.wide.vectors.table
    assert torch.equal(table, torch.from_numpy(read_vectors(str(vectors))[1]))
    with_vectors.save(tmp_path / "model")
    again = hilap.load(tmp_path / "model")
    documents, _ = texts(23, 4)
    np.testing.assert_array_equal(again.predict_proba(documents), with_vectors.predict_proba(documents))
    together = with_vectors.predict_proba(documents)
    np.testing.assert_array_equal(np.concatenate([again.predict_proba([text]) for text in documents]), together)


def test_a_saved_model_does_not_name_the_folder_of_vectors_that_are_kept(tmp_path):
    pytest.importorskip("transformers")
    model = write_bert(tmp_path / "bert")
    options = {"model": str(model), "max_tokens": 20, "cache": str(tmp_path / "kept")}
    made = HiLAPClassifier(TREE, **SMALL, wide_vectors="transformer", wide_vector_options=options)
    made.fit(*texts(), valid=texts(30, 1)).save(tmp_path / "model")
    assert list((tmp_path / "kept").iterdir())
    assert all(b"kept" not in path.read_bytes() for path in (tmp_path / "model").glob("*.json"))
    again = hilap.load(tmp_path / "model")
    assert again.get_params()["wide_vector_options"] == {"model": str(model), "max_tokens": 20}
    np.testing.assert_array_equal(again.predict_proba(texts(9, 3)[0]), made.predict_proba(texts(9, 3)[0]))


def test_labels_are_called_by_words_and_vectors(vectors):
    called = Taxonomy.of({"b": [], "ale": []}, names={"b": "beer", "ale": "ale"})
    documents = ["beer bar", "cake tea", "beer pub", "cake cafe"] * 10
    made = HiLAPClassifier(
        called,
        **{**SMALL, "label_text": True, "wide_vectors": "static", "wide_vector_options": {"vectors": str(vectors)}},
    ).fit(documents, [["b"] if "beer" in text else [] for text in documents])
    chances = made.predict_proba(["pub ale", "tea cafe"])
    assert chances[0, 1] > chances[1, 1]  # no training document has the label, and no word of it is in one


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"wide_vectors": "tfidf"}, "wide_vectors must be one of 'static', 'transformer', got 'tfidf'"),
        ({"wide": False, "wide_vectors": "static"}, "wide_vectors must be none unless wide is true, got 'static'"),
        ({"wide_vector_options": {"vectors": "x"}}, "wide_vector_options are of the wide part's vectors"),
        ({"wide_vectors": "off", "wide_vector_options": {}}, "wide_vector_options are of the wide part's vectors"),
        (
            {"wide_vectors": "transformer", "wide_vector_options": {"frozen": False}},
            "wide_vector_options: frozen is for vectors that go through layers or learn",
        ),
        ({"wide_options": ["bigrams"]}, r"wide_options must be names with values, got \['bigrams'\]"),
        (
            {"wide_vectors": "static", "wide_vector_options": "wordllama"},
            "wide_vector_options must be names with values, got 'wordllama'",
        ),
        ({"wide_vectors": "static", "wide_vector_options": {"hidden": 3}}, "wide_vector_options: hidden is for"),
        ({"wide_vectors": "static", "wide_vector_options": {"vector": "x"}}, "has no setting 'vector'; did you mean"),
    ],
)
def test_vectors_that_cannot_be_are_refused_before_anything_is_read(given, message):
    with pytest.raises(SettingError, match=message):
        HiLAPClassifier(TREE, **{**SMALL, **given}).check()


@pytest.mark.parametrize(
    "change",
    [
        lambda wide: wide["vectors"].pop("learned"),
        lambda wide: wide["vectors"].update(name="tfidf"),
        lambda wide: wide.update(vectors=None),
        lambda wide: wide.update(vectors=3),
    ],
)
def test_vectors_of_a_strangers_model_that_do_not_fit_are_refused(with_vectors, change, tmp_path):
    refused_when_changed(with_vectors, change, tmp_path)


@pytest.mark.parametrize("loss", ["squared_hinge", "structured"])
def test_without_labels_there_is_nothing_to_solve(loss):
    rows, _ = problem(20)
    none = sparse.csr_array((20, 0), dtype=np.int32)
    found = cross_fit(rows, none, folds_of(20, 2, 1), repeats=1, strength=1.0, loss=loss, taxonomy=Taxonomy.of({}))
    assert found.weight.shape == (12, 0)
    assert found.honest.shape == (1, 20, 0)


@pytest.mark.parametrize("loss", ["squared_hinge", "structured"])
def test_threads_change_nothing(loss):
    rows, labels = problem(120)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            kind = {"taxonomy": FOUR, "loss": loss}
            found.append(cross_fit(rows, labels, folds_of(120, 3, 2), repeats=2, strength=0.5, **kind))
    finally:
        torch.set_num_threads(before)
    for name in ("weight", "bias", "honest"):
        np.testing.assert_array_equal(*(getattr(one, name) for one in found))
