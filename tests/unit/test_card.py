"""The model card: it names the commands that work with the model it lies beside."""

from __future__ import annotations

import re

import pytest

from hilap import HiLAPClassifier
from hilap.baselines import method
from hilap.corpus import Examples
from hilap.encoders import MLP, Several, TfIdf
from tests.contract.classifiers import TREE, documents, texts

SMALL = {"hidden": 12, "width": 5, "supervised_epochs": 1, "reinforced_epochs": 1, "flat_epochs": 1}


def commands(model, folder) -> list[str]:
    model.save(folder)
    card = (folder / "README.md").read_text(encoding="utf-8")
    line = next(line for line in card.splitlines() if line.startswith("On the command line: "))
    return re.findall(r"`(.*?)`", line)


@pytest.mark.parametrize(
    ("variant", "data", "encoder", "explained"),
    [
        ("hilap", texts(), "tfidf", ["hilap explain FOLDER TEXT"]),
        ("flat", texts(), "tfidf", ["hilap explain FOLDER TEXT"]),  # no walk, but words
        ("hilap", documents(), "mlp", ["hilap explain FOLDER --values NUMBERS"]),
        ("flat", documents(), "mlp", []),
    ],
)
def test_it_says_how_a_document_is_explained_where_there_is_something_to_show(
    variant, data, encoder, explained, tmp_path
):
    model = HiLAPClassifier(TREE, variant=variant, encoder=encoder, encoder_options={"hidden": (9,)}, **SMALL)
    assert commands(model.fit(*data), tmp_path / "m") == [
        "hilap predict FOLDER INPUT --out FILE",
        *explained,
        "hilap inspect FOLDER",
    ]


def test_a_model_of_texts_and_features_needs_both_to_explain(tmp_path):
    X, y = texts()
    examples = Examples.of(TREE, y, texts=X, features=documents()[0])
    model = HiLAPClassifier(encoder=Several([TfIdf(hidden=8), MLP(hidden=8)]), **SMALL).fit(examples)
    assert "hilap explain FOLDER TEXT --values NUMBERS" in commands(model, tmp_path / "m")


@pytest.mark.parametrize("name", ["svm", "flat"])
@pytest.mark.parametrize(("data", "explained"), [(texts(), ["hilap explain FOLDER TEXT"]), (documents(), [])])
def test_a_system_to_compare_with_has_no_walk_but_words_to_explain(name, data, explained, tmp_path):
    model = method(name)(TREE, **({"epochs": 1} if name == "flat" else {})).fit(*data)
    found = commands(model, tmp_path / "m")
    assert found == ["hilap predict FOLDER INPUT --out FILE", *explained, "hilap inspect FOLDER"]


@pytest.mark.parametrize("name", ["c-hmcnn", "clus-hmc", "hilap"])
@pytest.mark.parametrize("refit", [True, False])
def test_it_says_whose_scores_those_are_after_a_refit(name, refit, tmp_path):
    X, y = documents()
    options = {"c-hmcnn": {"epochs": 1}, "hilap": SMALL}.get(name, {})
    kind = HiLAPClassifier if name == "hilap" else method(name)
    model = kind(TREE, refit=refit, **options).fit(X[10:], y[10:], valid=(X[:10], y[:10]))
    model.save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert ("these are the scores of the one before" in card) == refit
    assert model.n_documents_ == len(X) - 10 * (not refit)


@pytest.mark.parametrize(
    ("select", "says"), [("loss", r"the best was \d with validation loss \d\.\d+"), ("mean", r"with \d+\.\d\d ")]
)
def test_an_epoch_that_the_loss_chose_is_told_by_its_loss(select, says, tmp_path):
    model = method("flat")(TREE, epochs=1, select=select).fit(*documents())
    model.save(tmp_path / "m")
    (line,) = (line for line in (tmp_path / "m" / "README.md").read_text("utf-8").splitlines() if "epochs in" in line)
    assert re.search(says, line)
    (loss,) = (record["validation_loss"] for record in model.history_)
    assert (f"validation loss {loss:.3g}" in line) == (select == "loss")
    assert "with -" not in line


def test_it_has_the_settings_that_a_preset_supplied(tmp_path):
    method("hmcn")(TREE, epochs=1, hidden=7).fit(*documents()).save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    for name, value in {"hidden": 7, "batch_size": 32, "beta": 0.5, "dropout": 0.6, "encoder": "rows"}.items():
        assert re.search(rf"^\| {name} \| +{value} +\|$", card.replace("`", ""), re.MULTILINE), name
