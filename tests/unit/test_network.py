"""The network: losses by hand, one encoding for all of them, modes that are put back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hilap.corpus import Examples
from hilap.decoding import decode
from hilap.encoders import make
from hilap.errors import SettingError
from hilap.network import Network, Profile, Seen, averaged, evaluating, flat_loss, reinforced_loss, supervised_loss
from hilap.policy import Policy, returns, self_critical_loss
from hilap.settings import PolicySettings


@pytest.fixture(params=["tree", "dag"])
def taxonomy(request):
    return request.getfixturevalue(request.param)


def network_of(taxonomy, members: int = 1, **settings) -> tuple[Network, torch.Tensor, torch.Tensor]:
    """A small network, a prepared batch of nine documents and their gold sets."""
    rng = np.random.default_rng(0)
    labels = list(taxonomy.labels)
    sets = [[labels[k] for k in rng.choice(len(labels), rng.integers(0, 3), replace=False)] for _ in range(9)]
    examples = Examples.of(taxonomy, sets, features=rng.normal(size=(9, 4)).astype(np.float32))
    generator = torch.Generator().manual_seed(0)
    encoders = [make("mlp", hidden=(6,), dropout=0.5).fit(examples, generator=generator) for _ in range(members)]
    network = Network(taxonomy, encoders, PolicySettings(hidden=24, width=24, **settings), generator)
    batch = network.encoder.prepare(examples).batch(np.arange(9))
    return network, batch, torch.from_numpy(examples.labels.toarray().astype(bool))


def walking(network: Network, batch: torch.Tensor):
    with evaluating(network):
        return network.documents(network.see(batch))


def test_without_a_greedy_walk_in_between_one_rollout_is_the_self_critical_loss(taxonomy, monkeypatch):
    network, batch, gold = network_of(taxonomy)
    documents, policy = walking(network, batch), network.policy

    # Both losses draw different numbers of random values, as the greedy walks share the loop of the sampled ones.
    # So the draws are made a function of the scores: the second best action where there is one.
    def second(log_probs, rows, columns):
        return (
            log_probs.topk(min(2, log_probs.shape[1]), dim=1)
            .indices[:, -1]
            .where(log_probs.isfinite().sum(1) > 1, log_probs.argmax(1))
        )

    monkeypatch.setattr("hilap.network.sampler", lambda generator: second)
    ours, finals = reinforced_loss(policy, documents, gold, max_steps=6, gamma=0.9, generator=torch.Generator())
    theirs = self_critical_loss(policy, documents, gold, max_steps=6, gamma=0.9, choose=second)
    torch.testing.assert_close(ours, theirs)
    ends = policy.rollout(documents, gold, choose=second, max_steps=6).rewards.sum(0)
    torch.testing.assert_close(finals, ends)
    assert theirs.abs().max() > 0


def test_a_leave_one_out_baseline_is_the_mean_of_the_other_walks(taxonomy, monkeypatch):
    network, batch, gold = network_of(taxonomy)
    documents, policy, rollouts = walking(network, batch), network.policy, 3
    walks = []
    rollout = Policy.rollout

    def watched(self, *args, **kwargs):
        walks.append(rollout(self, *args, **kwargs))
        return walks[-1]

    monkeypatch.setattr(Policy, "rollout", watched)
    losses, finals = reinforced_loss(
        policy, documents, gold, max_steps=6, gamma=0.8, generator=torch.Generator().manual_seed(3), rollouts=rollouts,
        baseline="leave-one-out",
    )  # fmt: skip
    (episode,) = walks
    n, steps = len(gold), len(episode.rewards)
    expected = torch.zeros(n)
    replay = policy.replay(documents, episode)
    taken = {(int(t), int(r)): float(v) for t, r, v in zip(replay.step, replay.row, replay.taken.detach(), strict=True)}
    for r in range(rollouts * n):
        d = r % n
        others = [s for s in range(d, rollouts * n, n) if s != r]
        for t in range(steps):
            gains = [
                float(episode.rewards[k, r]) - sum(float(episode.rewards[k, s]) for s in others) / (rollouts - 1)
                for k in range(t, steps)
            ]
            value = sum(0.8**i * gain for i, gain in enumerate(gains))
            expected[d] -= taken.get((t, r), 0.0) * value / rollouts
    torch.testing.assert_close(losses.detach(), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(finals, episode.rewards.sum(0).view(rollouts, n).mean(0))


def test_the_supervised_loss_is_the_mix_of_flat_and_local(taxonomy):
    network, batch, gold = network_of(taxonomy)
    documents = walking(network, batch)
    with evaluating(network):
        logits = network.see(batch).flat
        local = network.policy.local_loss(documents, gold)
        flat = flat_loss(logits, gold)
        for share in (0.0, 0.3, 1.0):
            mixed = supervised_loss(network.policy, documents, logits, gold, flat_share=share)
            torch.testing.assert_close(mixed, (share * flat + (1 - share) * local) / len(taxonomy))


def test_the_flat_loss_is_cross_entropy_by_hand():
    logits, gold = torch.tensor([[0.5, -1.0], [2.0, 0.0]]), torch.tensor([[True, False], [False, True]])
    chance = 1 / (1 + np.exp(-logits.numpy()))
    expected = -np.where(gold.numpy(), np.log(chance), np.log(1 - chance)).sum(1)
    np.testing.assert_allclose(flat_loss(logits, gold).numpy(), expected, rtol=1e-5)


def test_what_has_no_weight_is_not_computed(dag, monkeypatch):
    network, batch, gold = network_of(dag)
    documents = walking(network, batch)
    monkeypatch.setattr(Policy, "local_loss", lambda *_, **__: pytest.fail("not needed"))
    supervised_loss(network.policy, documents, network.see(batch).flat, gold, flat_share=1.0)
    monkeypatch.undo()
    monkeypatch.setattr("hilap.network.flat_loss", lambda *_: pytest.fail("not needed"))
    supervised_loss(network.policy, documents, network.see(batch).flat, gold, flat_share=0.0)


def test_an_entropy_bonus_is_taken_off_and_standardising_changes_only_the_scale(dag):
    network, batch, gold = network_of(dag)
    documents, policy = walking(network, batch), network.policy
    common = {"max_steps": 6, "gamma": 1.0, "rollouts": 2, "baseline": "leave-one-out"}

    def loss(**more) -> torch.Tensor:
        return reinforced_loss(
            policy, documents, gold, generator=torch.Generator().manual_seed(0), **common, **more
        )[0].detach()  # fmt: skip

    assert (loss(entropy_bonus=2.0) <= loss() + 1e-6).all()
    torch.testing.assert_close(loss() - loss(entropy_bonus=2.0), 2 * (loss() - loss(entropy_bonus=1.0)))
    assert not torch.allclose(loss(standardise=True), loss())


def test_the_entropy_bonus_is_a_mean_over_the_open_actions_of_each_decision(dag, monkeypatch):
    network, batch, gold = network_of(dag)
    documents, policy = walking(network, batch), network.policy
    replays = []
    replay = policy.replay
    monkeypatch.setattr(policy, "replay", lambda *args: replays.append(replay(*args)) or replays[-1])

    def loss(bonus: float) -> torch.Tensor:
        draw = torch.Generator().manual_seed(0)
        common = {"max_steps": 6, "gamma": 1.0, "rollouts": 2, "baseline": "leave-one-out"}
        return reinforced_loss(policy, documents, gold, generator=draw, entropy_bonus=bonus, **common)[0].detach()

    by_hand = torch.zeros(2 * len(gold))
    taken = loss(0.0) - loss(1.0)
    for m, row in enumerate(replays[0].row.tolist()):
        probs = replays[0].log_probs[replays[0].starts[m] : replays[0].starts[m + 1]].detach().exp()
        by_hand[row] -= (probs * probs.log()).sum() / len(probs)
    torch.testing.assert_close(taken, by_hand.view(2, -1).mean(0), rtol=1e-4, atol=1e-5)


def test_returns_add_up_discounted_rewards_by_hand():
    rewards = torch.tensor([[1.0, 0.0], [0.5, 2.0], [0.25, -1.0]])
    expected = [[1 + 0.5 * (0.5 + 0.5 * 0.25), 0.5 * (2 - 0.5)], [0.5 + 0.125, 1.5], [0.25, -1.0]]
    torch.testing.assert_close(returns(rewards, 0.5), torch.tensor(expected))


@pytest.mark.parametrize("training", [True, False])
def test_evaluating_puts_the_mode_back_also_after_an_error(dag, training):
    network, batch, _ = network_of(dag)
    network.train(training)
    with evaluating(network) as same:
        assert same is network
        assert not network.training
        assert not network.members[0].encoder.training
        assert not network.see(batch).flat.requires_grad
        assert torch.equal(network.see(batch).flat, network.see(batch).flat)
    assert network.training is training
    with pytest.raises(RuntimeError), evaluating(network):
        raise RuntimeError
    assert network.training is training
    assert all(module.training is training for module in network.modules())


def test_dropout_is_on_in_training_after_an_evaluation(dag):
    network, batch, _ = network_of(dag)
    network.train()
    with evaluating(network):
        pass
    assert not torch.equal(network.see(batch).flat, network.see(batch).flat)


def test_several_members_are_averaged(dag):
    network, batch, _ = network_of(dag, members=3, sees="flat")
    with evaluating(network):
        each = [member(batch)[1] for member in network.members]
        torch.testing.assert_close(network.see(batch).flat, sum(each) / 3)
        assert not torch.equal(each[0], each[1])


def test_of_several_members_probabilities_may_be_averaged(dag):
    network, batch, _ = network_of(dag, members=3, sees="flat", averaging="probabilities")
    with evaluating(network):
        mean = sum(member(batch)[1].double().sigmoid() for member in network.members) / 3
        torch.testing.assert_close(network.see(batch).flat.double().sigmoid(), mean, rtol=0, atol=1e-7)


@pytest.mark.parametrize("way", ["logits", "probabilities"])
def test_the_average_of_one_is_its_own_and_of_extremes_is_a_number(way):
    own = torch.tensor([[-1000.0, -30.0, 0.0, 30.0, 1000.0]])
    assert torch.equal(averaged([own], way), own)
    together = averaged([own, own, -own], way)
    assert together.isfinite().all()
    assert (together.diff() > 0).all() if way == "logits" else (together.diff() >= 0).all()


@pytest.mark.parametrize("members", [1, 3])
def test_condensed_members_are_read_as_the_nearest_scores_that_fit_together(dag, members):
    """Nearest: no step towards other scores that fit together comes nearer. These are sums of closed sets."""
    network, batch, _ = network_of(dag, members=members, sees="flat", condense=True)
    with evaluating(network):
        each = [member(batch)[1].double() for member in network.members]
        found = [network.constrained(own) for own in each]
        torch.testing.assert_close(network.see(batch).flat, torch.stack(found).mean(0).float())
    above = torch.from_numpy(dag.closure.toarray() > 0)  # row: a label; columns: itself and its ancestors
    sets = [torch.tensor(bits) for bits in itertools.product([False, True], repeat=len(dag))]
    closed = torch.stack([bits for bits in sets if (~bits | (~above | bits).all(1)).all()]).double()
    for own, fit in zip(each, found, strict=True):
        assert ((fit @ closed.T) >= (own @ closed.T) - 1e-9).all()  # what is left over leads away from all of them
        torch.testing.assert_close(((own - fit) * fit).sum(1), torch.zeros(9, dtype=torch.float64))
        parents = dag.parent_matrix.tocoo()
        assert (fit[:, parents.row] <= fit[:, parents.col]).all()
        assert not torch.allclose(own, fit)


@pytest.mark.parametrize("members", [1, 3])
def test_with_the_max_constraint_a_member_is_read_at_least_as_high_as_all_below(dag, members):
    network, batch, _ = network_of(dag, members=members, sees="flat", max_constraint=True)
    plain, _, _ = network_of(dag, members=members, sees="flat")
    above = dag.closure.toarray() > 0  # row: a label; columns: itself and its ancestors
    with evaluating(network), evaluating(plain):
        each = [member(batch)[1].numpy() for member in network.members]
        expected = np.mean([[[row[above[:, k]].max() for k in range(len(dag))] for row in own] for own in each], axis=0)
        np.testing.assert_allclose(network.see(batch).flat.numpy(), expected, rtol=1e-5)
        assert not np.allclose(expected, plain.see(batch).flat.numpy())


def test_the_flat_loss_with_the_max_constraint_is_that_of_c_hmcnn(taxonomy):
    """Which is written on its own, and compared with its definition in `tests/exact`."""
    from hilap.baselines.c_hmcnn import MaxConstraintHead

    network, _, gold = network_of(taxonomy, max_constraint=True)
    logits = torch.randn(gold.shape, generator=torch.Generator().manual_seed(3)).requires_grad_()
    ours = flat_loss(network.compared(logits, gold), gold).mean() / len(taxonomy)
    theirs = MaxConstraintHead(2, taxonomy).loss(logits, gold.float())
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs)))


def test_several_members_have_no_one_document_vector(dag):
    with pytest.raises(SettingError, match="folds above 1 need sees='flat'"):
        network_of(dag, members=2)


def test_a_policy_sees_standardised_flat_logits(dag):
    network, batch, _ = network_of(dag, sees="flat")
    with evaluating(network):
        logits = network.see(batch).flat
        assert not network.scaled
        network.scale(logits)
        assert network.scaled
        expected = (logits - logits.mean(0)) / (logits.std(0, unbiased=False) + 0.3)
        half = F.linear(expected, network.policy.of_document.weight, network.policy.of_document.bias)
        torch.testing.assert_close(network.documents(network.see(batch)).half, half)


def test_a_profile_is_the_best_logits_and_what_is_expected_on_each_level(dag):
    logits = torch.randn(5, len(dag), generator=torch.Generator().manual_seed(3)) * 3
    found = Profile(dag)(logits).numpy()
    assert found.shape == (5, Profile.width(dag))
    for row, profile in zip(logits.double().numpy(), found, strict=True):
        chances = 1 / (1 + np.exp(-row))
        levels = [chances[dag.levels == level].sum() for level in range(1, dag.levels.max() + 1)]
        entropy = -(chances * np.log(chances) + (1 - chances) * np.log(1 - chances)).sum()
        sums = [*levels, chances.sum(), (chances**2).sum(), entropy]
        np.testing.assert_allclose(profile, [*sorted(row, reverse=True), *np.log(np.array(sums) + 1e-3)], rtol=1e-4)


def test_labels_and_stop_start_small_where_asked(dag):
    whole, small = (network_of(dag, start_scale=scale)[0].policy for scale in (1.0, 0.1))
    torch.testing.assert_close(small.label, 0.1 * whole.label)
    torch.testing.assert_close(small.e_stop, 0.1 * whole.e_stop)


@pytest.mark.parametrize("stay", [False, True])
def test_losses_that_share_states_have_the_same_value_and_gradients_and_compute_fewer(taxonomy, stay, monkeypatch):
    network, batch, gold = network_of(taxonomy)
    network.encoder.eval()  # no dropout
    computed = []
    second = network.policy.second.forward
    monkeypatch.setattr(network.policy.second, "forward", lambda rows: (computed.append(len(rows)), second(rows))[1])

    def losses(share: bool) -> tuple[torch.Tensor, list[torch.Tensor], int]:
        computed.clear()
        network.zero_grad()
        seen = network.see(batch)
        documents = network.documents(seen)
        documents = documents.sharing() if share else documents
        generator = torch.Generator().manual_seed(5)
        reinforced, _ = reinforced_loss(
            network.policy, documents, gold, max_steps=9, gamma=0.9, generator=generator, rollouts=3
        )
        supervised = supervised_loss(network.policy, documents, seen.flat, gold, flat_share=0.5, stay=stay)
        total = reinforced + supervised
        total.sum().backward()
        return total.detach(), [weight.grad.clone() for weight in network.policy.parameters()], sum(computed)

    (alone, gradients, many), (shared, others, fewer) = losses(False), losses(True)
    torch.testing.assert_close(shared, alone)
    for one, other in zip(gradients, others, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert fewer < many


def test_a_lifted_network_walks_down_to_a_label_whose_parents_are_doubtful(dag):
    network, _, _ = network_of(dag, residual=True, lift=True)
    leaf = max(range(len(dag)), key=lambda k: dag.longest_levels[k])
    flat = torch.full((1, len(dag)), -5.0)
    flat[0, leaf] = 3.0
    network.policy.bias.data[network.policy.stop] = -1.0
    network.policy.label.data.zero_()
    network.policy.e_stop.data.zero_()
    seen = Seen(torch.zeros(1, network.encoder.dim), flat)
    with evaluating(network):
        placed = decode(network.policy, network.documents(seen), max_steps=9).placed[0].nonzero().squeeze(1).tolist()
        assert placed == sorted(dag.closure[[leaf]].indices.tolist())
        bias = torch.zeros(len(dag) + 1)
        bias[leaf] = -9.0  # a bias counts before lifting
        assert not decode(network.policy, network.documents(seen, bias), max_steps=9).placed.any()


def test_lifting_needs_flat_logits_in_the_scores():
    with pytest.raises(SettingError, match="lift must be false unless residual is true"):
        PolicySettings(lift=True)
