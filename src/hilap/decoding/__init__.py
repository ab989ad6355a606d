"""From a policy to label sets: greedy walks, beams of sets, sampled walks, label probabilities, constraints, stop bias.

Everything here is *independent of the batch*: a document gets the same bits alone, in any batch and in any order (see
`hilap.decoding.scoring`). Nothing here needs gradients.
"""

from hilap.decoding.beam import Beams, beam
from hilap.decoding.coherence import Coherence, Condensing, Lifting
from hilap.decoding.constraints import Constraints
from hilap.decoding.marginals import marginals
from hilap.decoding.scoring import steady_scores
from hilap.decoding.stop_bias import COARSE, StopBias, Tuned, shortfalls, tune_stop_bias
from hilap.decoding.walking import Decision, Decoded, decode, explain, sampled

__all__ = [
    "COARSE",
    "Beams",
    "Coherence",
    "Condensing",
    "Constraints",
    "Decision",
    "Decoded",
    "Lifting",
    "StopBias",
    "Tuned",
    "beam",
    "decode",
    "explain",
    "marginals",
    "sampled",
    "shortfalls",
    "steady_scores",
    "tune_stop_bias",
]
