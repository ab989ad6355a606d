"""The settings that a classifier's parameters lead to: the preset's, what the kind of documents changes, the user's.

What contradicts itself, or would be looked at by nobody, is refused here, before a document is read.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from hilap.errors import SettingError, did_you_mean
from hilap.settings import (
    CHOSEN,
    FOR_DENSE_FEATURES,
    FOR_FEATURES,
    FOR_TEXTS,
    OPTIONS_FOR_DENSE_FEATURES,
    PRESETS,
    DecodeSettings,
    PolicySettings,
    Settings,
    TrainSettings,
)

BIASES = ("stop_bias", "prior_bias", "level_bias", "count_bias")
MAY_BE_OFF = {
    f.name for kind in (PolicySettings, TrainSettings, DecodeSettings) for f in fields(kind) if f.default is None
}
OFF = "off"  # the value of a parameter that a preset switches on, and a user off: None takes the preset's
WALKS_ONLY = (*BIASES, "min_labels", "max_labels", "single_path", "must_reach_leaf")


def chosen_settings(
    parameters: Mapping[str, Any], *, text: bool, dense: bool = False
) -> tuple[PolicySettings, TrainSettings, DecodeSettings]:
    """All settings of a classifier.

    Parameters
    ----------
    parameters
        The classifier's; None takes the preset's value, `"off"` switches off what a preset switches on.
    text
        Whether documents are texts.
    dense
        Whether they are dense features.
    """
    preset = parameters["preset"]
    if preset not in PRESETS:
        near = did_you_mean(str(preset), PRESETS)
        hint = f"; did you mean {near!r}?" if near else ""
        raise SettingError(f"preset must be one of {', '.join(map(repr, PRESETS))}, got {preset!r}{hint}")
    given = {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()}
    off = {name for name, value in given.items() if name in MAY_BE_OFF and isinstance(value, str) and value == OFF}
    own = {k: None if k in off else v for k, v in given.items() if v is not None}
    chosen = copy.deepcopy(PRESETS[preset]) | (FOR_TEXTS if text else FOR_FEATURES).get(preset, {})
    chosen |= (FOR_DENSE_FEATURES.get(preset, {}) if dense else {}) | own
    if not chosen.get("wide") and chosen.get("wide_loss") == CHOSEN and "wide_loss" not in own:
        del chosen["wide_loss"]  # the preset's, of a part that is not there

    def pick(kind: type[Settings]) -> Any:
        return kind.from_dict({f.name: chosen[f.name] for f in fields(kind) if f.name in chosen})

    settings: TrainSettings = pick(TrainSettings)
    if settings.variant == "flat" and not settings.flat_epochs:
        settings = settings.but(flat_epochs=settings.supervised_epochs)
    if settings.wide and parameters["encoder"] in (None, "none"):
        settings = settings.but(flat_epochs=0)  # the wide part alone: there is nothing that could learn by steps
    decode: DecodeSettings = pick(DecodeSettings)
    policy: PolicySettings = pick(PolicySettings)
    check_used(settings.variant, policy, decode)
    if policy.condense and settings.variant != "flat" and settings.folds == 1:
        raise SettingError(
            "condense is of flat logits that are fixed before the policy learns: no gradient goes through it; set "
            "folds above 1, or condense=False"
        )
    if policy.residual and settings.refit and settings.variant == "hilap":
        raise SettingError(
            "refit must be false where residual is true: such a policy starts at a threshold chosen on documents that "
            "nothing has learned from; set folds above 1 and pool_validation=True to learn from all documents there"
        )
    if settings.wide and settings.wide_loss == CHOSEN and "condense" in own:
        raise SettingError(
            f"condense is chosen with the wide part, as wide_loss={CHOSEN!r} says; leave it out, or name a wide_loss"
        )
    _check_kernel(parameters, policy, settings)
    learns = policy.residual or settings.imitation_epochs or settings.reinforced_epochs
    if settings.variant == "hilap" and not learns:
        raise SettingError(
            "a policy that walks has to learn when to stop: set reinforced_epochs or imitation_epochs above 0; "
            "variant='sl' is the supervised part alone"
        )
    _check_options(parameters, settings)
    for name in ("threshold", *BIASES):
        if decode.tune is not None and name in own:
            raise SettingError(
                f"{name} would be overwritten: tune={decode.tune!r} chooses it on validation documents; "
                f"leave it out, or set tune={OFF!r}"
            )
    return policy, settings, decode


def options_of(preset: str, encoder: str | Any, given: Mapping[str, Any] | None, *, dense: bool) -> dict[str, Any]:
    """The options of an encoder that is given by name: the user's, or where there are none the preset's for it."""
    named = dense and not given and isinstance(encoder, str)
    return dict(OPTIONS_FOR_DENSE_FEATURES.get(preset, {}).get(encoder, {}) if named else given or {})


def _check_options(parameters: Mapping[str, Any], settings: TrainSettings) -> None:
    """Require that tables of options are of something that is there."""
    if parameters["wide_options"] is not None and not settings.wide:
        raise SettingError("wide_options are of the wide part, which is not there; leave them out, or set wide=True")
    for name in ("wide_loss", "wide_strength"):
        if parameters[name] is not None and not settings.wide:
            raise SettingError(f"{name} is of the wide part, which is not there; leave it out, or set wide=True")
    if parameters["wide_vector_options"] is not None and settings.wide_vectors is None:
        raise SettingError(
            "wide_vector_options are of the wide part's vectors, which are not there; leave them out, or set "
            "wide_vectors"
        )


def _check_kernel(parameters: Mapping[str, Any], policy: PolicySettings, settings: TrainSettings) -> None:
    """Require that a kernel part is where it can be, and its settings where it is."""
    if policy.kernel_share and settings.folds == 1:
        raise SettingError(
            f"kernel_share must be 0 unless folds is above 1, got {policy.kernel_share:g}: a kernel part knows the "
            "documents it has learned from too well for a policy to learn from what it says of them"
        )
    if policy.kernel_share and settings.wide:
        raise SettingError(
            f"kernel_share must be 0 beside a wide part, got {policy.kernel_share:g}: a kernel part is for features "
            "alone; set it to 0, or wide=False"
        )
    for name in ("kernel_width", "kernel_ridge"):
        if parameters[name] is not None and not policy.kernel_share:
            raise SettingError(f"{name} is of the kernel part, which is not there; leave it out, or set kernel_share")


def check_used(variant: str, policy: PolicySettings, decode: DecodeSettings, given: Collection[str] = ()) -> None:
    """Require that nothing is set that this variant would not look at."""
    plain = DecodeSettings()
    walks = variant == "hilap"
    for name in ("threshold",) if walks else WALKS_ONLY:
        if name in given or getattr(decode, name) != getattr(plain, name):
            instead = "stop_bias is what it has instead" if walks else "only a policy that walks has it"
            raise SettingError(f"{name} means nothing to variant {variant!r}; {instead}")
    if decode.count_bias and not policy.residual:
        raise SettingError("count_bias means nothing without flat logits in the action scores; set residual=True")
