"""States that several losses of one update share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


class KnownStates:
    """Remembers the states of the first loss that asks, with their gradients, for the losses after it.

    The walk and the local loss both stand at gold labels of the same documents. It lives as long as one update: after
    `backward` what it holds is spent.
    """

    def __init__(self) -> None:
        self._pairs: Tensor | None = None
        self._states: Tensor | None = None

    def of(self, pairs: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """(M, C) the states of pairs (M,), numbers of documents and places, ascending; new ones by `compute`."""
        if self._pairs is None or self._states is None or not len(self._pairs):
            self._pairs, self._states = pairs, compute(pairs)
            return self._states
        place = torch.searchsorted(self._pairs, pairs).clamp_max(len(self._pairs) - 1)
        new = (self._pairs[place] != pairs).nonzero().squeeze(1)
        if not len(new):
            return self._states.index_select(0, place)
        place[new] = len(self._pairs) + torch.arange(len(new), device=place.device)
        return torch.cat([self._states, compute(pairs[new])]).index_select(0, place)


__all__ = ["KnownStates"]
