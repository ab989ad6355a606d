"""What a user may demand of every predicted set: how many labels, one path only, down to a leaf."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hilap.decoding.checks import whole
from hilap.errors import SettingError, require
from hilap.policy import Allow, Policy, Walk
from hilap.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Constraints(Settings):
    """Demands on the predicted sets, kept by closing actions; the open ones share the probability anew.

    They are kept while walking and never lead into a dead end: where no label is left to place, stop opens. So limits
    win over demands. `max_labels` and the end of the walk (`max_steps`) always hold; `min_labels` and
    `must_reach_leaf` hold as far as labels remain that may be placed. With `single_path`, `min_labels` makes the
    path longer, never a second one.

    Parameters
    ----------
    min_labels
        Stop is closed while fewer labels are placed and one may be placed.
    max_labels
        An action is closed if it would place more labels than that, with the ancestors that come along.
    single_path
        Only the children of the current label are open: the set is one path from the root, with all ancestors where
        the policy places those.
    must_reach_leaf
        Stop is closed while nothing is placed, or while a label is placed that has children but none of them placed.
        So the most specific labels of a set that is closed upward are leaves of the taxonomy.

    Examples
    --------
    >>> Constraints(min_labels=3, max_labels=2)
    Traceback (most recent call last):
    hilap.errors.SettingError: max_labels must be at least min_labels (3), got 2
    """

    min_labels: int = 0
    max_labels: int | None = None
    single_path: bool = False
    must_reach_leaf: bool = False

    def __post_init__(self) -> None:
        whole("min_labels", self.min_labels, 0)
        if self.max_labels is not None:
            whole("max_labels", self.max_labels, 1)
            enough = self.min_labels <= self.max_labels
            require(enough, "max_labels", f"at least min_labels ({self.min_labels})", self.max_labels)
        for name in ("single_path", "must_reach_leaf"):
            if not isinstance(getattr(self, name), bool):
                raise SettingError(f"{name} must be true or false, got {getattr(self, name)!r}")

    def allow(self, policy: Policy) -> Allow:
        """The rule for `Policy.rollout` and for everything in this package: a walk -> (R, A) what it may do."""

        def allowed(walk: Walk) -> Tensor:
            labels = walk.open[:, : policy.stop]
            if self.single_path:
                labels = labels & children(policy, walk.at)
            if self.max_labels is not None:
                labels = labels & ~_beyond(policy, walk, labels, self.max_labels)
            more = labels.any(1)
            must_go_on = torch.zeros_like(more)
            if self.min_labels:
                must_go_on |= walk.placed.sum(1) < self.min_labels
            if self.must_reach_leaf:
                must_go_on |= ~reaches_leaves(policy, walk.placed)
            return torch.cat([labels, ~(must_go_on & more).unsqueeze(1)], dim=1)

        return allowed


def allow_of(policy: Policy, constraints: Constraints | None) -> Allow:
    """The rule of some constraints; without any, what the taxonomy opens."""
    return (lambda walk: walk.open) if constraints is None else constraints.allow(policy)


def children(policy: Policy, at: Tensor) -> Tensor:
    """(R, L) bool: the children of each place."""
    below = torch.zeros(len(at), policy.n_labels, dtype=torch.bool, device=at.device)
    which, child = policy.below.of(at)
    below[which, child] = True
    return below


def reaches_leaves(policy: Policy, placed: Tensor) -> Tensor:
    """(R,) bool: whether something is placed, and below every placed label that has children one of them is."""
    row, label = placed.nonzero(as_tuple=True)
    which, child = policy.below.of(label)
    is_leaf = torch.diff(policy.below.starts)[label] == 0
    followed = is_leaf.index_put((which[placed[row[which], child]],), is_leaf.new_ones(()))
    return placed.any(1).index_put((row[~followed],), placed.new_zeros(()))


def _beyond(policy: Policy, walk: Walk, labels: Tensor, most: int) -> Tensor:
    """(R, L) bool: the open labels that would bring more than `most` labels with their ancestors."""
    count = walk.placed.sum(1)
    widest = torch.diff(policy.places.starts).max() if policy.n_labels else 0
    near = count + widest > most  # elsewhere nothing can go beyond
    row, action = (labels & near.unsqueeze(1)).nonzero(as_tuple=True)
    which, label = policy.places.of(action)
    new = (~walk.placed[row[which], label]).long()
    size = count[row].index_add(0, which, new)
    beyond = torch.zeros_like(labels)
    beyond[row, action] = size > most
    return beyond
