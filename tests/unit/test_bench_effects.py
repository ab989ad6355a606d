"""Single choices made otherwise: is the list sound, does the page say what the files have, are habits what they say?"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import effects  # noqa: E402
import published  # noqa: E402
import run  # noqa: E402
from effects import Effect  # noqa: E402

from hilap import HiLAPClassifier  # noqa: E402
from hilap.corpus import Examples  # noqa: E402
from hilap.encoders.mlp import MLP  # noqa: E402
from hilap.episodes import Episode  # noqa: E402
from hilap.errors import SettingError  # noqa: E402
from hilap.taxonomy import Taxonomy  # noqa: E402

LISTED = effects.effects_of()
TWO = '[[effects]]\npoint = 1\nname = "a"\nset = "funcat"\nmethod = "hilap-paper"\nchanges = ["gamma=0.5"]\n'


def named(one: Effect) -> str:
    return f"{one.set}-{one.method}-{one.name}".replace(" ", "-")


@pytest.mark.parametrize("one", LISTED, ids=named)
def test_every_change_is_one_that_the_classifier_takes_and_changes_something(one):
    changed, plain = effects.settings_of(one), effects.settings_of(one.plain)
    assert (changed != plain) == (one.published is None)
    assert one.published is None or one.published in published.HABITS
    if "system" not in changed:
        HiLAPClassifier(**{key: value for key, value in changed.items() if key != "members_of"})


def test_details_and_the_list_name_the_same_points():
    text = (ROOT / "docs" / "details.md").read_text(encoding="utf-8")
    points = dict(re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |\Z|^## )", text, re.MULTILINE | re.DOTALL))
    linked = {int(number) for number, words in points.items() if "results.md#what-single-choices-do" in words}
    assert linked == {one.point for one in LISTED if effects.shared(one)}


@pytest.mark.parametrize(
    "path", sorted(effects.EFFECTS.glob("*/*/*.json")), ids=lambda path: f"{path.parent}/{path.stem}"
)
def test_every_committed_effect_is_of_the_list_and_of_the_settings_of_today(path):
    known = {one.file(): one for listed in LISTED for one in (listed, listed.plain)}
    assert path in known, "it is no longer in effects.toml"
    assert effects.scores_of(known[path])  # which looks at the settings


@pytest.mark.parametrize(
    "text",
    [
        TWO.replace('changes = ["gamma=0.5"]\n', ""),
        TWO + 'published = "dropout_ends"\n',
        TWO.replace("point = 1\n", ""),
        TWO + "seeds = 3\n",
        TWO + TWO,
        TWO.replace('"a"', '"As it is"'),
    ],
)
def test_a_list_that_is_not_sound_is_refused(tmp_path, text):
    path = tmp_path / "effects.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingError):
        effects.effects_of(path)


def listed(folder: Path, text: str = TWO) -> tuple[Path, Effect]:
    path = folder / "list.toml"
    path.write_text(text, encoding="utf-8")
    return path, effects.effects_of(path)[0]


def scores(micro: float) -> dict[str, object]:
    return {"micro_f1": micro, "macro_f1": 0.05, "example_f1": 0.25, "cpu_seconds": 1.0, "code": "0"}


def test_a_line_has_what_a_change_adds_on_the_seeds_that_were_run_both_ways(tmp_path):
    path, one = listed(tmp_path)
    for seed, (plain, changed) in enumerate([(0.30, 0.31), (0.31, 0.3220)]):
        effects.keep(one.plain, seed, scores(plain), tmp_path)
        effects.keep(one, seed, scores(changed), tmp_path)
    effects.keep(one.plain, 2, scores(0.5), tmp_path)
    (title, _, heading, table) = effects.effects_section(["funcat"], tmp_path, path)
    assert title == effects.TITLE
    assert "FunCat" in heading
    assert "`hilap-paper`" in heading
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert lines[0][:3] == ["", "*as it is*", "3"]
    assert lines[1][:4] == ["1", "a", "2", "**+1.10 ± 0.14**"]
    assert lines[1][4] == "+0.00 ± 0.00"
    assert effects.effects_section(["go"], tmp_path, path) == []


def test_what_was_run_is_not_run_again_and_the_first_seed_comes_first(tmp_path):
    _, one = listed(tmp_path)
    order = [(each.name, seed) for each, seed in effects.jobs([one], 2, tmp_path)]
    assert order == [("as it is", 0), ("a", 0), ("as it is", 1), ("a", 1)]
    effects.keep(one.plain, 0, scores(0.3), tmp_path)
    assert [(each.name, seed) for each, seed in effects.jobs([one], 1, tmp_path)] == [("a", 0)]


def test_settings_as_they_are_run_once_with_lent_members_or_without(tmp_path):
    _, one = listed(tmp_path)
    lent = effects.Effect(2, "b", one.set, one.method, members=True, changes=("gamma=0.1",))
    assert [each.name for each, _ in effects.jobs([lent, one], 1, tmp_path)] == ["as it is", "b", "a"]
    assert next(effects.jobs([lent, one], 1, tmp_path))[0].members


def test_scores_of_other_settings_are_refused(tmp_path):
    _, one = listed(tmp_path)
    effects.keep(one, 0, scores(0.3), tmp_path)
    path = one.file(tmp_path)
    kept = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**kept, "settings": {}}), encoding="utf-8")
    with pytest.raises(SettingError, match="other settings"):
        effects.scores_of(one, tmp_path)


# -- habits of the published program ----------------------------------------------------------------------------------


def tiny() -> Examples:
    taxonomy = Taxonomy.of({"A": [], "B": ["A"], "C": []})
    rows = np.random.default_rng(0).normal(size=(24, 4)).astype(np.float32)
    labels = [["B"] if row[0] > 0 else ["C"] for row in rows]
    return Examples.of(taxonomy, labels, features=rows)


def episode(actions: list[int], placed: list[bool], rewards: list[float]) -> Episode:
    steps = torch.arange(len(actions))
    return Episode(
        docs=torch.tensor([0]),
        actions=torch.tensor(actions)[:, None],
        rewards=torch.tensor(rewards)[:, None],
        placed=torch.tensor([placed]),
        row=torch.zeros_like(steps),
        step=steps,
        starts=torch.arange(len(actions) + 1),
        items=torch.tensor(actions),
    )


def test_stop_costs_what_one_more_wrong_label_costs():
    gold = torch.tensor([[True, True, False]])
    walk = episode([0, 1, 3], [True, True, False], [2 / 3, 1 / 3, 0.0])  # place, place, stop: the notes' example
    assert published.with_stop_placed(walk, gold).flatten().tolist() == pytest.approx([2 / 3, 1 / 3, -0.2])


def test_stop_is_punished_inside_the_habit_alone():
    examples, kept = tiny(), []
    settings = {"supervised_epochs": 0, "reinforced_epochs": 1, "hidden": 8, "width": 4, "validation_share": 0.2}

    def learned() -> list[float]:
        made = HiLAPClassifier(preset="paper", encoder="mlp", encoder_options={"hidden": [4]}, **settings)
        made.fit(examples)
        return [record["loss"] for record in made.history_ if "loss" in record]

    before = hilap_retraced()
    with published.stop_in_the_reward():
        kept.append(learned())
        assert hilap_retraced() is not before
    assert hilap_retraced() is before
    assert kept[0] != learned()


def hilap_retraced() -> object:
    import hilap.policy

    return hilap.policy.retraced


def test_dropout_ends_with_the_first_evaluation():
    encoder = MLP(hidden=(4,), dropout=0.5)
    with published.dropout_ends():
        assert encoder.train().training
        encoder.eval()
        assert not encoder.train().training
    assert MLP(hidden=(4,)).eval().train().training


def test_batches_come_in_the_same_order():
    with published.batches_in_order():
        assert torch.randperm(5, generator=torch.Generator().manual_seed(0)).tolist() == [0, 1, 2, 3, 4]
    assert torch.randperm(99).tolist() != list(range(99))


def test_missing_values_become_the_mean_of_their_own_split(monkeypatch):
    nothing = np.nan
    rows = np.array([[1.0, nothing], [3.0, nothing], [nothing, nothing]], dtype=np.float32)
    assert published.with_means(rows).tolist() == [[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]]
    examples = Examples.of(Taxonomy.of({"A": []}), [["A"]] * 3, features=rows)
    monkeypatch.setattr(run, "parts_of", lambda name, folder: {"train": examples, "test": examples.take([0, 2])})
    with published.means_of_each_split():
        found = run.parts_of("any", Path())
    assert found["train"].features[2, 0] == 2.0
    assert found["test"].features[1, 0] == 1.0


def test_layers_of_the_state_network_keep_no_biases_inside_the_habit():
    settings = {"supervised_epochs": 1, "reinforced_epochs": 1, "hidden": 8, "width": 4, "validation_share": 0.2}

    def biases() -> list[torch.Tensor]:
        made = HiLAPClassifier(preset="paper", encoder="mlp", encoder_options={"hidden": [4]}, **settings)
        policy = made.fit(tiny()).network_.policy
        return [policy.of_document.bias, policy.second.bias]

    with published.no_biases():
        assert not any(bias.any() for bias in biases())
    assert all(bias.any() for bias in biases())
