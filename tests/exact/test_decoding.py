"""Decoding against full enumeration on taxonomies of five labels, tree and DAG, both DAG rules, plain and residual."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest
import torch

from hilap.decoding import Constraints, beam, decode, explain, marginals, sampled
from hilap.decoding.scoring import log_probs
from hilap.policy import Policy, greedy
from hilap.taxonomy import Taxonomy
from tests.exact.walks import every_walk

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": [], "e": ["d"]})
DAG = Taxonomy.of({"a": [], "b": [], "c": ["a", "b"], "d": ["c"], "e": ["b"]})
CASES = {
    "tree": (TREE, "ancestors", False),
    "tree-residual": (TREE, "ancestors", True),
    "dag": (DAG, "ancestors", False),
    "dag-residual": (DAG, "ancestors", True),
    "dag-any": (DAG, "any", False),
    "dag-any-residual": (DAG, "any", True),
}
STEPS = 8
WIDE = 400


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny products: two threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


@pytest.fixture
def taxonomy(case) -> Taxonomy:
    return case[0]


@pytest.fixture
def policy(case) -> Policy:
    taxonomy, rule, residual = case
    generator = torch.Generator().manual_seed(3)
    made = Policy(taxonomy, 4, hidden=6, width=5, dag_rule=rule, residual=residual, generator=generator).double()
    for parameter in made.parameters():
        parameter.data.mul_(2)
    made.temperature = 0.8
    return made


@pytest.fixture
def documents(policy):
    generator = torch.Generator().manual_seed(5)
    embeddings = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    flat = torch.randn(3, policy.n_labels, generator=generator, dtype=torch.float64)
    bias = torch.linspace(-0.3, 0.4, policy.n_labels + 1, dtype=torch.float64)
    return policy.documents(embeddings, flat, bias)


def as_set(row: torch.Tensor) -> frozenset[int]:
    return frozenset(row.nonzero().flatten().tolist())


def enumerated(policy, documents, doc: int, steps: int = STEPS) -> dict[frozenset[int], float]:
    """The probability of every set: the sum over all walks that end with it."""
    found: dict[frozenset[int], float] = defaultdict(float)
    for walk in every_walk(policy, documents, max_steps=steps, doc=doc):
        found[as_set(walk.placed)] += math.exp(walk.log_prob.item())
    return dict(found)


def in_beam(found, doc: int) -> dict[frozenset[int], float]:
    sets = [as_set(row) for row, value in zip(found.sets[doc], found.log_probs[doc], strict=True) if value > -math.inf]
    assert len(set(sets)) == len(sets), "a set stands twice in the beam"
    return {s: math.exp(v) for s, v in zip(sets, found.log_probs[doc].tolist(), strict=False)}


def test_the_steady_probabilities_are_those_of_the_policy(policy, documents):
    for doc in range(3):
        for walk in every_walk(policy, documents, max_steps=3, doc=doc):
            state = policy.start(1)
            for action in walk.actions:
                if action != policy.stop:
                    state = policy.step(state, torch.tensor([action]))
            arguments = (documents, torch.tensor([doc]), state.at, state.open)
            torch.testing.assert_close(log_probs(policy, *arguments), policy.log_probs(*arguments))


def test_a_greedy_walk_takes_the_best_action_at_every_step(policy, documents):
    mine = decode(policy, documents, max_steps=STEPS)
    theirs = policy.rollout(documents, None, choose=greedy, max_steps=STEPS)
    assert torch.equal(mine.placed, theirs.placed)
    assert torch.equal(mine.actions, theirs.actions)
    replay = policy.replay(documents, theirs)
    taken = replay.add_up(replay.taken, 3)
    torch.testing.assert_close(mine.log_prob, taken)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, STEPS])
def test_a_wide_beam_is_the_enumeration_of_all_walks(policy, documents, steps):
    found = beam(policy, documents, width=WIDE, max_steps=steps)
    for doc in range(3):
        assert in_beam(found, doc) == pytest.approx(enumerated(policy, documents, doc, steps), abs=1e-12)
    assert found.mass.tolist() == pytest.approx([1, 1, 1], abs=1e-12)
    torch.testing.assert_close(found.shares, found.log_probs.exp())


def test_a_beam_gives_the_most_probable_set_first(policy, documents):
    found = beam(policy, documents, width=WIDE, max_steps=STEPS)
    assert (found.log_probs.diff(dim=1).nan_to_num(0) <= 0).all()
    for doc in range(3):
        exact = enumerated(policy, documents, doc)
        assert as_set(found.sets[doc, 0]) == max(exact, key=exact.__getitem__)


@pytest.mark.parametrize("steps", [0, 1, 3, STEPS])
def test_a_beam_of_width_one_is_the_greedy_walk(policy, documents, steps):
    found = beam(policy, documents, width=1, max_steps=steps)
    single = decode(policy, documents, max_steps=steps)
    assert torch.equal(found.sets[:, 0], single.placed)
    torch.testing.assert_close(found.log_probs[:, 0], single.log_prob)


@pytest.mark.parametrize("width", [2, 3, 5])
def test_a_narrow_beam_never_claims_more_than_a_set_has(policy, documents, width):
    found = beam(policy, documents, width=width, max_steps=STEPS)
    for doc in range(3):
        exact = enumerated(policy, documents, doc)
        assert all(value <= exact[labels] + 1e-12 for labels, value in in_beam(found, doc).items())


def test_marginals_of_a_wide_beam_are_those_of_all_walks(policy, documents):
    found = marginals(policy, documents, method="beam", width=WIDE, max_steps=STEPS)
    for doc in range(3):
        exact = enumerated(policy, documents, doc)
        for label in range(policy.n_labels):
            expected = sum(p for labels, p in exact.items() if label in labels)
            assert found[doc, label].item() == pytest.approx(expected, abs=1e-12)


def test_marginals_of_a_narrow_beam_are_shares_of_the_sets_it_holds(policy, documents):
    found = beam(policy, documents, width=3, max_steps=STEPS)
    shares = marginals(policy, documents, method="beam", width=3, max_steps=STEPS)
    for doc in range(3):
        held = in_beam(found, doc)
        for label in range(policy.n_labels):
            expected = sum(p for labels, p in held.items() if label in labels) / sum(held.values())
            assert shares[doc, label].item() == pytest.approx(expected, abs=1e-12)


def test_sampled_sets_come_as_often_as_they_are_probable(policy, documents):
    samples = 20_000
    sets = sampled(policy, documents, samples=samples, max_steps=STEPS, generator=torch.Generator().manual_seed(2))
    for doc in range(3):
        exact = enumerated(policy, documents, doc)
        rows, counts = torch.unique(sets[doc], dim=0, return_counts=True)
        drawn = {as_set(row): count / samples for row, count in zip(rows, counts.tolist(), strict=True)}
        assert set(drawn) <= set(exact)
        for labels, p in exact.items():
            assert abs(drawn.get(labels, 0) - p) <= 5 * math.sqrt(p * (1 - p) / samples) + 1e-4


def test_marginals_of_samples_are_their_mean(policy, documents):
    sets = sampled(policy, documents, samples=37, max_steps=STEPS, generator=torch.Generator().manual_seed(9))
    found = marginals(
        policy, documents, method="samples", samples=37, max_steps=STEPS, generator=torch.Generator().manual_seed(9)
    )
    torch.testing.assert_close(found, sets.double().mean(1))


def test_an_explanation_is_the_greedy_walk_with_all_it_could_have_done(policy, documents):
    walks = decode(policy, documents, max_steps=STEPS)
    for doc in range(3):
        decisions = explain(policy, documents, doc, max_steps=STEPS)
        assert [d.action for d in decisions] == walks.actions[: len(decisions), doc].tolist()
        assert all(a == policy.stop for a in walks.actions[len(decisions) :, doc].tolist())
        state = policy.start(1)
        for decision in decisions:
            assert decision.at == state.at.item()
            expected = policy.log_probs(documents, torch.tensor([doc]), state.at, state.open)[0].exp()
            assert sorted(decision.actions.tolist()) == state.open[0].nonzero().flatten().tolist()
            torch.testing.assert_close(decision.probabilities, expected[decision.actions])
            assert decision.actions[0].item() == decision.action
            assert (decision.probabilities.diff() <= 0).all()
            state = policy.step(state, torch.tensor([decision.action]))
        total = sum(math.log(d.probabilities[0].item()) for d in decisions)
        assert total == pytest.approx(walks.log_prob[doc].item(), abs=1e-9)


# -- constraints: the rules again, by hand on sets of ids -------------------------------------------------------------


def allowed_by_hand(constraints, taxonomy, closing, placed, at, opened):
    """The open labels that remain, and whether stop does."""

    def after(label):
        return placed | (set(taxonomy.close([label])) if closing else {label})

    labels = set(opened)
    if constraints.single_path:
        labels &= set(taxonomy.children(at))
    if constraints.max_labels is not None:
        labels = {label for label in labels if len(after(label)) <= constraints.max_labels}
    unfinished = not placed or any(taxonomy.children(x) and not placed & set(taxonomy.children(x)) for x in placed)
    closed = len(placed) < constraints.min_labels or (constraints.must_reach_leaf and unfinished)
    return labels, not (closed and labels)


def constrained(policy, taxonomy, documents, doc, constraints, steps=STEPS):
    """(set of ids -> probability) by walking every walk that the rules leave."""
    closing = policy.places.starts[-1] > policy.n_labels
    found: dict[frozenset[str], float] = defaultdict(float)
    index = {label: i for i, label in enumerate(taxonomy.labels)}

    def go(placed, at, left, probability):
        opened = set(taxonomy.top_labels).union(*(taxonomy.children(x) for x in placed)) - placed
        labels, stop = allowed_by_hand(constraints, taxonomy, closing, placed, at, opened)
        if not labels or not left:
            found[frozenset(placed)] += probability
            return
        mask = torch.zeros(1, policy.n_labels + 1, dtype=torch.bool)
        mask[0, [index[label] for label in labels]] = True
        mask[0, policy.stop] = stop
        place = torch.tensor([policy.root if at is None else index[at]])
        step = policy.log_probs(documents, torch.tensor([doc]), place, mask)[0].exp()
        if stop:
            found[frozenset(placed)] += probability * step[policy.stop].item()
        for label in labels:
            new = placed | (set(taxonomy.close([label])) if closing else {label})
            go(new, label, left - 1, probability * step[index[label]].item())

    go(set(), None, steps, 1.0)
    return {frozenset(index[label] for label in labels): p for labels, p in found.items()}


RULES = [
    Constraints(),
    Constraints(min_labels=2),
    Constraints(min_labels=9),
    Constraints(max_labels=1),
    Constraints(max_labels=2),
    Constraints(min_labels=3, max_labels=3),
    Constraints(single_path=True),
    Constraints(single_path=True, min_labels=2),
    Constraints(must_reach_leaf=True),
    Constraints(single_path=True, must_reach_leaf=True),
    Constraints(must_reach_leaf=True, max_labels=2),
    Constraints(min_labels=1, max_labels=3, single_path=True, must_reach_leaf=True),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_with_constraints_a_wide_beam_is_the_enumeration_of_the_walks_they_leave(policy, taxonomy, documents, rule):
    found = beam(policy, documents, width=WIDE, max_steps=STEPS, constraints=rule)
    narrow = beam(policy, documents, width=1, max_steps=STEPS, constraints=rule)
    single = decode(policy, documents, max_steps=STEPS, constraints=rule)
    rolled = policy.rollout(documents, None, choose=greedy, max_steps=STEPS, allow=rule.allow(policy))
    assert torch.equal(narrow.sets[:, 0], single.placed)
    assert torch.equal(rolled.placed, single.placed)
    for doc in range(3):
        exact = constrained(policy, taxonomy, documents, doc, rule)
        assert in_beam(found, doc) == pytest.approx(exact, abs=1e-12)
        assert as_set(single.placed[doc]) in exact


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_an_explanation_keeps_the_constraints(policy, documents, rule):
    walks = decode(policy, documents, max_steps=STEPS, constraints=rule)
    for doc in range(3):
        decisions = explain(policy, documents, doc, max_steps=STEPS, constraints=rule)
        assert [d.action for d in decisions] == walks.actions[: len(decisions), doc].tolist()
        assert all(d.probabilities.sum().item() == pytest.approx(1) for d in decisions)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.must_reach_leaf and rule.max_labels is None], ids=str)
def test_with_must_reach_leaf_the_most_specific_labels_of_a_closed_set_are_leaves(taxonomy, documents, policy, rule):
    found = beam(policy, documents, width=WIDE, max_steps=STEPS, constraints=rule)
    for doc in range(3):
        for labels in in_beam(found, doc):
            named = [taxonomy.labels[i] for i in labels]
            assert named
            if taxonomy.is_consistent(named):
                assert set(taxonomy.most_specific(named)) <= set(taxonomy.leaves)
