"""Which code reads an encoder of which kind. An assembled folder says its kind in config.json, as model_type."""

from pathlib import Path
from typing import Any

from thaw.core.files import read_json
from thaw.declarations.encoders import KIND_OF_MODEL
from thaw.encoders import loading
from thaw.encoders.builtin_models import BuiltinModel, read_builtin


def load_model(folder) -> Any:
    """Return the model of a folder in fp32 and eval mode; a folder that can not be read is a UserError."""
    kind = builtin_kind(folder)
    return read_builtin(kind.model, folder) if kind else loading.load_model(folder)


def import_code(folder) -> None:
    """Import the code that `load_model` needs for a folder: two seconds in which nothing is computed."""
    import transformers.modeling_utils  # noqa: F401
    from transformers import CONFIG_MAPPING, MODEL_MAPPING

    name = read_json(Path(folder) / "config.json").get("model_type")
    if name in CONFIG_MAPPING:
        MODEL_MAPPING.get(CONFIG_MAPPING[name], None)


def load_tokenizer(folder, words: bool = False, pairs: bool = False):
    """Return the tokenizer of a folder. Args: words, pairs: whether it will be given lists of words, or two texts."""
    kind = builtin_kind(folder)
    return kind.tokenizer(folder, words) if kind else loading.load_tokenizer(folder, words, pairs)


def builtin_kind(folder) -> BuiltinModel | None:
    """Return the model of a folder where it is Thaw's own code, None where transformers knows it."""
    config = Path(folder) / "config.json"
    content = read_json(config) if config.is_file() else {}
    name = content.get("model_type") if isinstance(content, dict) else None
    return KIND_OF_MODEL[name].load().models[name] if name in KIND_OF_MODEL else None
