"""The trainer: what it keeps, when it stops, whom it tells, and that a broken run ends as an unbroken one."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from itertools import chain, count
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from rich.console import Console
from scipy import sparse
from torch import nn

from hilap import HiLAPClassifier
from hilap.card import phases
from hilap.corpus import Examples
from hilap.encoders import make
from hilap.errors import HilapError, ModelError, SettingError
from hilap.network import Network, evaluating, flat_loss
from hilap.settings import PRESETS, PolicySettings, TrainSettings
from hilap.taxonomy import Taxonomy
from hilap.training import Phase, Trainer, TrainingData
from hilap.training import phases as training_phases
from hilap.training import scoring as training_scoring
from hilap.training.callbacks import Callback, EpochLines, JsonLog, ProgressBar, TensorBoard
from hilap.training.phases import Run, plan
from hilap.training.scoring import ROUGH_RESIDUAL, best_threshold, score_sets


class Watcher(Callback):
    """Notes everything it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple] = []

    def on_resume(self, history):
        self.heard.append(("resume", len(history)))

    def on_phase(self, name, epochs, documents, done):
        self.heard.append(("phase", name, epochs, documents, done))

    def on_batch(self, documents, loss):
        self.heard.append(("batch", documents))

    def on_epoch(self, record):
        self.heard.append(("epoch", record["phase"], record["epoch"]))

    def on_end(self, history):
        self.heard.append(("end", len(history)))

    def close(self):
        self.heard.append(("close",))


def line(epochs: int = 4, *, scores: list[float] | None = None, name: str = "fit", n: int = 10, **more):
    """A phase that pulls one weight towards 3; its scores are given beforehand, or how near it is."""
    network = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(network.weight)
    given = iter(scores or [])

    def loss(rows, generator, step):
        return ((network.weight - 3) ** 2).sum(), {"step": float(step)}

    def validate():
        return {"select": next(given) if scores else -abs(network.weight.item() - 3)}

    options = {"learning_rate": 0.1, "rows": np.arange(n), **more}
    return network, Phase(
        name=name, epochs=epochs, parameters=list(network.parameters()), loss=loss, validate=validate, **options
    )


def seen_weights(network: nn.Linear) -> tuple[Callback, list[float]]:
    weights: list[float] = []

    class Weights(Callback):
        def on_epoch(self, record):
            weights.append(network.weight.item())

    return Weights(), weights


# -- what is kept ---------------------------------------------------------------------------------------------------


def test_the_best_epoch_is_kept_and_the_first_of_equals():
    network, phase = line(scores=[0.1, 0.5, 0.5, 0.2])
    watcher, weights = seen_weights(network)
    history = Trainer(TrainSettings(batch_size=5), callbacks=[watcher]).run(network, [phase])
    assert network.weight.item() == weights[1] != weights[3]
    assert [record["select"] for record in history] == [0.1, 0.5, 0.5, 0.2]


def test_the_start_is_kept_where_it_may_be_and_is_the_best():
    network, phase = line(scores=[0.9, 0.1, 0.2], epochs=2, keep_start=True)
    history = Trainer(TrainSettings()).run(network, [phase])
    assert network.weight.item() == 0
    assert [record["epoch"] for record in history] == [0, 1, 2]


def test_patience_ends_a_phase_that_gets_no_better():
    network, phase = line(scores=[0.1, 0.5, 0.4, 0.5, 0.3, 0.9], epochs=6)
    history = Trainer(TrainSettings(patience=2)).run(network, [phase])
    assert [record["epoch"] for record in history] == [1, 2, 3, 4]


def test_a_phase_starts_at_the_best_weights_of_the_one_before():
    network, first = line(scores=[0.5, 0.1], epochs=2)
    watcher, weights = seen_weights(network)
    begun = []
    second = Phase(
        **{**vars(first), "name": "second", "validate": lambda: {"select": 1.0}},
    )
    second.begin = lambda generator: begun.append(network.weight.item())
    Trainer(TrainSettings(), callbacks=[watcher]).run(network, [first, second])
    assert begun == [weights[0]]


# -- how it learns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "factors"),
    [
        ("constant", [1.0] * 8),
        ("linear", [1 - k / 8 for k in range(8)]),
        ("cosine", [0.5 * (1 + math.cos(math.pi * k / 8)) for k in range(8)]),
    ],
)
def test_the_schedule_by_hand(kind, factors, monkeypatch):
    network, phase = line(epochs=4, n=10, learning_rate=0.25)
    rates = []
    step = torch.optim.Adam.step

    def watched(self, *args, **kwargs):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", watched)
    Trainer(TrainSettings(schedule=kind, batch_size=5)).run(network, [phase])
    assert rates == pytest.approx([0.25 * factor for factor in factors])


def test_gradients_are_clipped_to_the_given_norm(monkeypatch):
    norms = []
    step = torch.optim.Adam.step

    def watched(self, *args, **kwargs):
        norms.append(self.param_groups[0]["params"][0].grad.norm().item())
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", watched)
    network, phase = line(epochs=1)
    Trainer(TrainSettings(clip=0.5)).run(network, [phase])
    assert norms == pytest.approx([0.5], rel=1e-3)
    network, phase = line(epochs=1)
    Trainer(TrainSettings()).run(network, [phase])
    assert norms[1:] == pytest.approx([6.0])


def test_every_document_is_seen_once_an_epoch_in_another_order_each_time():
    network, phase = line(epochs=2, n=11)
    batches = []
    inner = phase.loss
    phase.loss = lambda rows, generator, step: (batches.append(rows.tolist()), inner(rows, generator, step))[1]
    Trainer(TrainSettings(batch_size=4)).run(network, [phase])
    assert [len(batch) for batch in batches] == [4, 4, 3] * 2
    one, two = [*chain(*batches[:3])], [*chain(*batches[3:])]
    assert sorted(one) == sorted(two) == list(range(11))
    assert one != two


def test_the_record_of_an_epoch_has_means_over_documents():
    network, phase = line(epochs=1, n=3)
    history = Trainer(TrainSettings(batch_size=2)).run(network, [phase])
    assert history[0]["step"] == pytest.approx((2 * 0 + 1 * 1) / 3)  # batches of two and one
    assert history[0]["seconds"] > 0


def test_a_loss_without_gradients_changes_nothing():
    network, phase = line(epochs=1)
    phase.loss = lambda rows, generator, step: (torch.tensor(1.0), {})
    Trainer(TrainSettings()).run(network, [phase])
    assert network.weight.item() == 0


# -- whom it tells --------------------------------------------------------------------------------------------------


def test_callbacks_hear_everything_in_order():
    watcher = Watcher()
    network, phase = line(epochs=2, n=3)
    Trainer(TrainSettings(batch_size=2), callbacks=[watcher]).run(network, [phase])
    assert watcher.heard == [
        ("phase", "fit", 2, 3, 0),
        ("batch", 2),
        ("batch", 1),
        ("epoch", "fit", 1),
        ("batch", 2),
        ("batch", 1),
        ("epoch", "fit", 2),
        ("end", 2),
    ]


def test_the_json_log_has_one_line_an_epoch_and_begins_anew(tmp_path):
    for _ in range(2):
        network, phase = line(epochs=3)
        log = JsonLog(tmp_path / "log.jsonl")
        history = Trainer(TrainSettings(), callbacks=[log]).run(network, [phase])
        log.close()
        assert [json.loads(text) for text in (tmp_path / "log.jsonl").open()] == history


def test_a_log_that_cannot_be_written_is_our_own_error(tmp_path):
    with pytest.raises(HilapError, match="the log cannot be written"):
        JsonLog(tmp_path / "nowhere" / "log.jsonl").on_epoch({})


def bar_lines(width: int, heard: Callable[[ProgressBar], None]) -> list[str]:
    """What a bar leaves on a terminal of so many columns."""
    out = StringIO()
    bar = ProgressBar(Console(file=out, width=width, force_terminal=False))
    heard(bar)
    bar.close()
    return out.getvalue().splitlines()


def scored_run(bar: ProgressBar) -> None:
    network, phase = line(epochs=2)
    inner = phase.validate
    phase.validate = lambda: {**inner(), "example_f1": 0.1234, "micro_f1": 0.5, "macro_f1": 0.25}
    Trainer(TrainSettings(batch_size=2), callbacks=[bar]).run(network, [phase])


@pytest.mark.parametrize(
    ("width", "scores"),
    [(80, r"F1 12\.34"), (160, r"example_f1 12\.34 micro_f1 50\.00 macro_f1 25\.00")],
)
def test_a_progress_bar_shows_epochs_speed_time_left_loss_and_scores(width, scores):
    (said,) = bar_lines(width, scored_run)
    assert re.fullmatch(rf"fit +━+ epoch 2/2 [\d,]+ docs/s 0:00:00 loss \d\.\d{{4}} {scores} *", said)
    assert len(said) <= width


@pytest.mark.parametrize("loss", [0.5664, -12.3456, 123456.789, -1e30])
def test_the_longest_line_of_a_progress_bar_fits_into_80_columns(loss, monkeypatch):
    monkeypatch.setattr("rich.progress.Task.speed", property(lambda task: 123456.0))
    monkeypatch.setattr("rich.progress.Task.time_remaining", property(lambda task: 99 * 3600 + 59 * 60 + 58.0))

    def heard(bar: ProgressBar) -> None:
        bar.on_phase("flat 10/15", 1000, 50, 0)
        bar.on_batch(50, loss)
        bar.on_epoch({"phase": "flat 10/15", "epoch": 998, "example_f1": 1.0, "micro_f1": 1.0, "macro_f1": 1.0})

    (said,) = bar_lines(80, heard)
    assert re.fullmatch(
        r"flat 10/15 +━+ epoch 998/1000 123,456 docs/s 99:59:58 loss \S+ F1 100\.00 *", said.replace("╸", "━")
    )
    assert float(said.split("loss ")[1].split()[0]) == pytest.approx(loss, rel=0.01)
    assert len(said) <= 80


def test_no_time_is_left_of_a_phase_that_ended_early():
    def run(bar: ProgressBar) -> None:
        network, phase = line(scores=[0.5, 0.1, 0.1], epochs=1000)
        Trainer(TrainSettings(patience=2), callbacks=[bar]).run(network, [phase, phase_after(network)])

    early, last = bar_lines(80, run)
    assert "epoch 3/1000" in early
    assert "0:00:00" in early
    assert "epoch 1/1" in last


def phase_after(network: nn.Module) -> Phase:
    _, phase = line(epochs=1, scores=[1.0], name="after")
    phase.parameters = list(network.parameters())
    return phase


def test_epoch_lines_are_plain_text():
    said: list[str] = []
    network, phase = line(epochs=1, scores=[0.5])
    phase.validate = lambda: {"select": 0.5, "micro_f1": 0.5}
    Trainer(TrainSettings(), callbacks=[EpochLines(said.append)]).run(network, [phase])
    assert said == ["fit epoch 1/1 loss 9.0000 micro_f1 50.00"]


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard would show: the points of each curve."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(folder)).Reload()
    return {tag: [(p.step, p.value) for p in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def points(history: list[dict]) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for step, record in enumerate(history, start=1):
        for name in record.keys() - {"phase", "epoch"}:
            found.setdefault(f"{record['phase']}/{name}", []).append((step, pytest.approx(record[name], rel=1e-6)))
    return found


def test_tensorboard_gets_every_figure_and_a_new_run_hides_the_old_one(tmp_path):
    for epochs in (4, 2):
        network, phase = line(epochs=epochs)
        board = TensorBoard(tmp_path / "board")
        history = Trainer(TrainSettings(), callbacks=[board]).run(network, [phase, phase_after(network)])
        board.close()
        assert curves(tmp_path / "board") == points(history)
    assert sorted(curves(tmp_path / "board")) == [
        f"{phase}/{name}" for phase in ("after", "fit") for name in ("loss", "seconds", "select", "step")
    ]


def test_tensorboard_shows_a_resumed_run_as_one(tmp_path):
    def run(resume: bool, *plugs: Callback) -> list[dict]:
        network, phase = line(epochs=4)
        board = TensorBoard(tmp_path / "board")
        trainer = Trainer(TrainSettings(), callbacks=[*plugs, board], checkpoint=tmp_path / "c.safetensors")
        try:
            return trainer.run(network, [phase], resume=resume)
        finally:
            board.close()

    with pytest.raises(Broken):
        run(False, Plug(4))  # a phase, two batches with their epochs: the second one is not written any more
    assert len(curves(tmp_path / "board")["fit/loss"]) == 1
    history = run(True)
    assert len(history) == 4
    assert curves(tmp_path / "board") == points(history)


def test_tensorboard_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(HilapError, match=re.escape("pip install 'hilap[tensorboard]'")):
        TensorBoard(tmp_path)


def test_a_folder_that_tensorboard_cannot_write_to_is_our_own_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(HilapError, match=r"file: this is a file; .* give the name of one"):
        TensorBoard(tmp_path / "file")
    board = TensorBoard(tmp_path / "file" / "below")
    with pytest.raises(HilapError, match=r"below: TensorBoard's figures cannot be written \(Not a directory\)"):
        board.on_epoch({"phase": "fit", "epoch": 1, "loss": 1.0})
    board.close()


def test_a_disk_that_fills_up_while_tensorboard_writes_is_our_own_error(tmp_path, monkeypatch):
    board = TensorBoard(tmp_path / "board")
    board.on_epoch({"phase": "fit", "epoch": 1, "loss": 1.0})
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patched:
        patched.setattr("torch.utils.tensorboard.SummaryWriter.flush", Mock(side_effect=full))
        patched.setattr("torch.utils.tensorboard.SummaryWriter.close", Mock(side_effect=full))
        for act in (lambda: board.on_epoch({"phase": "fit", "epoch": 2, "loss": 1.0}), board.close):
            with pytest.raises(HilapError, match=r"board: TensorBoard's figures cannot be written \(No space left"):
                act()
    board.close()


def test_the_listeners_of_the_documents_listen(tmp_path, monkeypatch, capsys):
    document = Path(__file__).parents[2] / "docs" / "method.md"
    (code,) = re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    classifier = HiLAPClassifier(**SMALL, **VARIANTS["paper"])
    exec(code.replace("> 100", "> 0"), {"classifier": classifier, "train": examples(), "valid": examples(1)})
    assert [json.loads(text) for text in Path("log.jsonl").read_text().splitlines()] == classifier.history_
    assert curves(tmp_path / "board") == points(classifier.history_)
    assert "epoch 1 of phase supervised went astray" in capsys.readouterr().out


# -- broken and resumed ---------------------------------------------------------------------------------------------

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": []})
SMALL = {"hidden": 8, "width": 4, "batch_size": 8, "encoder_options": {"hidden": (6,), "dropout": 0.3}}
VARIANTS = {
    "paper": {"supervised_epochs": 2, "reinforced_epochs": 2},
    "all phases": {
        "flat_epochs": 1,
        "supervised_epochs": 1,
        "imitation_epochs": 1,
        "reinforced_epochs": 2,
        "patience": 1,
        "schedule": "cosine",
        "clip": 1.0,
        "entropy_bonus": 1.0,
        "rollouts": 2,
        "baseline": "leave-one-out",
    },
    "residual": {
        "preset": "residual",
        "sees": "flat",
        "pool_validation": False,
        "folds": 2,
        "flat_epochs": 1,
        "reinforced_epochs": 2,
        "tune": "example_f1",
    },
    "pooled": {
        "preset": "residual",
        "folds": 2,
        "repeats": 2,
        "pool_validation": True,
        "sees": "profile",
        "flat_epochs": 1,
        "reinforced_epochs": 2,
        "tune": "mean",
    },
    "rewards of all documents": {
        "preset": "residual",
        "folds": 2,
        "flat_epochs": 1,
        "reinforced_epochs": 3,
        "biased_walks": True,
        "reward": {"example_f1": 1.0, "micro_f1": 1.0, "macro_f1": 1.0},
    },
    "refitted": {"supervised_epochs": 3, "reinforced_epochs": 2, "refit": True, "tune": "mean", "learning_rate": 0.02},
}


class Broken(BaseException):
    """Pulls the plug."""


class Plug(Callback):
    """Breaks a run at its k-th batch, epoch or phase."""

    def __init__(self, k: int) -> None:
        self.left = k

    def _hit(self, *_) -> None:
        self.left -= 1
        if self.left < 0:
            raise Broken

    on_phase = on_batch = on_epoch = _hit


def examples(seed: int = 0, n: int = 20) -> Examples:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)).astype(np.float32)
    labels = [[label for k, label in enumerate("bcd") if row[k] > 0] for row in rows]
    return Examples.of(TREE, labels, features=rows)


@pytest.mark.parametrize("variant", VARIANTS)
def test_broken_anywhere_and_resumed_it_ends_at_the_same_weights(variant, tmp_path):
    def fit(path, resume: bool, *plugs: Callback) -> HiLAPClassifier:
        made = HiLAPClassifier(**{**SMALL, **VARIANTS[variant]})
        return made.fit(examples(), valid=examples(1), checkpoint=path, resume=resume, callbacks=plugs)

    whole = fit(tmp_path / "whole.safetensors", False, counter := Watcher())
    events = sum(kind in ("phase", "batch", "epoch") for kind, *_ in counter.heard)
    moved = ("epoch", "supervised anew", 2) in counter.heard  # so that moments are resumed there too
    assert moved == (variant == "refitted")
    for k in range(0, events, 2 if variant == "paper" else 3):
        path = tmp_path / f"{k}.safetensors"
        with pytest.raises(Broken):
            fit(path, False, Plug(k))
        again = fit(path, True)
        ours, theirs = again.network_.state_dict(), whole.network_.state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs), k
        assert again.decode_ == whole.decode_
        assert [drop(record) for record in again.history_] == [drop(record) for record in whole.history_]


REFITS = {
    "flat": {"variant": "flat", "flat_epochs": 8, "tune": "mean"},
    "supervised": {"variant": "sl", "supervised_epochs": 6, "tune": "mean", "schedule": "linear"},
    "walks": {"supervised_epochs": 6, "reinforced_epochs": 5, "tune": "mean", "patience": 2, "learning_rate": 0.02},
    "rewards of all documents": {
        "supervised_epochs": 6,
        "imitation_epochs": 2,
        "reinforced_epochs": 5,
        "biased_walks": True,
        "tune": "mean",
        "learning_rate": 0.02,
        "reward": {"example_f1": 1.0, "micro_f1": 1.0, "macro_f1": 1.0},
    },
}


@pytest.mark.parametrize("settings", REFITS.values(), ids=REFITS)
def test_refit_learns_from_all_documents_for_as_many_epochs_as_were_best(settings, monkeypatch):
    train, valid = examples(0, 60), examples(1, 40)
    settings = {**SMALL, "learning_rate": 0.1, **settings}
    plain = HiLAPClassifier(TREE, **settings).fit(train, valid=valid)
    anew = HiLAPClassifier(TREE, **settings, refit=True).fit(train, valid=valid)
    assert anew.decode_ == plain.decode_
    assert anew.validation_.to_json(per_label=True) == plain.validation_.to_json(per_label=True)
    assert [drop(record) for record in anew.history_] == [drop(record) for record in plain.history_]
    assert (plain.n_documents_, anew.n_documents_) == (60, 100)
    assert anew.train_settings_.to_dict() == {**plain.train_settings_.to_dict(), "refit": True}

    kept = {phase["name"]: phase["best_epoch"] for phase in phases(plain.history_)}
    rising = count()  # by hand: every epoch is better than the one before, so the last is kept
    scored = training_phases.score_sets
    for module in (training_phases, training_scoring):
        monkeypatch.setattr(module, "score_sets", lambda *given: {**scored(*given), "select": next(rising)})
    horizon = plain.train_settings_.schedule == "constant"  # else fewer epochs are another schedule
    decode = {name: value for name, value in vars(plain.decode_).items() if name in DECIDED and value != 0}
    if plain.train_settings_.variant == "hilap":
        decode.pop("threshold")
    by_hand = HiLAPClassifier(
        TREE,
        **{
            **settings,
            **({f"{name}_epochs": epoch for name, epoch in kept.items()} if horizon else {}),
            **decode,
            "tune": None,
            "patience": None,
            "max_steps": plain.max_steps_,
        },
    )
    if not horizon:
        monkeypatch.setattr(Phase, "length", property(lambda phase: kept[phase.name]))
    by_hand.fit(Examples.join([train, valid]), valid=valid)
    for name, value in by_hand.network_.state_dict().items():
        assert torch.equal(value, anew.network_.state_dict()[name]), name
    assert any(1 < epoch < settings.get(f"{name}_epochs", 0) for name, epoch in kept.items()), kept
    if plain.train_settings_.patience is not None:  # which ends nothing anew
        assert min(kept.values()) > plain.train_settings_.patience


DECIDED = ("threshold", "stop_bias", "prior_bias", "level_bias", "count_bias")


def test_what_rewards_did_not_better_is_not_reinforced_anew():
    settings = {**SMALL, "supervised_epochs": 2, "reinforced_epochs": 2, "reinforced_learning_rate": 0.0}
    watcher = Watcher()
    HiLAPClassifier(TREE, **settings, refit=True).fit(examples(), valid=examples(1), callbacks=[watcher])
    begun = {name: epochs for kind, name, epochs, *_ in (heard for heard in watcher.heard if heard[0] == "phase")}
    assert begun["reinforced"] == 2
    assert begun["reinforced anew"] == 0
    assert watcher.heard.count(("close",)) == 1  # after all of it


def test_the_log_of_a_refit_that_was_broken_has_every_epoch_once(tmp_path):
    settings = {**SMALL, **VARIANTS["refitted"]}

    def fit(resume: bool, *more: Callback) -> None:
        log = JsonLog(tmp_path / "log.jsonl")
        place = tmp_path / "c.safetensors"
        made = HiLAPClassifier(TREE, **settings)
        made.fit(examples(), valid=examples(1), checkpoint=place, resume=resume, callbacks=[log, *more])

    with pytest.raises(Broken):
        fit(False, LatePlug())
    fit(True)
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").open()]
    told = [(record["phase"], record["epoch"]) for record in records]
    assert told[:3] == [("supervised", epoch) for epoch in (1, 2, 3)]
    assert told[3:6] == [("reinforced", epoch) for epoch in (0, 1, 2)]
    assert {phase for phase, _ in told[6:]} <= {"supervised anew", "reinforced anew"}
    assert told[6:8] == [("supervised anew", 1), ("supervised anew", 2)]
    assert len({*told}) == len(told)
    assert not any("select" in record for record in records[6:])  # nothing judges them


class LatePlug(Callback):
    """Breaks a run when the first epoch of learning anew has ended."""

    def on_epoch(self, record: dict) -> None:
        if record["phase"].endswith("anew"):
            raise Broken


def test_a_refit_refuses_the_second_checkpoint_of_another_run_before_it_learns(tmp_path):
    place, watcher = tmp_path / "c.safetensors", Watcher()
    (tmp_path / "anew-c.safetensors").write_bytes(b"x")
    made = HiLAPClassifier(TREE, **SMALL, **VARIANTS["refitted"])
    with pytest.raises(ModelError, match=r"anew-c\.safetensors: there is a checkpoint already"):
        made.fit(examples(), valid=examples(1), checkpoint=place, callbacks=[watcher])
    with pytest.raises(ModelError, match=r"second checkpoint of a run whose first, c\.safetensors, is gone; remove it"):
        made.fit(examples(), valid=examples(1), checkpoint=place, resume=True, callbacks=[watcher])
    assert watcher.heard == [("close",)] * 2


def test_a_refit_takes_no_members_and_no_residual_policy():
    first = HiLAPClassifier(TREE, **SMALL, variant="flat", flat_epochs=1).fit(examples(), valid=examples(1))
    made = HiLAPClassifier(TREE, **SMALL, variant="flat", flat_epochs=1, refit=True)
    with pytest.raises(SettingError, match="refit trains flat models anew, and members spare that; give one of them"):
        made.fit(examples(), valid=examples(1), members=first)
    with pytest.raises(SettingError, match="refit must be false where residual is true: such a policy starts at a"):
        HiLAPClassifier(TREE, residual=True, refit=True).check()
    HiLAPClassifier(TREE, residual=True, refit=True, variant="flat").check()  # which does not walk
    lender = HiLAPClassifier(TREE, **SMALL, variant="flat", flat_epochs=1, refit=True)
    lender.fit(examples(), valid=examples(1))
    with pytest.raises(SettingError, match="members were trained with refit True, but this run has False"):
        HiLAPClassifier(TREE, **SMALL, variant="flat", flat_epochs=1).fit(
            Examples.join([examples(), examples(1)]), valid=examples(1), members=lender
        )


def test_a_refit_that_ends_in_its_second_training_is_none(tmp_path):
    made = HiLAPClassifier(TREE, **SMALL, **VARIANTS["refitted"])
    with pytest.raises(Broken):
        made.fit(examples(), valid=examples(1), callbacks=[LatePlug()])
    made.save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert "trained anew" not in card
    assert (made.n_documents_, made.train_settings_.refit) == (20, False)


def test_a_refit_needs_only_the_columns_that_both_splits_have():
    train, valid = examples(), examples(1)
    settings = {**SMALL, **VARIANTS["refitted"]}
    expected = HiLAPClassifier(TREE, **settings).fit(train, valid=valid).network_.state_dict()
    more = replace(train, groups=["g"] * len(train), texts=["t"] * len(train))
    kept_sparse = replace(valid, features=sparse.csr_array(valid.features))
    for one, other in ((more, valid), (train, kept_sparse)):
        found = HiLAPClassifier(TREE, **settings).fit(one, valid=other).network_.state_dict()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_tensorboard_has_curves_of_its_own_for_learning_anew(tmp_path):
    board = TensorBoard(tmp_path / "board")
    settings = {**SMALL, **VARIANTS["refitted"]}
    HiLAPClassifier(TREE, **settings).fit(examples(), valid=examples(1), callbacks=[board])
    found = curves(tmp_path / "board")
    assert {"supervised/loss", "supervised anew/loss", "reinforced/loss"} <= {*found}
    steps = [step for name in found if name.endswith("/loss") for step, _ in found[name]]
    assert len({*steps}) == len(steps)
    assert len(found["supervised/loss"]) == 3


def drop(record: dict) -> dict:
    return {name: value for name, value in record.items() if name != "seconds"}


def test_a_finished_run_resumed_only_loads_its_best_weights(tmp_path):
    path = tmp_path / "c.safetensors"
    made = HiLAPClassifier(**SMALL, **VARIANTS["paper"]).fit(examples(), valid=examples(1), checkpoint=path)
    watcher = Watcher()
    again = HiLAPClassifier(**SMALL, **VARIANTS["paper"])
    again.fit(examples(), valid=examples(1), checkpoint=path, resume=True, callbacks=[watcher])
    assert ("batch", 8) not in watcher.heard
    assert watcher.heard[0] == ("resume", len(made.history_))
    assert np.array_equal(again.predict_proba(examples(2)), made.predict_proba(examples(2)))


def test_resuming_without_a_checkpoint_starts_at_the_beginning(tmp_path):
    made = HiLAPClassifier(**SMALL, **VARIANTS["paper"])
    made.fit(examples(), valid=examples(1), checkpoint=tmp_path / "new.safetensors", resume=True)
    assert (tmp_path / "new.safetensors").exists()


def test_resuming_without_the_name_of_a_checkpoint_is_an_error():
    made = HiLAPClassifier(**SMALL, **VARIANTS["paper"])
    with pytest.raises(
        SettingError, match=r"resume needs the checkpoint of the run that goes on; give checkpoint=\.\.\."
    ):
        made.fit(examples(), valid=examples(1), resume=True)
    assert not hasattr(made, "network_")


def test_a_checkpoint_is_not_overwritten_by_a_run_that_starts_anew(tmp_path):
    path = tmp_path / "c.safetensors"
    settings = {**SMALL, **VARIANTS["paper"]}
    HiLAPClassifier(**settings).fit(examples(), valid=examples(1), checkpoint=path)
    before, watcher = path.read_bytes(), Watcher()
    with pytest.raises(ModelError, match=r"c\.safetensors: .* already; go on from it with resume=True, or remove it"):
        HiLAPClassifier(**settings).fit(examples(), valid=examples(1), checkpoint=path, callbacks=[watcher])
    assert path.read_bytes() == before
    assert watcher.heard == [("close",)]
    path.unlink()
    HiLAPClassifier(**settings).fit(examples(), valid=examples(1), checkpoint=path)
    assert path.exists()


@pytest.mark.parametrize(
    ("changes", "train", "valid", "what"),
    [
        ({"gamma": 0.1}, 0, 1, "other settings (gamma 0.9 instead of 0.1)"),
        ({"seed": 1, "patience": 3}, 0, 1, "other settings (patience None instead of 3, seed 0 instead of 1)"),
        (
            {"encoder_options": {"hidden": (6, 5), "dropout": 0.3}},
            0,
            1,
            "another encoder (hidden [6] instead of [6, 5])",
        ),
        ({}, 5, 1, "other training documents"),
        ({}, 0, 5, "other validation documents"),
    ],
)
def test_another_run_is_not_resumed_and_what_differs_is_named(changes, train, valid, what, tmp_path):
    path = tmp_path / "c.safetensors"
    settings = {**SMALL, **VARIANTS["paper"]}
    HiLAPClassifier(**settings).fit(examples(), valid=examples(1), checkpoint=path)
    says = f"{path}: it was written with {what}; resume with the same, or train anew"
    with pytest.raises(ModelError, match=f"^{re.escape(says)}$"):
        HiLAPClassifier(**{**settings, **changes}).fit(
            examples(train), valid=examples(valid), checkpoint=path, resume=True
        )


@pytest.mark.parametrize(
    ("written", "given", "what"),
    [
        ({"settings": {"a": 1}}, {"settings": {"a": 1, "b": None}}, "other settings (b unset instead of None)"),
        ({"settings": {"a": 1, "b": 2}}, {"settings": {"a": 1}}, "other settings (b 2 instead of unset)"),
        (
            {"settings": dict.fromkeys("abcde", 1)},
            {"settings": dict.fromkeys("abcde", 2)},
            "other settings (a 1 instead of 2, b 1 instead of 2, c 1 instead of 2, 2 more)",
        ),
        ({"encoder": {"a": "x" * 99}}, {"encoder": {"a": 0}}, f"another encoder (a '{'x' * 58}… instead of 0)"),
        ({"wide part": None}, {"wide part": {"a": 1}}, "another wide part"),
        ({}, {"taxonomy": "a1b2"}, "another taxonomy"),
    ],
)
def test_what_differs_is_said_in_a_few_words(written, given, what, tmp_path):
    path = tmp_path / "c.safetensors"
    network, phase = line(epochs=1)
    Trainer(TrainSettings(), checkpoint=path, identity=written).run(network, [phase])
    with pytest.raises(ModelError, match=re.escape(f"written with {what}; resume")):
        Trainer(TrainSettings(), checkpoint=path, identity=given).run(network, [phase], resume=True)


def test_the_documents_themselves_count_not_only_their_labels():
    one, two = examples(), examples()
    other = Examples(TREE, one.ids, one.labels, features=two.features + 1)
    encoder = make("mlp", hidden=(3,)).fit(one, generator=torch.Generator())
    hashes = [TrainingData(part, encoder).fingerprint for part in (one, two, other)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    from hilap.storage import write_checkpoint

    path = tmp_path / "c.safetensors"
    network, phase = line()
    for tensors, state in [
        ({"other/x": torch.zeros(2)}, {"progress": {}}),
        ({"weights/weight": torch.zeros(3, 3)}, {"progress": {}}),
        ({"weights/weight": torch.zeros(1, 1)}, {"progress": {"speed": 1}}),
        ({"weights/weight": torch.zeros(1, 1)}, {}),
        ({"weights/weight": torch.zeros(1, 1)}, {"identity": [], "progress": {}}),
    ]:
        write_checkpoint(path, tensors, state)
        with pytest.raises(ModelError, match="this is no checkpoint of such a run; train anew"):
            Trainer(TrainSettings(), checkpoint=path).run(network, [phase], resume=True)


# -- the plan and the judging ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "phases"),
    [
        ({"variant": "flat", "supervised_epochs": 1}, ["flat"]),
        ({"variant": "sl", "supervised_epochs": 1}, ["supervised"]),
        ({"supervised_epochs": 1, "reinforced_epochs": 1}, ["supervised", "reinforced"]),
        ({"supervised_epochs": 0, "reinforced_epochs": 1}, ["reinforced"]),
        ({"supervised_epochs": 1, "imitation_epochs": 1, "reinforced_epochs": 0}, ["supervised", "imitation"]),
        (VARIANTS["residual"], ["flat 1/2", "flat 2/2", "reinforced"]),
    ],
)
def test_the_settings_make_the_phases(settings, phases):
    made = HiLAPClassifier(**{**SMALL, **settings}).fit(examples(), valid=examples(1))
    assert list(dict.fromkeys(record["phase"] for record in made.history_)) == phases


def test_modes_are_restored_so_that_dropout_is_on_in_every_epoch(monkeypatch):
    from hilap.encoders.mlp import MLP

    modes = []
    forward = MLP.forward

    def watched(self, batch):
        modes.append((self.training, torch.is_grad_enabled()))
        return forward(self, batch)

    monkeypatch.setattr(MLP, "forward", watched)
    HiLAPClassifier(**SMALL, supervised_epochs=2, reinforced_epochs=1).fit(examples(), valid=examples(1))
    assert {training for training, learning in modes if learning} == {True}
    assert {training for training, learning in modes if not learning} == {False}
    assert modes.count((True, True)) == 3 * 3  # three batches in each of three epochs, one encoding a batch


@pytest.mark.parametrize("kind", [{}, {"variant": "sl"}, {"preset": "residual", "flat_epochs": 2}])
def test_holding_documents_while_biases_are_tried_changes_nothing(kind, monkeypatch):
    settings = {**SMALL, "supervised_epochs": 1, "reinforced_epochs": 1, "tune": "mean", **kind}
    held = HiLAPClassifier(**settings).fit(examples(), valid=examples(1))
    monkeypatch.setattr("hilap.network.MOST_KEPT", 0)
    anew = HiLAPClassifier(**settings).fit(examples(), valid=examples(1))
    assert held.decode_ == anew.decode_
    assert [record.get("select") for record in held.history_] == [record.get("select") for record in anew.history_]
    assert np.array_equal(held.predict_proba(examples(2)), anew.predict_proba(examples(2)))


def test_the_best_threshold_is_found_by_trying_them():
    gold = TREE.encode([["a"], ["d"], []])
    chances = np.array([[0.35, 0, 0, 0.2], [0.2, 0, 0, 0.33], [0.3, 0, 0, 0.1]])
    threshold, scores = best_threshold(gold, chances, "example_f1")
    assert 0.3 <= threshold < 0.33
    assert scores["select"] == scores["example_f1"] == 1
    assert score_sets(gold, chances > 0.5, "mean")["select"] == pytest.approx((0 + 0 + 1 / 3) / 3)


def test_a_user_of_an_encoder_object_keeps_it_as_it_was():
    encoder = make("mlp", hidden=(6,))
    settings = {**SMALL, "encoder_options": None, **VARIANTS["residual"]}
    made = HiLAPClassifier(encoder=encoder, **settings).fit(examples(), valid=examples(1))
    assert not list(encoder.parameters())  # still not fitted
    one, two = made.network_.members
    assert one.encoder is not two.encoder


def test_presets_train(tmp_path):
    for preset in PRESETS:
        epochs = {"flat_epochs": 1, "supervised_epochs": 1, "reinforced_epochs": 1}
        made = HiLAPClassifier(preset=preset, **SMALL, **epochs).fit(examples(), valid=examples(1))
        assert made.score(examples(2)) >= 0


@pytest.mark.parametrize("tune", [None, "example_f1"])
def test_a_flat_model_is_judged_by_the_threshold_it_will_predict_with(tune):
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": []})
    rng = np.random.default_rng(0)
    features = rng.normal(size=(120, 4)).astype(np.float32)
    sets = [[*(["b"] if row[0] > 0.8 else []), *(["c"] if row[1] > 0.5 else [])] for row in features]
    parts = [Examples.of(taxonomy, sets[rows], features=features[rows]) for rows in (slice(0, 80), slice(80, 120))]
    flat = HiLAPClassifier(variant="flat", flat_epochs=8, tune=tune, seed=0).fit(parts[0], valid=parts[1])
    best = max(record["select"] for record in flat.history_)
    assert flat.validation_.scores["example_f1"] == pytest.approx(best)


def test_beside_a_policy_too_the_flat_loss_has_the_max_constraint():
    """A flat share of 1 leaves O_f alone; what is read is lifted already, and must not be what is compared."""
    settings = TrainSettings(variant="sl", flat_share=1.0, supervised_epochs=1)
    train, generator = examples(0, 9), torch.Generator().manual_seed(0)
    encoder = make("mlp", hidden=(4,)).fit(train, generator=generator)
    network = Network(TREE, [encoder], PolicySettings(hidden=3, width=2, max_constraint=True), generator)
    with torch.no_grad():  # c is sure of itself, also where it is wrong and its parent is right because of b
        network.members[0].head.bias[TREE.index("c")] = 8
    data = TrainingData(train, encoder)
    (phase,) = plan(TREE, network, data, data, settings).phases
    rows = np.arange(9)
    found, _ = phase.loss(rows, generator, 0)
    own, gold = network.members[0](data.batch(rows))[1], data.gold(rows)
    torch.testing.assert_close(found, flat_loss(network.compared(own, gold), gold).mean() / len(TREE))
    assert not torch.isclose(found, flat_loss(network.see(data.batch(rows)).flat, gold).mean() / len(TREE))


# -- cross-fitting ----------------------------------------------------------------------------------------------------


def cross_fitted(averaging: str = "logits", **more) -> tuple[Run, Network]:
    settings = TrainSettings(folds=3, repeats=2, flat_epochs=2, supervised_epochs=0, reinforced_epochs=0, **more)
    train, valid = examples(0, 17), examples(1, 8)
    generator = torch.Generator().manual_seed(0)
    encoders = [make("mlp", hidden=(4,)).fit(train, generator=generator) for _ in range(settings.members)]
    network = Network(TREE, encoders, PolicySettings(sees="flat", hidden=3, width=2, averaging=averaging), generator)
    data = (TrainingData(train, network.encoder), TrainingData(valid, network.encoder))
    run = plan(TREE, network, *data, settings)
    Trainer(settings).run(network, run.phases)
    return run, network


@pytest.mark.parametrize("averaging", ["logits", "probabilities"])
@pytest.mark.parametrize("pooled", [False, True])
def test_honest_logits_come_from_members_that_have_not_seen_the_document(pooled, averaging):
    run, network = cross_fitted(averaging, pool_validation=pooled)
    run.score_honestly()
    parts = [(run.train, run.honest), (run.valid, run.honest_valid)] if pooled else [(run.train, run.honest)]
    first = 0
    for data, honest in parts:
        for row in range(len(data)):
            out = [k for k, fold in enumerate(run.folds) if first + row in fold]
            assert len(out) == 2  # once in each repeat
            with evaluating(network):
                own = [network.members[k](data.batch(np.array([row])))[1][0] for k in out]
            if averaging == "logits":
                torch.testing.assert_close(honest[row], sum(own) / 2)
            else:
                torch.testing.assert_close(honest[row].sigmoid(), sum(logits.sigmoid() for logits in own) / 2)
        first += len(data)


@pytest.mark.parametrize("pooled", [False, True])
def test_members_learn_from_what_is_not_in_their_fold(pooled):
    run, _ = cross_fitted(pool_validation=pooled)
    everything = set(range(25 if pooled else 17))
    *members, reinforced = run.phases
    assert (reinforced.name, reinforced.epochs) == ("reinforced", 0)  # sets where the policy starts
    assert len(members) == len(run.folds) == 6
    for phase, fold in zip(members, run.folds, strict=True):
        assert {*phase.rows.tolist()} == everything - {*fold.tolist()}
        assert (phase.validate is None) == pooled  # not judged by what it learns from


def test_where_nothing_judges_the_last_epoch_is_kept():
    network = torch.nn.Linear(1, 1)
    weights = []

    def loss(rows, generator, step):
        weights.append(network.weight.item())
        return (network(torch.ones(1, 1)) ** 2).sum(), {}

    phase = Phase("p", 3, 0.1, [*network.parameters()], np.arange(2), loss, None)
    history = Trainer(TrainSettings(batch_size=2)).run(network, [phase])
    assert [sorted(record) for record in history] == [["epoch", "loss", "phase", "seconds"]] * 3
    assert network.weight.item() not in weights  # the weights after the last update


def test_epochs_are_judged_with_the_stop_bias_they_would_get():
    settings = {**SMALL, **VARIANTS["residual"], "tune": "mean", "select": "mean", "reinforced_epochs": 3}
    made = HiLAPClassifier(TREE, **settings).fit(examples(0, 40), valid=examples(1, 30))
    walks = [record for record in made.history_ if record["phase"] == "reinforced"]
    grids = ROUGH_RESIDUAL
    assert all(record["stop_bias"] in grids["constant"] and record["count_bias"] in grids["count"] for record in walks)
    scores = made.validation_.scores
    reached = (scores["micro_f1"] + scores["macro_f1"] + scores["example_f1"]) / 3
    assert reached >= max(record["select"] for record in walks) - 1e-9  # tuned more closely at the end


def test_parameters_learn_with_their_share_of_the_rate():
    fast, slow = (nn.Parameter(torch.ones(1)) for _ in range(2))
    module = nn.ParameterList([fast, slow])
    loss = lambda rows, generator, step: ((fast + slow).sum() * 3.0, {})  # noqa: E731
    phase = Phase("p", 1, 0.1, [fast, slow], np.arange(2), loss, None, shares={slow: 0.01})
    Trainer(TrainSettings(batch_size=2, weight_decay=0)).run(module, [phase])
    assert 1 - fast.item() == pytest.approx(0.1, rel=1e-3)  # Adam's first step is the learning rate
    assert 1 - slow.item() == pytest.approx(0.001, rel=1e-3)


def test_a_bias_is_tuned_on_all_documents_that_are_scored_honestly(monkeypatch):
    run, _ = cross_fitted(pool_validation=True)
    run.score_honestly()
    labels, honest = run.tuning()
    assert labels.shape[0] == len(honest) == 25
    torch.testing.assert_close(honest, torch.cat([run.honest_valid, run.honest]))
    assert (labels[:8] != run.valid.labels).nnz == (labels[8:] != run.train.labels).nnz == 0
    monkeypatch.setattr("hilap.training.phases.MOST_TUNED", 10)
    labels, honest = run.tuning()
    assert labels.shape[0] == len(honest) == 10  # all of validation, and some others
    torch.testing.assert_close(honest[:8], run.honest_valid)


def test_without_pooling_a_bias_is_tuned_on_validation_documents_alone():
    run, _ = cross_fitted(pool_validation=False)
    run.score_honestly()
    labels, honest = run.tuning()
    assert honest is None
    assert (labels != run.valid.labels).nnz == 0


def test_lent_members_give_the_result_of_training_them():
    settings = {**SMALL, **VARIANTS["residual"], "reinforced_epochs": 2}
    first = HiLAPClassifier(TREE, **settings).fit(examples(0, 40), valid=examples(1, 30))
    whole = HiLAPClassifier(TREE, **{**settings, "gamma": 0.5}).fit(examples(0, 40), valid=examples(1, 30))
    lent = HiLAPClassifier(TREE, **{**settings, "gamma": 0.5}).fit(
        examples(0, 40), valid=examples(1, 30), members=first
    )
    for name, value in whole.network_.state_dict().items():
        assert torch.equal(value, lent.network_.state_dict()[name]), name
    assert not any(record["phase"].startswith("flat") for record in lent.history_)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 5}, "members were trained with seed 0, but this run has 5"),
        ({"max_constraint": True}, "members were trained with max_constraint False, but this run has True"),
        ({"condense": True}, "members were trained with condense False, but this run has True"),
        ({"encoder_options": {"hidden": (3,)}}, "members have other encoders"),
    ],
)
def test_members_of_another_run_are_refused(change, says):
    settings = {**SMALL, **VARIANTS["residual"], "reinforced_epochs": 1}
    first = HiLAPClassifier(TREE, **settings).fit(examples(0, 20), valid=examples(1, 10))
    with pytest.raises(SettingError, match=says):
        HiLAPClassifier(TREE, **{**settings, **change}).fit(examples(0, 20), valid=examples(1, 10), members=first)
    for train, valid in ((examples(2, 20), examples(1, 10)), (examples(0, 20), examples(3, 10))):  # as many, but others
        with pytest.raises(SettingError, match="members were trained on other documents or labels"):
            HiLAPClassifier(TREE, **settings).fit(train, valid=valid, members=first)
