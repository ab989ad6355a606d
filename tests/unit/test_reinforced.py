"""The reinforced phase: every setting reaches its loss, and it starts where the documents say it starts."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hilap import HiLAPClassifier
from hilap.corpus import Examples
from hilap.decoding import StopBias, decode
from hilap.encoders import make
from hilap.network import Network, Seen, evaluating
from hilap.policy import Policy
from hilap.settings import PolicySettings, TrainSettings
from hilap.taxonomy import Taxonomy
from hilap.training import Trainer, TrainingData
from hilap.training.callbacks import Callback
from hilap.training.phases import Run, plan
from tests.strategies import taxonomies

METHOD = Path(__file__).resolve().parents[2] / "docs" / "method.md"
SMALL = {"hidden": 8, "width": 4, "batch_size": 8, "encoder_options": {"hidden": (6,), "dropout": 0.0}}
SHORT = {"supervised_epochs": 1, "reinforced_epochs": 1}


@pytest.fixture(params=["tree", "dag"])
def taxonomy(request) -> Taxonomy:
    return request.getfixturevalue(request.param)


def examples(taxonomy: Taxonomy, seed: int = 0, n: int = 9) -> Examples:
    """Documents of which some have no label; half of the labels can be read off the features."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 4)).astype(np.float32)
    seen = np.pad(features, ((0, 0), (0, len(taxonomy))))[:, : len(taxonomy)] > 0.9
    drawn = rng.random((n, len(taxonomy))) < 0.15
    sets = [[taxonomy.labels[k] for k in np.flatnonzero(row)] for row in seen | drawn]
    return Examples.of(taxonomy, sets, features=features)


def run_of(taxonomy: Taxonomy, policy: dict | None = None, n: int = 9, bias: StopBias | None = None, **more) -> Run:
    """The plan of a run over a small network, with larger weights than at the start: probabilities are uneven."""
    train, valid = examples(taxonomy, 0, n), examples(taxonomy, 1, n)
    generator = torch.Generator().manual_seed(0)
    settings = TrainSettings(**more)
    encoders = [make("mlp", hidden=(6,), dropout=0.0).fit(train, generator=generator) for _ in range(settings.members)]
    network = Network(taxonomy, encoders, PolicySettings(**{"hidden": 8, "width": 6, **(policy or {})}), generator)
    for weight in network.policy.parameters():
        weight.data.mul_(2)
    return plan(taxonomy, network, TrainingData(train, network), TrainingData(valid, network), settings, bias=bias)


def loss_of(run: Run, step: int = 0, seed: int = 4) -> tuple[torch.Tensor, dict[str, float]]:
    """The loss of the last phase, of all documents, without an update."""
    return run.phases[-1].loss(np.arange(len(run.train)), torch.Generator().manual_seed(seed), step)


def record(monkeypatch: pytest.MonkeyPatch, where: object, name: str) -> list[tuple[dict, object]]:
    """What a function is called with by keyword, and what it gave; it does its work as before."""
    calls: list[tuple[dict, object]] = []
    real = getattr(where, name)

    def watched(*args, **kwargs):
        calls.append((kwargs, real(*args, **kwargs)))
        return calls[-1][1]

    monkeypatch.setattr(where, name, watched)
    return calls


def weights_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    assert before.keys() == after.keys()
    return {name for name, value in before.items() if not torch.equal(value, after[name])}


# -- the loss by hand: O_RL + alpha O_SL ------------------------------------------------------------------------------


def judged(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """(n, L) gold sets of the validation documents, and those of the greedy walk."""
    with evaluating(run.network) as network:
        documents = network.documents(network.see(run.valid.batch(np.arange(len(run.valid)))))
        found = decode(network.policy, documents, max_steps=run.max_steps).placed.numpy()
    return run.valid.labels.toarray().astype(bool), found


def of_all(name: str, placed: set[int], gold: set[int], right: np.ndarray, found: np.ndarray) -> float:
    """What a set adds to a score of all documents, to first order, written out label by label."""
    n, hits, sizes = len(right), (right & found).sum(0), found.sum(0) + right.sum(0)
    if name == "micro_f1":
        f1 = 2 * hits.sum() / sizes.sum()
        return float(sum(n * (2 * (k in gold) - f1) / sizes.sum() for k in placed))
    covered = [k for k in range(len(sizes)) if right[:, k].any()]
    mean = np.mean([2 * hits[k] / sizes[k] for k in covered])
    each = {k: (2 * hits[k] + 2 * mean) / (sizes[k] + 2) for k in covered}
    return float(sum(n * (2 * (k in gold) - each[k]) / (sizes[k] + 2) for k in placed & {*covered}) / len(covered))


def worth(run: Run, placed: set[int], gold: set[int]) -> float:
    """What a set is worth by the rewards of the settings, written out."""
    options = run.settings

    def ratio(top: float, bottom: float) -> float:
        return top / bottom if bottom else 1.0

    share = np.maximum(run.train.labels.toarray().mean(0), 1e-3)
    weight = share**-options.reward_power
    square = options.reward_beta**2
    cost = 1 / run.taxonomy.levels
    both = sum(weight[k] for k in placed & gold)
    found = {
        "example_f1": ratio(2 * len(placed & gold), len(placed) + len(gold)),
        "f_beta": ratio((1 + square) * len(placed & gold), len(placed) + square * len(gold)),
        "weighted_f1": ratio(2 * both, sum(weight[k] for k in placed) + sum(weight[k] for k in gold)),
        "hierarchical": ratio(sum(cost[k] for k in placed & gold), sum(cost[k] for k in placed | gold)),
        **{name: of_all(name, placed, gold, *judged(run)) for name in ("micro_f1", "macro_f1")},
    }
    parts = {options.reward: 1.0} if isinstance(options.reward, str) else options.reward
    return sum(part * found[name] for name, part in parts.items()) / sum(parts.values())


def retold(run: Run, documents, doc: int, actions: list[int]) -> tuple[list[float], list[float]]:
    """One walk told again: log-probabilities of its actions where something is open, and its rewards."""
    policy, gold = run.network.policy, set(np.flatnonzero(run.train.labels.toarray()[doc]).tolist())
    walk, sets, chances = policy.start(1), [set[int]()], []
    for action in actions:
        if walk.open[0, : policy.stop].any():
            row = policy.log_probs(documents, torch.tensor([doc]), walk.at, walk.open)[0]
            chances.append(row[action].item())
        walk = policy.step(walk, torch.tensor([action]))
        sets.append(set(walk.placed[0].nonzero().flatten().tolist()))
    return chances, [worth(run, after, gold) - worth(run, before, gold) for before, after in pairwise(sets)]


def reinforced_by_hand(run: Run, documents, actions: torch.Tensor) -> tuple[float, float]:
    """The mean of O_RL over documents, and what sampled walks gain, from (T, R) actions: greedy walks first."""
    options, n, steps = run.settings, len(run.train), len(actions)
    greedy = options.baseline == "greedy"
    assert actions.shape[1] == n * (options.rollouts + greedy)  # as many walks as asked for
    told = [retold(run, documents, r % n, actions[:, r].tolist()) for r in range(actions.shape[1])]
    chances, values = [], []
    for r in range(n * greedy, len(told)):
        others = [r % n] if greedy else [s for s in range(r % n, len(told), n) if s != r]
        gain = [told[r][1][t] - sum(told[s][1][t] for s in others) / len(others) for t in range(steps)]
        for j, chance in enumerate(told[r][0]):
            chances.append(chance)
            values.append(sum(options.gamma ** (t - j) * gain[t] for t in range(j, steps)))
    if options.standardise_returns:
        values = ((np.array(values) - np.mean(values)) / np.std(values, ddof=1)).tolist()
    total = -sum(chance * value for chance, value in zip(chances, values, strict=True))
    return total / (n * options.rollouts), float(np.mean([sum(rewards) for _, rewards in told[n * greedy :]]))


def supervised_by_hand(run: Run, seen: Seen, documents) -> float:
    """The mean of O_SL over documents; the local loss by hand is in `tests/exact/test_policy.py`."""
    options = run.settings
    gold = run.train.labels.toarray().astype(bool)
    share = options.flat_share if options.reinforced_flat_share is None else options.reinforced_flat_share
    chance = 1 / (1 + np.exp(-seen.flat.double().numpy()))
    flat = -np.log(np.where(gold, chance, 1 - chance)).sum(1)
    local = run.network.policy.local_loss(documents, torch.from_numpy(gold), stay=options.stay).double().numpy()
    return float((share * flat + (1 - share) * local).mean()) / len(run.taxonomy)


ONE_BY_ONE = {
    "the defaults": {},
    "gamma": {"gamma": 0.3},
    "rollouts": {"rollouts": 3},
    "baseline": {"rollouts": 3, "baseline": "leave-one-out"},
    "HiLAP-NoSL": {"supervised_weight": 0.0},
    "supervised_weight": {"supervised_weight": 2.5},
    "flat_share": {"flat_share": 0.2},
    "HiLAP-NoFlat": {"reinforced_flat_share": 0.0},
    "reinforced_flat_share": {"flat_share": 0.2, "reinforced_flat_share": 0.9},
    "stay": {"stay": True},
    "standardise_returns": {"standardise_returns": True},
    "f_beta": {"reward": "f_beta", "reward_beta": 3.0},
    "weighted_f1": {"reward": "weighted_f1", "reward_power": 1.5},
    "hierarchical": {"reward": "hierarchical"},
    "mixed rewards": {"reward": {"example_f1": 1.0, "hierarchical": 3.0}},
    "micro_f1": {"reward": "micro_f1"},
    "macro_f1": {"reward": "macro_f1"},
    "a reward that weighs nothing": {"reward": {"example_f1": 1.0, "micro_f1": 0.0}},
    "rewards of one and of all": {"reward": {"example_f1": 1.0, "micro_f1": 1.0, "macro_f1": 2.0}},
    "together": {"gamma": 0.7, "rollouts": 2, "supervised_weight": 0.5, "stay": True, "standardise_returns": True},
}


@pytest.mark.parametrize("options", ONE_BY_ONE.values(), ids=ONE_BY_ONE.keys())
def test_the_loss_is_that_of_the_reinforced_walks_and_alpha_times_the_supervised_one(taxonomy, options, monkeypatch):
    run = run_of(taxonomy, **options)
    walks = record(monkeypatch, Policy, "rollout")
    loss, figures = loss_of(run)
    ((_, episode),) = walks
    with evaluating(run.network) as network:
        seen = network.see(run.train.batch(np.arange(len(run.train))))
        documents = network.documents(seen)
        reinforced, gained = reinforced_by_hand(run, documents, episode.actions)
        supervised = supervised_by_hand(run, seen, documents)
    assert abs(reinforced) > 1e-3
    assert loss.item() == pytest.approx(reinforced + run.settings.supervised_weight * supervised, rel=1e-4, abs=1e-5)
    assert figures["reward"] == pytest.approx(gained, abs=1e-5)


def test_walks_that_learn_have_the_biases_of_decoding_where_asked(taxonomy, monkeypatch):
    def walked(**options) -> torch.Tensor:
        with monkeypatch.context() as patch:
            calls = record(patch, Policy, "rollout")
            loss_of(run_of(taxonomy, n=40, supervised_weight=0.0, **options))
            return calls[-1][1].placed

    assert walked().any()
    assert not walked(bias=StopBias(constant=100.0), biased_walks=True).any()  # stop is all that is left
    assert torch.equal(walked(bias=StopBias(constant=100.0)), walked())


def test_rewards_of_all_documents_follow_how_things_stand_after_each_epoch(tree, monkeypatch):
    calls = record(monkeypatch, import_module("hilap.training.phases"), "mixed")
    options = {**SMALL, "supervised_epochs": 0, "reinforced_epochs": 3, "learning_rate": 0.05}
    HiLAPClassifier(**options, reward={"example_f1": 1.0, "macro_f1": 1.0}).fit(
        examples(tree, 0, 20), valid=examples(tree, 1)
    )  # three updates an epoch
    placed = [given["now"].placed.tolist() for given, _ in calls]
    assert len(placed) == 9
    assert [placed[0], placed[3], placed[6]] == [placed[2], placed[5], placed[8]]
    assert placed[0] != placed[3]


def test_no_walk_is_longer_than_set(taxonomy, monkeypatch):
    for longest in (1, 2):
        calls = record(monkeypatch, Policy, "rollout")
        loss_of(run_of(taxonomy, max_steps=longest))
        assert [len(episode.actions) for _, episode in calls] == [longest]
        monkeypatch.undo()


def test_an_entropy_bonus_lowers_the_loss_by_its_weight_which_falls_every_500_updates(taxonomy):
    plain, some, more = (loss_of(run_of(taxonomy, entropy_bonus=bonus))[0].item() for bonus in (0.0, 1.0, 2.0))
    assert plain - some > 1e-3
    assert plain - more == pytest.approx(2 * (plain - some), rel=1e-3)
    for step, share in ((499, 1.0), (500, 0.9), (999, 0.9), (1000, 0.81), (1500, 0.729)):
        later = loss_of(run_of(taxonomy, entropy_bonus=2.0), step)[0].item()
        assert plain - later == pytest.approx(share * (plain - more), rel=1e-3), step


def test_the_entropy_bonus_falls_with_the_updates_of_all_epochs(tree, monkeypatch):
    calls = record(monkeypatch, import_module("hilap.training.phases"), "reinforced_loss")
    monkeypatch.setattr("hilap.training.phases.ENTROPY_EVERY", 2)
    options = {**SMALL, "supervised_epochs": 0, "reinforced_epochs": 2, "entropy_bonus": 2.0}
    HiLAPClassifier(**options).fit(examples(tree, 0, 20), valid=examples(tree, 1))  # three updates an epoch
    assert [given["entropy_bonus"] for given, _ in calls] == pytest.approx([2, 2, 1.8, 1.8, 1.62, 1.62])


# -- what Table 6 and the presets switch on and off -------------------------------------------------------------------


class Spy(Callback):
    """Notes in which phase which loss was computed, and with what."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.phase, self.computed, self.given = "", {}, []
        for where, name in (
            ("hilap.network.flat_loss", "flat"),
            ("hilap.training.phases.flat_loss", "flat"),
            ("hilap.policy.Policy.local_loss", "local"),
            ("hilap.training.phases.reinforced_loss", "walks"),
        ):
            self._watch(monkeypatch, where, name)

    def on_phase(self, name, epochs, documents, done):
        self.phase = name

    def _watch(self, monkeypatch: pytest.MonkeyPatch, where: str, name: str) -> None:
        place, _, function = where.rpartition(".")
        real = getattr(Policy if place.endswith("Policy") else import_module(place), function)

        def watched(*args, **kwargs):
            self.computed.setdefault(self.phase, set()).add(name)
            self.given.append((self.phase, name, kwargs))
            return real(*args, **kwargs)

        monkeypatch.setattr(where, watched)


def table_6() -> dict[str, dict[str, object]]:
    """System -> settings, as `docs/method.md` has them."""
    text = METHOD.read_text(encoding="utf-8").partition("| Table 6 |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([\w-]+) \| (.*) \|$", text, re.MULTILINE)
    return {
        system: {name: ast.literal_eval(value) for name, value in re.findall(r"(\w+)=([^,`]+)", given)}
        for system, given in rows
    }


COMPUTED = {
    "Flat-Only": {"flat": {"flat"}},
    "HiLAP-SL-NoFlat": {"supervised": {"local"}},
    "HiLAP-SL": {"supervised": {"flat", "local"}},
    "HiLAP-NoSL": {"supervised": {"flat", "local"}, "reinforced": {"walks"}},
    "HiLAP-NoFlat": {"supervised": {"flat", "local"}, "reinforced": {"local", "walks"}},
    "HiLAP": {"supervised": {"flat", "local"}, "reinforced": {"flat", "local", "walks"}},
}


@pytest.mark.parametrize("system", COMPUTED)
def test_the_systems_of_table_6_compute_the_losses_they_are_named_for_and_no_other(tree, system, monkeypatch):
    spy = Spy(monkeypatch)
    made = HiLAPClassifier(**SMALL, **SHORT, **table_6()[system])
    made.fit(examples(tree), valid=examples(tree, 1), callbacks=[spy])
    assert spy.computed == COMPUTED[system]
    assert table_6().keys() == COMPUTED.keys()


@pytest.mark.parametrize("preset", ["paper", "original"])
def test_the_preset_original_switches_on_the_ingredients_of_the_published_code(tree, preset, monkeypatch):
    spy, on = Spy(monkeypatch), preset == "original"
    made = HiLAPClassifier(preset=preset, **SMALL, **SHORT)
    made.fit(examples(tree), valid=examples(tree, 1), callbacks=[spy])
    assert {(phase, given["stay"]) for phase, name, given in spy.given if name == "local"} == {
        ("supervised", on),
        ("reinforced", on),
    }
    walks = [given for _, name, given in spy.given if name == "walks"]
    assert {(given["entropy_bonus"], given["standardise"]) for given in walks} == {(2.0 if on else 0.0, on)}
    assert (made.network_.policy.bias is not None) == on


def test_a_label_bias_is_there_where_asked_and_learns_from_walks(taxonomy):
    without, with_ = (run_of(taxonomy, {"label_bias": on}, supervised_weight=0.0) for on in (False, True))
    assert without.network.policy.bias is None
    bias = with_.network.policy.bias
    assert any(weight is bias for weight in with_.phases[-1].parameters)
    loss_of(with_)[0].backward()
    assert bias.grad.abs().max() > 1e-4


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8])
def test_what_the_policy_sees_is_dropped_out_in_training_alone(taxonomy, share, monkeypatch):
    run = run_of(taxonomy, {"state_dropout": share}, n=60)
    shown = []
    real = Policy.documents
    monkeypatch.setattr(Policy, "documents", lambda self, e, *rest: shown.append(e) or real(self, e, *rest))
    torch.manual_seed(0)
    loss_of(run)
    with evaluating(run.network) as network:
        whole = network.see(run.train.batch(np.arange(60))).embeddings
        network.documents(Seen(whole, whole.new_zeros(60, len(taxonomy))))
    learning, judged = shown
    assert torch.equal(judged, whole)
    there = whole != 0  # what a ReLU left
    kept = learning[there] != 0
    torch.testing.assert_close(learning[there][kept], whole[there][kept] / (1 - share))
    assert 1 - kept.double().mean().item() == pytest.approx(share, abs=0.15)
    assert bool(kept.all()) == (share == 0)


def test_the_shape_of_the_policy_is_as_set(dag):
    shape = {"temperature": 0.5, "dag_rule": "any", "hidden": 7, "width": 3}
    policy = run_of(dag, shape).network.policy
    assert policy.temperature == 0.5
    assert (policy.of_document.out_features, policy.second.out_features) == (7, 3)
    deepest = dag.index("e")  # below a and d: placed alone, where the letter of the paper is followed
    assert policy.step(policy.start(1), torch.tensor([deepest])).placed.sum() == 1


# -- where it starts --------------------------------------------------------------------------------------------------


def test_hilap_takes_over_all_of_hilap_sl_but_the_stop_embedding(taxonomy):
    def weights(**options) -> dict[str, torch.Tensor]:
        made = HiLAPClassifier(**SMALL, supervised_epochs=2, weight_decay=0.0, **options)
        return weights_of(made.fit(examples(taxonomy), valid=examples(taxonomy, 1)).network_)

    supervised = weights(variant="sl")
    started = weights(reinforced_epochs=1, reinforced_learning_rate=0.0)
    assert changed(supervised, started) == {"policy.e_stop"}
    learned = weights(reinforced_epochs=1, reinforced_learning_rate=0.0, seed=1)
    assert not torch.equal(started["policy.e_stop"], learned["policy.e_stop"])


def test_the_new_stop_embedding_is_as_small_as_start_scale_says(taxonomy):
    def drawn(scale: float) -> torch.Tensor:
        options = {"supervised_epochs": 1, "reinforced_epochs": 1, "reinforced_learning_rate": 0.0, "weight_decay": 0.0}
        made = HiLAPClassifier(**SMALL, **options, start_scale=scale)
        return weights_of(made.fit(examples(taxonomy), valid=examples(taxonomy, 1)).network_)["policy.e_stop"]

    torch.testing.assert_close(drawn(0.01), 0.01 * drawn(1.0))


def test_the_stop_embedding_is_drawn_once_where_imitation_comes_first(taxonomy):
    run = run_of(taxonomy, imitation_epochs=1)
    _, imitation, reinforced = run.phases
    before = weights_of(run.network)
    imitation.begin(torch.Generator().manual_seed(1))
    drawn = weights_of(run.network)
    assert changed(before, drawn) == {"policy.e_stop"}
    reinforced.begin(torch.Generator().manual_seed(2))
    assert not changed(drawn, weights_of(run.network))


def example_f1(gold: np.ndarray, found: np.ndarray) -> float:
    sizes = found.sum(1) + gold.sum(1)
    return float(np.where(sizes == 0, 1, 2 * (gold & found).sum(1) / np.maximum(sizes, 1)).mean())


@pytest.mark.parametrize("more", [{}, {"folds": 2, "pool_validation": True}], ids=["one member", "cross-fitted"])
def test_a_residual_stop_starts_at_the_logit_of_the_best_threshold_and_nothing_else_moves(taxonomy, more):
    sees = "profile" if more else "document"
    options = {"flat_epochs": 8, "supervised_epochs": 0, "learning_rate": 0.02, **more}
    run = run_of(taxonomy, {"residual": True, "sees": sees}, n=60, **options)
    Trainer(run.settings).run(run.network, run.phases[:-1])
    before = weights_of(run.network)
    run.phases[-1].begin(torch.Generator().manual_seed(1))
    after = weights_of(run.network)
    described = {"shortfall", "seen_mean", "seen_scale"}  # buffers: figures of the flat scores, which no loss changes
    assert changed(before, after) - described == {"policy.bias"}
    labels, stop = after["policy.bias"][:-1], after["policy.bias"][-1].item()
    assert not labels.any()
    with evaluating(run.network):
        chances = run.see_valid(np.arange(60)).flat.double().sigmoid().numpy()
    gold = run.valid.labels.toarray().astype(bool)
    tried = [n / 100 for n in (*range(2, 50, 2), *range(50, 95, 10))]
    assert example_f1(gold, chances > 1 / (1 + np.exp(-stop))) == pytest.approx(
        max(example_f1(gold, chances > threshold) for threshold in tried)
    )
    assert example_f1(gold, chances > 0.5) < max(example_f1(gold, chances > threshold) for threshold in tried)


def made_consistent(taxonomy: Taxonomy, above: np.ndarray, *, lift: bool, rule: str) -> np.ndarray:
    """Label sets above a threshold, made consistent by hand: ancestors are added (lift), or what hangs free left out.

    Without lifting a label counts if one of its parents is placed; by the rule `ancestors` it then brings the others.
    """
    closure = taxonomy.closure.toarray().astype(bool)  # row: a label, columns: itself and what is above it
    if lift:
        return (above.astype(int) @ closure.astype(int)) > 0
    parents = taxonomy.child_matrix.toarray().astype(bool).T
    placed = np.zeros_like(above)
    while True:
        opened = ((placed.astype(int) @ parents.T.astype(int)) > 0) | ~parents.any(1)
        new = above & opened
        new = ((new.astype(int) @ closure.astype(int)) > 0) if rule == "ancestors" else new
        if not (new & ~placed).any():
            return placed
        placed |= new


@settings(max_examples=40)
@given(taxonomies(), st.booleans(), st.sampled_from(["ancestors", "any"]), st.integers(0, 99))
def test_with_start_scale_0_a_residual_policy_is_the_thresholded_flat_model_made_consistent(taxonomy, lift, rule, seed):
    shape = {"residual": True, "lift": lift, "dag_rule": rule, "start_scale": 0.0, "sees": "flat", "temperature": 0.3}
    network = run_of(taxonomy, shape).network
    logits = torch.randn(50, len(taxonomy), generator=torch.Generator().manual_seed(seed)) * 3
    with evaluating(network):
        network.policy.bias[network.policy.stop] = -0.7
        found = decode(network.policy, network.documents(Seen(None, logits)), max_steps=len(taxonomy)).placed.numpy()
    expected = made_consistent(taxonomy, logits.numpy() > -0.7, lift=lift, rule=rule)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("lift", [False, True])
def test_a_residual_classifier_that_learns_nothing_from_walks_predicts_that_too(taxonomy, lift):
    made = HiLAPClassifier(
        **SMALL, residual=True, lift=lift, start_scale=0.0, flat_epochs=8, learning_rate=0.02, supervised_epochs=0,
        reinforced_epochs=1, reinforced_learning_rate=0.0, weight_decay=0.0, max_steps=len(taxonomy),
    ).fit(examples(taxonomy, 0, 60), valid=examples(taxonomy, 1, 60))  # fmt: skip
    rng = np.random.default_rng(2)
    new = 5 * rng.normal(size=(300, 4)).astype(np.float32)  # far from what it knows: its scores contradict each other
    with evaluating(made.network_) as network:
        prepared = network.prepare(Examples.of(taxonomy, [[]] * len(new), features=new))
        logits = network.see(prepared.batch(np.arange(len(new)))).flat.numpy()
        threshold = network.policy.bias[network.policy.stop].item()
    expected = made_consistent(taxonomy, logits > threshold, lift=lift, rule="ancestors")
    assert np.array_equal(made.predict(new).toarray() > 0, expected)
    assert ((logits > threshold) != expected).any()  # the flat model alone is not consistent


def test_without_reinforced_epochs_a_residual_policy_is_what_it_is_before_the_first_one(taxonomy):
    """What the bench calls HiLAP before reinforcement: the walk with its threshold, shortfalls and tuned biases."""

    def fitted(epochs: int) -> HiLAPClassifier:
        options = {"preset": "residual", "folds": 2, "flat_epochs": 8, "learning_rate": 0.02, "weight_decay": 0.0}
        made = HiLAPClassifier(**SMALL, **options, reinforced_epochs=epochs, reinforced_learning_rate=0.0)
        return made.fit(examples(taxonomy, 0, 60), valid=examples(taxonomy, 1, 60))

    without, with_ = fitted(0), fitted(1)
    assert not changed(weights_of(without.network_), weights_of(with_.network_))
    assert without.network_.policy.bias[-1].item() != 0
    assert without.decode_ == with_.decode_
    records = [record for record in without.history_ if record["phase"] == "reinforced"]
    assert [record["epoch"] for record in records] == [0]
    assert records[0] == next(record for record in with_.history_ if record["phase"] == "reinforced")
