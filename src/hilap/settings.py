"""Settings: small frozen dataclasses, declared once, checked when made, from and to plain values.

The defaults are the paper's (`preset="paper"`). `PRESETS` names the others: what they change is all they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypeVar

from hilap.errors import SettingError, did_you_mean, require

SettingsT = TypeVar("SettingsT", bound="Settings")
METRICS = ("example_f1", "micro_f1", "macro_f1", "mean", "balanced")
CHOSEN = "chosen"  # of several linear parts the one that does best (`hilap.training.choice`)
PRETRAINED = ("static", "transformer")  # encoders that know something before they are trained
REWARDS = ("example_f1", "f_beta", "weighted_f1", "hierarchical", "micro_f1", "macro_f1")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all settings can do."""

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls: type[SettingsT], values: Mapping[str, Any]) -> SettingsT:
        """The settings that `to_dict` gave; a name that is none of ours is an error."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                near = did_you_mean(name, known)
                hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(known)}"
                raise SettingError(f"{cls.__name__} has no {name!r}; {hint}")
        return cls(**values)

    def but(self: SettingsT, **changes: Any) -> SettingsT:
        """The same settings with some changed."""
        return replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class PolicySettings(Settings):
    """The shape of the policy network."""

    hidden: int = 500  # H: the first layer (paper: 500 for text, 1,000 for features)
    width: int = 50  # C: states and labels (paper: 50 for text, 1,000 for features)
    dag_rule: Literal["ancestors", "any"] = "ancestors"
    label_bias: bool = False  # a learned bias for each label (published code)
    residual: bool = False  # action score = flat logit + A_t s_t (ours)
    lift: bool = False  # a label's flat logit counts as at least the highest below it (needs residual; ours)
    # What e_d is: the encoder's vector, or the flat logits, or a short profile of these (ours).
    sees: Literal["document", "flat", "profile"] = "document"
    temperature: float = 1.0  # of the softmax; below 1 sampled walks stay near the greedy one (ours)
    state_dropout: float = 0.0  # on what the policy sees (ours)
    start_scale: float = 1.0  # of label and stop embeddings at the start; small lets a residual start at the flat model
    averaging: Literal["logits", "probabilities"] = "logits"  # what of several members is averaged (ours)
    # A flat model learns and is read with a label at least as probable as each below it (Giunchiglia and Lukasiewicz
    # 2020; ours).
    max_constraint: bool = False
    condense: bool = False  # flat logits are read as their isotonic regression: what CSSA calls condensed (ours)
    kernel_share: float = 0.0  # of flat probabilities: what a kernel part says, where documents are features (ours)

    def __post_init__(self) -> None:
        _whole("hidden", self.hidden, 1)
        _whole("width", self.width, 1)
        _one_of("dag_rule", self.dag_rule, ("ancestors", "any"))
        _truth("label_bias", self.label_bias)
        _truth("residual", self.residual)
        _truth("lift", self.lift)
        require(self.residual or not self.lift, "lift", "false unless residual is true", self.lift)
        _one_of("sees", self.sees, ("document", "flat", "profile"))
        _number("temperature", self.temperature, 1e-3, 1e3)
        _number("state_dropout", self.state_dropout, 0, 0.99)
        _number("start_scale", self.start_scale, 0, 10)
        _one_of("averaging", self.averaging, ("logits", "probabilities"))
        _truth("max_constraint", self.max_constraint)
        _truth("condense", self.condense)
        alone = not (self.condense and self.max_constraint)  # after it, no label is above a parent any more
        require(alone, "condense", "false where max_constraint is true", self.condense)
        _number("kernel_share", self.kernel_share, 0, 1)


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Settings):
    """How a network is trained. Names say what the paper's Greek means."""

    variant: Literal["flat", "sl", "hilap"] = "hilap"
    flat_epochs: int = 0  # flat loss alone, before anything else; the whole of it for variant "flat"
    supervised_epochs: int = 25  # HiLAP-SL
    imitation_epochs: int = 0  # oracle imitation as a warm start (ours)
    reinforced_epochs: int = 25  # HiLAP
    batch_size: int = 32
    learning_rate: float = 1e-3
    reinforced_learning_rate: float | None = None  # None: the same
    weight_decay: float = 1e-6
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    clip: float | None = None  # largest norm of the gradient
    patience: int | None = None  # epochs without a better validation score before a phase ends
    flat_share: float = 0.5  # lambda: flat against local supervised loss
    reinforced_flat_share: float | None = None  # lambda in the reinforced phase; None: the same
    supervised_weight: float = 1.0  # alpha: supervised against reinforced loss, the supervised one taken per label
    gamma: float = 0.9  # discount of future rewards
    rollouts: int = 1  # sampled walks a document
    baseline: Literal["greedy", "leave-one-out"] = "greedy"
    reward: Mapping[str, float] | str = "example_f1"  # one reward, or several with their weights
    reward_beta: float = 1.0  # for f_beta: above 1 favours recall
    reward_power: float = 0.5  # for weighted_f1: a label weighs its share of documents to the minus this
    biased_walks: bool = False  # walks that learn have the biases that decoding would have (ours)
    entropy_bonus: float = 0.0  # published code: 2, falling by 0.9 every 500 updates
    standardise_returns: bool = False  # published code
    stay: bool = False  # published code: a place is its own positive candidate in the supervised loss
    folds: int = 1  # cross-fitting: members of the flat model, each trained without one part (ours)
    repeats: int = 1  # how often documents are parted into folds, each time with members of their own
    pool_validation: bool = False  # members learn from validation documents too, which are judged by those that did not
    # In the end, learn anew from training and validation documents, for as many epochs as were best (ours).
    refit: bool = False
    wide: bool = False  # a linear TF-IDF part whose logits are added to the flat ones (ours)
    # Of its SVMs. `chosen`: what does clearly best of squared_hinge, the same condensed, and a structured SVM
    # condensed, for which an error costs twice what `wide_strength` says.
    wide_loss: Literal["squared_hinge", "hinge", "structured", "chosen"] = "squared_hinge"
    wide_strength: float = 1.0  # of its SVMs: what an error costs against large weights
    wide_vectors: str | None = None  # an encoder whose vectors, as they are, stand beside the words in it
    kernel_width: float = 1.0  # of its kernel: so many deviations apart in every feature, documents are alike by 1/e
    kernel_ridge: float = 1.0  # what large weights of the kernel part cost against errors
    # What labels are called: True lets the wide part count words shared with it; start and tied let labels' weights
    # start at, or be tied to, what the encoder makes of it (ours).
    label_text: bool | Literal["start", "tied"] = False
    max_steps: int | None = None  # None: mean + 3 standard deviations of the labels per document
    select: Literal["example_f1", "micro_f1", "macro_f1", "mean", "balanced"] = "example_f1"  # chooses the epoch
    validation_share: float = 0.1  # held out of the training documents where no validation documents are given
    seed: int = 0

    def __post_init__(self) -> None:
        _one_of("variant", self.variant, ("flat", "sl", "hilap"))
        for name in ("flat_epochs", "supervised_epochs", "imitation_epochs", "reinforced_epochs", "seed"):
            _whole(name, getattr(self, name), 0)
        for name in ("batch_size", "rollouts", "folds", "repeats"):
            _whole(name, getattr(self, name), 1)
        for name in ("patience", "max_steps"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        _number("learning_rate", self.learning_rate, 0, 10)
        _number("weight_decay", self.weight_decay, 0, 10)
        for name in ("reinforced_learning_rate", "clip"):
            if getattr(self, name) is not None:
                _number(name, getattr(self, name), 0, 1e6)
        _one_of("schedule", self.schedule, ("constant", "linear", "cosine"))
        _one_of("baseline", self.baseline, ("greedy", "leave-one-out"))
        _one_of("select", self.select, METRICS)
        for name in ("flat_share", "gamma", "reinforced_flat_share"):
            if getattr(self, name) is not None:
                _number(name, getattr(self, name), 0, 1)
        for name in ("supervised_weight", "reward_power", "entropy_bonus"):
            _number(name, getattr(self, name), 0, 1e6)
        _number("reward_beta", self.reward_beta, 1e-3, 1e3)
        _number("validation_share", self.validation_share, 0.001, 0.9)
        require(
            self.baseline == "greedy" or self.rollouts > 1, "rollouts", "at least 2 for leave-one-out", self.rollouts
        )
        require(self.folds > 1 or self.repeats == 1, "repeats", "1 unless folds is above 1", self.repeats)
        cross_fitted = self.folds > 1 or not self.pool_validation
        require(cross_fitted, "pool_validation", "false unless folds is above 1", self.pool_validation)
        instead = "false where folds is above 1 (pool_validation learns from all documents there)"
        require(self.folds == 1 or not self.refit, "refit", instead, self.refit)
        require(self.folds > 1 or not self.wide, "wide", "false unless folds is above 1", self.wide)
        good = isinstance(self.label_text, bool) or self.label_text in ("start", "tied")
        require(good, "label_text", "true, false, 'start' or 'tied'", self.label_text)
        without = self.wide or self.label_text is not True
        require(without, "label_text", "false, 'start' or 'tied' unless wide is true", self.label_text)
        _one_of("wide_loss", self.wide_loss, ("squared_hinge", "hinge", "structured", CHOSEN))
        _number("wide_strength", self.wide_strength, 1e-6, 1e6)
        _number("kernel_width", self.kernel_width, 1e-6, 1e6)
        _number("kernel_ridge", self.kernel_ridge, 1e-6, 1e6)
        if self.wide_vectors is not None:
            _one_of("wide_vectors", self.wide_vectors, PRETRAINED)
            require(self.wide, "wide_vectors", "none unless wide is true", self.wide_vectors)
        for name in ("biased_walks", "standardise_returns", "stay", "pool_validation", "refit", "wide"):
            _truth(name, getattr(self, name))
        self._check_rewards()

    def _check_rewards(self) -> None:
        good = isinstance(self.reward, (str, Mapping)) and len(self.reward) > 0
        require(good, "reward", f"one of {', '.join(REWARDS)}, or several of them with weights", self.reward)
        for name, weight in self.rewards.items():
            _one_of("reward", name, REWARDS)
            _number(f"the weight of reward {name!r}", weight, 0, 1e6)
        require(sum(self.rewards.values()) > 0, "the weights of rewards", "above 0 at least once", self.reward)
        for name, owner, idle in (("reward_beta", "f_beta", 1.0), ("reward_power", "weighted_f1", 0.5)):
            value = getattr(self, name)
            require(
                owner in self.rewards or value == idle, name, f"{idle:g} unless {owner} is among the rewards", value
            )

    @property
    def members(self) -> int:
        """How many encoders with flat heads there are: one for each fold of each repeat."""
        return self.folds * self.repeats

    @property
    def rewards(self) -> dict[str, float]:
        """The rewards by name with their weights."""
        return {self.reward: 1.0} if isinstance(self.reward, str) else dict(self.reward)


@dataclass(frozen=True, kw_only=True)
class DecodeSettings(Settings):
    """How labels are read off a trained policy."""

    threshold: float = 0.5  # of a flat model and of HiLAP-SL's local probabilities
    # Tunes the threshold or the stop bias for this.
    tune: Literal["example_f1", "micro_f1", "macro_f1", "mean", "balanced"] | None = None
    stop_bias: float = 0.0  # above 0 stops earlier
    prior_bias: float = 0.0  # above 0 favours rare labels
    level_bias: float = 0.0  # above 0 favours deep labels
    count_bias: float = 0.0  # 1: a label is lifted until it is placed about as often as it occurs (residual only)
    min_labels: int = 0
    max_labels: int | None = None
    single_path: bool = False
    must_reach_leaf: bool = False
    probabilities: Literal["beam", "samples", "flat"] = "beam"  # flat: the flat head's, a child never above its parent
    beam_width: int = 8
    samples: int = 64

    def __post_init__(self) -> None:
        _number("threshold", self.threshold, 0, 1)
        _one_of("tune", self.tune, (*METRICS, None))
        for name in ("stop_bias", "prior_bias", "level_bias", "count_bias"):
            _number(name, getattr(self, name), -1e3, 1e3)
        _whole("min_labels", self.min_labels, 0)
        if self.max_labels is not None:
            _whole("max_labels", self.max_labels, 1)
            enough = self.min_labels <= self.max_labels
            require(enough, "max_labels", f"at least min_labels ({self.min_labels})", self.max_labels)
        _truth("single_path", self.single_path)
        _truth("must_reach_leaf", self.must_reach_leaf)
        _one_of("probabilities", self.probabilities, ("beam", "samples", "flat"))
        _whole("beam_width", self.beam_width, 1)
        _whole("samples", self.samples, 1)


_RESIDUAL: dict[str, Any] = {  # starts at the thresholded flat model, made consistent, and climbs from there
    "hidden": 64,
    "width": 16,
    "residual": True,
    "lift": True,
    "sees": "profile",
    "temperature": 0.15,
    "state_dropout": 0.2,
    "start_scale": 0.1,
    "flat_epochs": 30,
    "supervised_epochs": 0,
    "reinforced_epochs": 10,
    "folds": 5,
    "pool_validation": True,
    "rollouts": 4,
    "baseline": "leave-one-out",
    "supervised_weight": 0.0,
    "reinforced_learning_rate": 5e-4,
    "clip": 1.0,
    "select": "mean",
    "tune": "mean",
    "probabilities": "flat",
}

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "original": {  # the published code's unpublished ingredients
        "label_bias": True,
        "entropy_bonus": 2.0,
        "standardise_returns": True,
        "stay": True,
    },
    "residual": _RESIDUAL,  # ours
    # Ours: that one with what the bench had come to for its sets (docs/decisions/0016); what is of one kind of
    # documents is in `FOR_DENSE_FEATURES` and `FOR_TEXTS`.
    "recommended": {
        **_RESIDUAL,
        "biased_walks": True,
        "reward": {"example_f1": 1.0, "micro_f1": 1.0, "macro_f1": 1.0},
    },
}
"""Preset -> what it changes of the defaults of `PolicySettings`, `TrainSettings` and `DecodeSettings`."""

FOR_FEATURES: dict[str, dict[str, Any]] = {
    preset: {"hidden": 1000, "width": 1000}
    for preset in ("paper", "original")  # the paper's sizes for features
}
# Of sparse features, which may be tens of thousands, none of this was measured: they have the smaller networks.
FOR_DENSE_FEATURES: dict[str, dict[str, Any]] = {
    "recommended": {
        "max_constraint": True,
        "averaging": "probabilities",
        "kernel_share": 0.5,
        "flat_epochs": 60,
        "batch_size": 64,
    },
}
_WIDE = {"wide": True, "wide_strength": 0.5}
FOR_TEXTS: dict[str, dict[str, Any]] = {"residual": _WIDE, "recommended": {**_WIDE, "wide_loss": CHOSEN}}
"""Preset -> what it changes further where documents are features, dense ones or any, or texts."""
OPTIONS_FOR_DENSE_FEATURES: dict[str, dict[str, dict[str, Any]]] = {
    "recommended": {"mlp": {"hidden": (1000, 1000, 1000), "dropout": 0.7}},
}
"""Preset -> encoder -> options that it has there, where the user names none."""


def _whole(name: str, value: Any, least: int) -> None:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= least
    require(good, name, f"a whole number, at least {least}", value)


def _number(name: str, value: Any, low: float, high: float) -> None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    require(good, name, f"a number between {low:g} and {high:g}", value)


def _truth(name: str, value: Any) -> None:
    require(isinstance(value, bool), name, "true or false", value)


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    require(value in allowed, name, "one of " + ", ".join(map(repr, allowed)), value)
