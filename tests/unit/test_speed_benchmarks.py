"""The speed benchmarks: the straightforward ways give the same vectors, time is counted once, files have it all."""

from __future__ import annotations

import gzip
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

BENCH = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCH))

import encoders  # noqa: E402
import label_text  # noqa: E402
import linear  # noqa: E402
import predict  # noqa: E402

from hilap.encoders import make  # noqa: E402

WORDS = ["the", "of", "and", "craft", "beer", "beers", "pub", "court", "law", "tax", "ale", "rum", "judge", "Åse", "x"]


def texts(n: int, length: int = 40) -> list[str]:
    """Some words often, some rarely, stop words among them, in sentences."""
    rng = np.random.default_rng(3)
    share = 1 / np.arange(1, len(WORDS) + 1)
    lines = rng.choice(WORDS, (n, length), p=share / share.sum()).tolist()
    return [". ".join(" ".join(line[i : i + 9]).capitalize() for i in range(0, length, 9)) for line in lines]


@pytest.fixture
def threads(monkeypatch):
    """The commands set the number of threads; other tests want theirs back."""
    before = torch.get_num_threads()
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    yield
    torch.set_num_threads(before)


def both(name: str, lines: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """The vectors of texts by an encoder that was fitted on others, and by the straightforward way."""
    if encoders.missing(name):
        pytest.skip(encoders.missing(name))
    (preset, *_) = encoders.presets(name, ["light"])
    encoder = make(name, **encoders.options_of(name, preset, 40))
    encoder.fit(encoders.documents(texts(20)), generator=torch.Generator().manual_seed(0))
    way, examples, rows = encoders.PLAIN[name](encoder), encoders.documents(lines), np.arange(len(lines))
    with torch.no_grad():
        return encoder(encoder.prepare(examples).batch(rows)), way.forward(way.prepare(examples).batch(rows))


@pytest.mark.parametrize("name", encoders.PLAIN)
def test_straightforward_ways_give_the_vectors_of_the_encoders(name):
    found, plain = both(name, [*texts(5)[2:], texts(1)[0].replace("beer", "unheard")])
    assert found.abs().max() > 0.01
    assert (found[0] - found[1]).abs().max() > 0.001
    torch.testing.assert_close(found, plain, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", [*encoders.FROM_TEXT, "wordgraph"])
def test_straightforward_ways_read_short_texts_too(name):
    found, plain = both(name, ["", "beer", "the", "Beer, beer and a judge's tax 🍺", texts(1, 90)[0]])
    torch.testing.assert_close(found, plain, atol=1e-4, rtol=1e-4)


def test_every_text_encoder_is_timed():
    others = {"mlp", "several", "none"}  # the docstring says why
    assert set(encoders.PLAIN) | others == set(encoders.ENCODERS)
    assert all(name in encoders.__doc__ for name in (*encoders.PLAIN, *others))


def test_nothing_is_timed_where_vectors_differ(monkeypatch):
    def other(encoder):
        way = encoders.plain_tfidf(encoder)
        return way._replace(forward=lambda batch: way.forward(batch) + 0.01)

    monkeypatch.setitem(encoders.PLAIN, "tfidf", other)
    monkeypatch.setattr(encoders, "rate", lambda *_: pytest.fail("it was timed"))
    with pytest.raises(SystemExit, match="tfidf : the straightforward way gives other vectors, by 1e-02"):
        encoders.measured("tfidf", "", texts(30), 40, 1)


def test_no_text_is_timed_twice():
    """An encoder that remembers texts would look them up."""
    numbers: list[int] = []
    encoders.rate(numbers.append, 1, 3)
    assert numbers == [0, 1, 2, 3]
    seen: list[str] = []
    encoders.preparing(lambda examples: seen.extend(examples.texts), texts(4), 2, 3)
    encoders.predicting_texts(lambda examples: _Noting(seen, examples), lambda _: None, texts(4), 2, 3)
    assert len(seen) == len({*seen}) == 16


class _Noting:
    def __init__(self, seen, examples):
        seen.extend(examples.texts)

    def batch(self, rows):
        return rows


@pytest.mark.usefixtures("threads")
def test_the_file_has_every_row_and_why_one_is_missing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(encoders, "VOCABULARY", 200)
    monkeypatch.setattr(encoders, "PREDICT_BATCH", 20)
    monkeypatch.setitem(encoders.NEEDS, "static", ("no_such_package",))
    names = ["textcnn", "tfidf", "static"]
    encoders.main([*names, "--preset", "light", "--words", "16", "--batches", "1", "--json", str(tmp_path / "x.json")])
    found = json.loads((tmp_path / "x.json").read_text())
    assert [(row["encoder"], row["preset"], row["predict_from_text"]) for row in found["rows"]] == [
        ("textcnn", "light", False),
        ("tfidf", None, True),
    ]
    assert found["skipped"] == {"static": "the package no-such-package is not here; pip install no-such-package"}
    assert found["words"] == 16
    for row in found["rows"]:
        assert row["difference"] < 1e-4
        assert row["prepare"] > 0
        for what in ("predict", "train"):
            assert row[f"{what}_ratio"] == pytest.approx(row[what] / row[f"{what}_plain"], rel=0.01)
    told = capsys.readouterr().out
    assert "tfidf*" in told
    assert "textcnn " in told
    assert "static       left out: the package no-such-package is not here" in told


# -- predict ----------------------------------------------------------------------------------------------------------


class Clock:
    """Functions that take a known time, one inside the other."""

    now = 0.0

    def inner(self) -> None:
        self.now += 3

    def outer(self) -> None:
        self.now += 1
        self.inner()
        self.now += 1


def test_time_inside_another_stage_is_counted_once(monkeypatch):
    clock, stages = Clock(), {}
    monkeypatch.setattr(predict.time, "process_time", lambda: clock.now)
    with predict.timed(stages, "outer", Clock, "outer"), predict.timed(stages, "inner", Clock, "inner"):
        clock.outer()
        clock.outer()
        clock.inner()
    assert stages == {"outer": 4, "inner": 9}


@pytest.fixture
def data(tmp_path) -> Path:
    """A data directory with one small set."""
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    parents = {"bars": [], "beer": ["bars"], "rum": ["bars"], "law": [], "tax": ["law"], "court": ["law"]}
    with open(folder / "taxonomy.jsonl", "w") as lines:
        lines.writelines(json.dumps({"label": k, "name": k, "parents": v}) + "\n" for k, v in parents.items())
    for part, n in (("train", 60), ("valid", 24)):
        with gzip.open(folder / f"{part}.jsonl.gz", "wt") as lines:
            for i, text in enumerate(texts(n)):
                label = ("beer", "rum", "tax", "court")[i % 4]
                labels = [label, *parents[label]]
                lines.write(json.dumps({"id": str(i), "text": f"{label} {text}", "labels": labels}) + "\n")
    return folder.parent


@pytest.mark.usefixtures("threads")
def test_predict_is_timed_by_stage(monkeypatch, data, tmp_path, capsys):
    monkeypatch.setattr(predict, "DATA", data)
    monkeypatch.setitem(predict.FEW, "tfidf, residual policy", 9)
    monkeypatch.setitem(encoders.NEEDS, "transformer", ("no_such_package",))
    wanted = ["--only", "minilm, residual policy", "--only", "tfidf, residual policy"]
    predict.main([*wanted, "--set", "tiny", "--documents", "50", "--json", str(tmp_path / "x.json")])
    found = json.loads((tmp_path / "x.json").read_text())
    (row,) = found["rows"]
    assert (row["model"], row["documents"], row["train"]) == ("tfidf, residual policy", 9, 9)
    assert tuple(row["shares"]) == predict.STAGES
    assert sum(row["shares"].values()) == pytest.approx(1, abs=0.001)
    assert all(share >= 0 for share in row["shares"].values())
    assert row["shares"]["tokenising"] > 0
    assert row["documents/s"] > 0
    assert row["opening"] > 0
    assert list(found["skipped"]) == ["minilm, residual policy"]
    told = capsys.readouterr().out
    assert "minilm, residual policy: left out: the package no-such-package is not here" in told
    assert "opening" in told


def test_a_frozen_transformer_encodes_where_it_is_timed():
    """`predict.py` counts its passes by this name; they are in `prepare`, which is counted as tokenising."""
    from hilap.encoders import Transformer

    assert "_steady" in Transformer._encode.__code__.co_names


def test_models_have_settings_that_are_there():
    from hilap import HiLAPClassifier

    for settings in predict.MODELS.values():
        HiLAPClassifier(**settings)
    assert set(predict.FEW) <= set(predict.MODELS)


# -- linear systems ---------------------------------------------------------------------------------------------------


def test_linear_figures_go_to_a_file_and_take_the_place_of_older_ones(tmp_path, capsys):
    out = tmp_path / "linear.json"
    old = {"method": "hr-lr", "documents": 60, "labels": 8, "jobs": 1, "seconds": -1.0}
    others = [{**old, "method": "svm"}, {**old, "documents": 90}]
    out.write_text(json.dumps({"rows": [*others, old]}))
    linear.main(["--documents", "60", "--labels", "8", "--jobs", "1", "--method", "hr-lr", "--out", str(out)])
    before, row, after = json.loads(out.read_text())["rows"]
    assert [before, after] == others
    assert (row["method"], row["documents"], row["features"], row["labels"], row["jobs"]) == ("hr-lr", 60, 60, 8, 1)
    assert min(row["seconds"], row["processor_seconds"], row["weights"], row["micro_f1"]) > 0
    assert row["peak_megabytes"] >= row["data_megabytes"] > 10
    assert {"python", "numpy", "scikit-learn"} <= set(row["versions"])
    assert "hr-lr" in capsys.readouterr().out


def test_linear_figures_of_other_jobs_are_others():
    row = {"method": "svm", "documents": 60, "labels": 8, "jobs": 1, "seconds": 1.0}
    both = linear.merged([row], {**row, "jobs": 2})
    assert [one["jobs"] for one in both] == [1, 2]
    assert linear.merged(both, {**row, "seconds": 3.0}) == [{**row, "seconds": 3.0}, both[1]]


def test_the_logistic_form_is_measured_as_the_bench_has_it():
    import run

    settings = run.settings_of("hr-lr", "medline", [])
    system, own = linear.SYSTEMS["hr-lr"]
    assert run.kind_of(settings) is system
    assert own == {key: settings[key] for key in own}
    assert own["loss"] == "logistic"
    assert {*settings} - {*own} == {"system", "tune", "jobs"}


# -- label texts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["label_text", "predict"])
def test_the_data_directory_can_be_elsewhere(name, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("HILAP_DATA", str(tmp_path))
    assert runpy.run_path(str(BENCH / f"{name}.py"))["DATA"] == tmp_path


def test_label_texts_write_every_seed(monkeypatch, data, tmp_path, capsys):
    small = {"encoder": "tfidf", "encoder_options": {"hidden": [8]}, "variant": "flat", "flat_epochs": 1}
    monkeypatch.setattr(label_text, "SYSTEMS", {"small": small})
    monkeypatch.setattr(label_text, "likeness", lambda *_: [1.0, 2.0, float("nan"), 4.0])
    wanted = ["--data", str(data), "--set", "tiny", "--thinned", "1", "--seeds", "0", "1", "--ways", "none"]
    label_text.main([*wanted, "--json", str(tmp_path / "x.json")])
    found = json.loads((tmp_path / "x.json").read_text(), parse_constant=pytest.fail)
    assert found["likeness"] == {"ap of 0": 1.0, "ap of 1-5": 2.0, "ap of 6-20": None, "ap of more": 4.0}
    assert found["labels"]["0"] == 1
    (row,) = found["rows"]
    assert (row["system"], row["way"], row["settings"]) == ("small", "none", small)
    assert list(row["seeds"]) == ["0", "1"]
    mean = np.mean([seed["micro_f1"] for seed in row["seeds"].values()])
    assert f"| small | none | {mean:.1f} /" in capsys.readouterr().out


@pytest.mark.parametrize(("module", "page"), [(encoders, "encoders.md"), (predict, "speed.md")])
def test_the_tables_of_the_pages_are_the_committed_figures(module, page):
    found = json.loads((BENCH / "results" / f"{module.__name__}.json").read_text(encoding="utf-8"))
    lines = (BENCH.parent / "docs" / page).read_text(encoding="utf-8").splitlines()
    assert found["rows"]
    assert [row for row in found["rows"] if module.page_row(row) not in lines] == []
