"""From margins to probabilities: one sigmoid for all labels (Platt), fitted on documents that were not learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 2_000_000  # margins that the sigmoid is fitted on

NEVER, ALWAYS = -1000.0, 1000.0
"""The margins of a label that no training document has, or all have: beyond any threshold that is worth trying."""


@dataclass(frozen=True)
class Sigmoid:
    """1 / (1 + exp(-(slope * margin + intercept))).

    Examples
    --------
    >>> Sigmoid(2.0, 0.0)(np.array([[0.0]])).tolist()
    [[0.5]]
    """

    slope: float
    intercept: float

    def __call__(self, margins: NDArray[Any]) -> NDArray[Any]:
        """The probabilities of margins."""
        with np.errstate(over="ignore"):  # a probability of exactly 0 is what is meant
            chances: NDArray[Any] = 1 / (1 + np.exp(-(self.slope * margins + self.intercept)))
        return chances

    @classmethod
    def fitted(cls, margins: NDArray[Any], labels: Any) -> Sigmoid:
        """The sigmoid under which these labels are the most probable, over all documents and labels together.

        Parameters
        ----------
        margins
            (n, L) scores.
        labels
            (n, L) sparse indicator of the gold sets.
        """
        from sklearn.linear_model import LogisticRegression

        gold = labels.toarray().astype(bool).ravel()
        values = margins.astype(np.float64).ravel()
        if len(gold) > MOST:
            rows = np.random.default_rng(0).choice(len(gold), MOST, replace=False)
            gold, values = gold[rows], values[rows]
        if gold.all() or not gold.any() or np.ptp(values) == 0:
            return cls(1.0, 0.0)
        found = LogisticRegression(C=1e6).fit(values[:, None], gold)
        slope = float(found.coef_[0, 0])
        # Margins that rank the wrong way round say nothing; a falling sigmoid would turn every ranking over.
        return cls(slope, float(found.intercept_[0])) if slope > 0 else cls(1.0, 0.0)


__all__ = ["ALWAYS", "NEVER", "Sigmoid"]
