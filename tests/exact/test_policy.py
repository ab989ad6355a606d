"""The method against full enumeration on taxonomies of at most six labels, tree and DAG, both DAG rules."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

from hilap.policy import EXAMPLE_F1, Policy, greedy, imitation_loss, oracle, returns, sampler, self_critical_loss
from hilap.taxonomy import Taxonomy
from tests.exact.walks import every_walk

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": [], "e": ["d"]})
DAG = Taxonomy.of({"a": [], "b": [], "c": ["a", "b"], "d": ["c"], "e": ["b"]})
CASES = [(TREE, "ancestors", False), (DAG, "ancestors", False), (DAG, "any", False), (DAG, "ancestors", True)]
STEPS = 8


@pytest.fixture(params=CASES, ids=["tree", "dag", "dag-any", "dag-residual"])
def policy(request) -> Policy:
    taxonomy, rule, residual = request.param
    generator = torch.Generator().manual_seed(3)
    made = Policy(taxonomy, 4, hidden=6, width=5, dag_rule=rule, residual=residual, generator=generator).double()
    for parameter in made.parameters():  # larger weights than at the start: probabilities far from uniform
        parameter.data.mul_(2)
    return made


@pytest.fixture
def documents(policy):
    generator = torch.Generator().manual_seed(5)
    embeddings = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    return policy.documents(embeddings, torch.randn(3, policy.n_labels, generator=generator, dtype=torch.float64))


@pytest.fixture
def gold(policy):
    sets = torch.zeros(3, policy.n_labels, dtype=torch.bool)
    sets[0, [0, 1]] = True
    sets[1, [0, 1, 2, 3]] = True
    return sets  # the third document has no label


def replaying(actions: tuple[int, ...], stop: int):
    """A chooser that takes the given actions and nothing else."""
    left = iter(actions)
    return lambda log_probs, rows, columns: torch.searchsorted(columns, torch.tensor([next(left, stop)]))


def test_the_probabilities_of_all_walks_sum_to_one(policy, documents):
    for doc in range(3):
        walks = list(every_walk(policy, documents, max_steps=STEPS, doc=doc))
        assert sum(w.log_prob.exp().item() for w in walks) == pytest.approx(1, abs=1e-12)
        assert len(walks) > 30


def test_no_label_is_placed_twice_and_every_action_was_below_a_placed_label(policy, documents):
    taxonomy = TREE if policy.n_labels == 5 and policy.below.items.tolist() == _children(TREE) else DAG
    for walk in every_walk(policy, documents, max_steps=STEPS):
        labels = [a for a in walk.actions if a != policy.stop]
        assert len(set(labels)) == len(labels)
        placed: set[str] = set()
        for label in (taxonomy.labels[a] for a in labels):
            assert label not in placed
            assert not taxonomy.parents(label) or placed & set(taxonomy.parents(label))
            placed |= set(taxonomy.close([label])) if policy.places.starts[-1] > policy.n_labels else {label}
        assert placed == {taxonomy.labels[i] for i in walk.placed.nonzero().flatten().tolist()}


def _children(taxonomy: Taxonomy) -> list[int]:
    return [*taxonomy.child_matrix.indices.tolist(), *(taxonomy.index(label) for label in taxonomy.top_labels)]


def test_with_the_ancestors_rule_every_set_is_closed_upward():
    policy = Policy(DAG, 4, hidden=6, width=5)
    documents = policy.documents(torch.randn(1, 4, generator=torch.Generator().manual_seed(0)))
    sets = [w.placed for w in every_walk(policy, documents, max_steps=STEPS)]
    assert not DAG.inconsistent_rows(torch.stack(sets).numpy()).any()


def test_with_the_any_rule_a_child_needs_only_one_parent():
    policy = Policy(DAG, 4, hidden=6, width=5, dag_rule="any")
    documents = policy.documents(torch.randn(1, 4, generator=torch.Generator().manual_seed(0)))
    sets = [w.placed for w in every_walk(policy, documents, max_steps=STEPS)]
    assert DAG.inconsistent_rows(torch.stack(sets).numpy()).any()


def test_rewards_of_a_walk_sum_to_its_final_f1(policy, documents, gold):
    for walk in every_walk(policy, documents, max_steps=STEPS):
        one = policy.documents(torch.zeros(1, 4, dtype=torch.float64), torch.zeros(1, policy.n_labels))
        episode = policy.rollout(one, gold[:1], choose=replaying(walk.actions, policy.stop), max_steps=STEPS)
        final = EXAMPLE_F1.of_sets(walk.placed[None], gold[:1])
        assert episode.rewards.sum().item() == pytest.approx(final.item(), abs=1e-6)


def test_the_perfect_walk_earns_the_gains_in_f1_and_nothing_for_stop():
    policy = Policy(TREE, 4, hidden=6, width=5)
    gold = torch.tensor([[True, True, False, False, False]])
    one = policy.documents(torch.zeros(1, 4))
    episode = policy.rollout(one, gold, choose=replaying((0, 1, policy.stop), policy.stop), max_steps=STEPS)
    assert episode.rewards[:, 0].tolist() == pytest.approx([2 / 3, 1 / 3, 0])


def test_the_greedy_rollout_is_the_walk_of_best_actions(policy, documents):
    episode = policy.rollout(documents, None, choose=greedy, max_steps=STEPS)
    for doc in range(3):
        walk, taken = policy.start(1), []
        while walk.open[0, : policy.stop].any() and len(taken) < STEPS:
            action = policy.log_probs(documents, torch.tensor([doc]), walk.at, walk.open)[0].argmax()
            taken.append(int(action))
            walk = policy.step(walk, action[None])
        mine = [
            a for a, goes in zip(episode.actions[:, doc].tolist(), episode.going[:, doc].tolist(), strict=True) if goes
        ]
        assert mine[: len(taken)] == taken
        assert torch.equal(episode.placed[doc], walk.placed[0])


def test_sampled_walks_come_as_often_as_they_are_probable(policy, documents):
    walks = list(every_walk(policy, documents, max_steps=STEPS))
    docs = torch.zeros(20_000, dtype=torch.long)
    choose = sampler(torch.Generator().manual_seed(11))
    episode = policy.rollout(documents, None, choose=choose, max_steps=STEPS, docs=docs)
    expected = sum(w.log_prob.exp() * w.placed for w in walks)
    spread = (expected * (1 - expected) / len(docs)).sqrt()
    assert ((episode.placed.double().mean(0) - expected).abs() <= 4.5 * spread + 1e-9).all()


def test_replaying_an_episode_gives_the_log_probabilities_of_its_walks(policy, documents):
    by_actions = {w.actions: w.log_prob for w in every_walk(policy, documents, max_steps=STEPS)}
    docs = torch.zeros(50, dtype=torch.long)
    episode = policy.rollout(
        documents, None, choose=sampler(torch.Generator().manual_seed(1)), max_steps=STEPS, docs=docs
    )
    replay = policy.replay(documents, episode)
    totals = replay.add_up(replay.taken, 50)
    for r in range(50):
        actions = [
            a for a, goes in zip(episode.actions[:, r].tolist(), episode.going[:, r].tolist(), strict=True) if goes
        ]
        matches = [w for w in by_actions if w == tuple(actions)[: len(w)] and len(w) >= len(actions) - 1]
        assert any(math.isclose(by_actions[w].item(), totals[r].item(), abs_tol=1e-10) for w in matches)


def test_the_self_critical_gradient_averaged_over_all_walks_is_that_of_expected_f1(policy, documents, gold):
    for doc in range(3):
        params = [p for p in policy.parameters() if p.requires_grad]
        embeddings = torch.randn(1, 4, generator=torch.Generator().manual_seed(doc), dtype=torch.float64)
        flat = torch.randn(1, policy.n_labels, generator=torch.Generator().manual_seed(doc), dtype=torch.float64)
        one, truth = policy.documents(embeddings, flat), gold[doc : doc + 1]
        walks = list(every_walk(policy, one, max_steps=STEPS))
        expected = sum(w.log_prob.exp() * EXAMPLE_F1.of_sets(w.placed[None], truth).double()[0] for w in walks)
        exact = torch.autograd.grad(expected, params, retain_graph=True, allow_unused=True)
        estimated = [torch.zeros_like(p) for p in params]
        for w in walks:
            choose = replaying(w.actions, policy.stop)
            loss = self_critical_loss(policy, one, truth, max_steps=STEPS, gamma=1.0, choose=choose).sum()
            if not loss.requires_grad:
                continue
            grads = torch.autograd.grad(loss, params, retain_graph=True, allow_unused=True)
            for total, g in zip(estimated, grads, strict=True):
                if g is not None:
                    total -= w.log_prob.exp().item() * g
        for a, b in zip(exact, estimated, strict=True):
            torch.testing.assert_close(torch.zeros_like(b) if a is None else a, b, atol=1e-7, rtol=1e-6)


def test_returns_are_discounted_sums(policy):
    rewards = torch.tensor([[1.0, 0.5], [2.0, 0.0], [4.0, -1.0]])
    by_hand = [[sum(0.5 ** (t - j) * rewards[t, r].item() for t in range(j, 3)) for r in range(2)] for j in range(3)]
    assert returns(rewards, 0.5).tolist() == by_hand


def test_the_split_first_layer_equals_the_layer_on_the_concatenation(policy, documents):
    embeddings = torch.randn(3, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    whole = torch.cat([policy.of_document.weight, policy.of_label.weight], dim=1)  # W2
    for at in range(policy.n_labels + 1):
        pair = torch.cat([embeddings, policy.label[at].expand(3, -1)], dim=1)
        state = F.relu(policy.second(F.relu(pair @ whole.T + policy.of_document.bias)))
        mine = policy.states(documents, torch.arange(3), torch.full((3,), at))
        torch.testing.assert_close(mine, state)


def test_scoring_all_labels_and_only_the_open_ones_agree(policy, documents):
    for walk in every_walk(policy, documents, max_steps=3):
        state = policy.start(1)
        for action in walk.actions:
            if action == policy.stop:
                break
            state = policy.step(state, torch.tensor([action]))
        docs = torch.tensor([0])
        dense = policy.scores(documents, docs, state.at).masked_fill(~state.open, -math.inf).log_softmax(1)
        torch.testing.assert_close(policy.log_probs(documents, docs, state.at, state.open), dense)


def test_the_local_loss_is_binary_cross_entropy_below_the_root_and_below_every_gold_label(policy, documents, gold):
    taxonomy = TREE if policy.below.items.tolist() == _children(TREE) else DAG
    for doc in range(3):
        total = 0.0
        for place in [None, *(taxonomy.labels[i] for i in gold[doc].nonzero().flatten().tolist())]:
            at = policy.root if place is None else taxonomy.index(place)
            scores = policy.scores(documents, torch.tensor([doc]), torch.tensor([at]))[0]
            for child in taxonomy.children(place):
                p = scores[taxonomy.index(child)].sigmoid().item()
                total -= math.log(p if gold[doc, taxonomy.index(child)] else 1 - p)
        assert policy.local_loss(documents, gold)[doc].item() == pytest.approx(total, rel=1e-9)


def test_top_down_inference_visits_a_label_only_through_a_parent_it_placed(policy, documents):
    taxonomy = TREE if policy.below.items.tolist() == _children(TREE) else DAG
    closing = policy.places.starts[-1] > policy.n_labels
    for threshold in (0.3, 0.5, 0.7):
        found = policy.top_down(documents, threshold=threshold)
        for doc in range(3):
            placed: set[str] = set()
            level: list[str | None] = [None]
            visited: set[str] = set()
            while level:
                below = []
                for place in level:
                    at = policy.root if place is None else taxonomy.index(place)
                    scores = policy.scores(documents, torch.tensor([doc]), torch.tensor([at]))[0]
                    below += [c for c in taxonomy.children(place) if scores[taxonomy.index(c)].sigmoid() > threshold]
                level = [c for c in dict.fromkeys(below) if c not in placed and c not in visited]
                visited |= set(level)
                placed |= set(taxonomy.close(level)) if closing else set(level)
            assert {taxonomy.labels[i] for i in found[doc].nonzero().flatten().tolist()} == placed


def test_a_walk_that_may_take_no_step_places_nothing(policy, documents):
    episode = policy.rollout(documents, None, choose=greedy, max_steps=0)
    assert not episode.placed.any()
    assert episode.actions.shape == (0, 3)


def test_a_step_never_reopens_what_was_placed(policy):
    walk = policy.start(2)
    for actions in pairwise([0, 1, 2]):
        walk = policy.step(walk, torch.tensor([actions[0], actions[0]]))
        assert not (walk.open[:, : policy.stop] & walk.placed).any()


def every_state(policy):
    """Every reachable state, each once, as one-row walks."""
    found = {}
    waiting = [policy.start(1)]
    while waiting:
        walk = waiting.pop()
        key = (int(walk.at), *walk.placed[0].tolist())
        if key not in found:
            found[key] = walk
            actions = walk.open[0, : policy.stop].nonzero().flatten().tolist()
            waiting.extend(policy.step(walk, torch.tensor([action])) for action in actions)
    return list(found.values())


def best_final_f1(policy, walk, gold, seen) -> float:
    """The best F1 that any way of going on from here can reach, by exhaustive search."""
    key = tuple(walk.placed[0].tolist())
    if key not in seen:
        seen[key] = EXAMPLE_F1.of_sets(walk.placed, gold).item()
        for action in walk.open[0, : policy.stop].nonzero().flatten().tolist():
            further = best_final_f1(policy, policy.step(walk, torch.tensor([action])), gold, seen)
            seen[key] = max(seen[key], further)
    return seen[key]


def test_the_oracles_actions_are_exactly_the_optimal_ones(policy):
    taxonomy = TREE if policy.below.items.tolist() == _children(TREE) else DAG
    golds = {tuple(taxonomy.encode([[a, b]], close=True).toarray()[0]) for a in taxonomy for b in taxonomy}
    for truth in golds:
        gold = torch.tensor([truth], dtype=torch.bool)
        seen: dict = {}
        for walk in every_state(policy):
            best = best_final_f1(policy, walk, gold, seen)
            mine = oracle(walk.open, gold)[0]
            for action in walk.open[0].nonzero().flatten().tolist():
                stops = action == policy.stop
                value = (
                    EXAMPLE_F1.of_sets(walk.placed, gold).item()
                    if stops
                    else best_final_f1(policy, policy.step(walk, torch.tensor([action])), gold, seen)
                )
                assert bool(mine[action]) == math.isclose(value, best, abs_tol=1e-7)


def test_without_gold_labels_the_oracle_stops_at_once(policy):
    """Once something wrong is placed F1 is 0 for good, so every action is as good; before that only stop is."""
    gold = torch.zeros(1, policy.n_labels, dtype=torch.bool)
    for walk in every_state(policy):
        assert oracle(walk.open, gold)[0].nonzero().flatten().tolist() == [policy.stop]


def test_imitation_loss_is_minus_the_log_of_the_oracles_share_of_probability(policy, documents, gold):
    loss = imitation_loss(policy, documents, gold, max_steps=STEPS, choose=greedy)
    for doc in range(3):
        walk, total = policy.start(1), 0.0
        while walk.open[0, : policy.stop].any():
            probs = policy.log_probs(documents, torch.tensor([doc]), walk.at, walk.open)[0].exp()
            best = oracle(walk.open, gold[doc : doc + 1])[0]
            total -= math.log(probs[best].sum().item())
            action = probs.masked_fill(~best, -1).argmax()
            walk = policy.step(walk, action[None])
        assert loss[doc].item() == pytest.approx(total, rel=1e-9)


def test_the_entropy_of_a_step_is_that_of_its_open_actions(policy, documents):
    episode = policy.rollout(documents, None, choose=greedy, max_steps=STEPS)
    replay = policy.replay(documents, episode)
    for m in range(len(replay.step)):
        probs = replay.log_probs[replay.starts[m] : replay.starts[m + 1]].exp()
        assert replay.entropy[m].item() == pytest.approx(-(probs * probs.log()).sum().item(), rel=1e-9)


def test_staying_adds_every_gold_place_as_a_positive_candidate_of_its_own(policy, documents, gold):
    if policy.bias is not None:
        with torch.no_grad():
            policy.bias.copy_(torch.linspace(-1, 1, len(policy.bias)))
    plain, staying = policy.local_loss(documents, gold), policy.local_loss(documents, gold, stay=True)
    for doc in range(3):
        extra = 0.0
        for at in gold[doc].nonzero().flatten().tolist():
            state = policy.states(documents, torch.tensor([doc]), torch.tensor([at]))[0]
            own = 0.0 if policy.bias is None else policy.bias[at]
            flat = 0.0 if documents.flat is None else documents.flat[doc, at]
            extra -= math.log((state @ policy.label[at] + own + flat).sigmoid().item())
        assert (staying - plain)[doc].item() == pytest.approx(extra, rel=1e-9)
