"""The systems that the paper compares with, each a real implementation of its own paper, with HiLAP's face.

A new one is one file and a line in each of the tables below. The classes are imported when first used: asking which
there are must not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hilap.errors import SettingError, did_you_mean

if TYPE_CHECKING:
    from hilap.baselines.base import Baseline
    from hilap.baselines.c_hmcnn import CHMCNN
    from hilap.baselines.clus_hmc import ClusHMC
    from hilap.baselines.conditional import Conditional
    from hilap.baselines.cssa import CSSA
    from hilap.baselines.flat import Flat
    from hilap.baselines.hmcn import HMCN
    from hilap.baselines.hr_dgcnn import HRDGCNN
    from hilap.baselines.hr_svm import HRSVM
    from hilap.baselines.hsvm import HSVM
    from hilap.baselines.leaf_svm import LeafSVM
    from hilap.baselines.svm import SVM
    from hilap.baselines.td_svm import TopDownSVM

METHODS = {
    "flat": ("hilap.baselines.flat", "Flat"),
    "svm": ("hilap.baselines.svm", "SVM"),
    "leaf-svm": ("hilap.baselines.leaf_svm", "LeafSVM"),
    "td-svm": ("hilap.baselines.td_svm", "TopDownSVM"),
    "hsvm": ("hilap.baselines.hsvm", "HSVM"),
    "hr-svm": ("hilap.baselines.hr_svm", "HRSVM"),
    "hr-dgcnn": ("hilap.baselines.hr_dgcnn", "HRDGCNN"),
    "hmcn": ("hilap.baselines.hmcn", "HMCN"),
    "clus-hmc": ("hilap.baselines.clus_hmc", "ClusHMC"),
    "cssa": ("hilap.baselines.cssa", "CSSA"),
    "c-hmcnn": ("hilap.baselines.c_hmcnn", "CHMCNN"),
    "conditional": ("hilap.baselines.conditional", "Conditional"),
}
"""Name -> the module and the name of its classifier. Imported when needed."""


def method(name: str) -> type[Baseline]:
    """The classifier of a baseline by its name.

    Examples
    --------
    >>> method("svn")
    Traceback (most recent call last):
    hilap.errors.SettingError: there is no method 'svn'; did you mean 'svm'?
    """
    if name not in METHODS:
        near = did_you_mean(str(name), METHODS)
        hint = f"did you mean {near!r}?" if near else f"there are: hilap, {', '.join(METHODS)}"
        raise SettingError(f"there is no method {name!r}; {hint}")
    module, kind = METHODS[name]
    found: type[Baseline] = getattr(import_module(module), kind)
    return found


def __getattr__(name: str) -> Any:
    for module, kind in METHODS.values():
        if kind == name:
            value = globals()[name] = getattr(import_module(module), kind)
            return value
    raise AttributeError(f"module 'hilap.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]


__all__ = [
    "CHMCNN",
    "CSSA",
    "HMCN",
    "HRDGCNN",
    "HRSVM",
    "HSVM",
    "METHODS",
    "SVM",
    "ClusHMC",
    "Conditional",
    "Flat",
    "LeafSVM",
    "TopDownSVM",
    "method",
]
