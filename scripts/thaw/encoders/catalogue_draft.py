"""The first draft of an encoder's catalogue entry: layers and width of its config, case of its tokenizer."""

from dataclasses import dataclass
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.phrases import yaml_value
from thaw.schema.encoder import UNKNOWN, EncoderConfig
from thaw.schema.entry import free_id, id_of


@dataclass
class EncoderDraft:
    """An encoder's id, and its entry as lines of the block `encoders`."""

    name: str
    text: str
    unknown: list[str]

    @property
    def blocks(self) -> dict[str, str]:
        return {"encoders": self.text}


def draft_of_encoder(source: str, revision: str | None, taken: set[str], name: str | None = None) -> EncoderDraft:
    """Return the entry of an encoder; what its files do not say is `unknown`.

    Args: a local folder or a Hub id; a commit; the ids that exist; the id to use. Raises UserError where there is no
    model, or its config states no layers.
    """
    from transformers import AutoConfig, AutoTokenizer

    from thaw.encoders.conversion import check_config, check_tokenizer, published_weights

    folder = Path(source).is_dir()
    try:
        config = AutoConfig.from_pretrained(source, revision=revision, trust_remote_code=False)
    except Exception as error:  # of many kinds, from several libraries
        reason = " ".join(str(error).split()).partition(". ")[0][:200]
        raise UserError(f"{source}: no config can be read, as of a folder or a Hub id ({reason})") from error
    if folder:  # as fetch will
        check_config(Path(source, "config.json"))
        published_weights(Path(source))
        check_tokenizer(Path(source))
    layers, width = (getattr(config, key, None) for key in ("num_hidden_layers", "hidden_size"))
    if not layers or not width:
        raise UserError(f"{source}: its config states no num_hidden_layers or no hidden_size; is it a text encoder?")
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, revision=revision, trust_remote_code=False)
    except Exception:  # of many kinds; fetch says what is wrong with a tokenizer that is needed
        tokenizer = None
    cased = UNKNOWN if tokenizer is None else tokenizer.tokenize("Paris") != tokenizer.tokenize("paris")
    entry = {
        "folder" if folder else "hub": source,
        **({"revision": revision} if revision else {}),
        "layers": layers,
        "width": width,
        "cased": cased,
        "objective": UNKNOWN,
        "pretraining": [UNKNOWN],
    }
    EncoderConfig.model_validate(entry)
    given = id_of(Path(source).name, "encoder")
    return _draft(name or (given if given[0].isalpha() else f"my_{given}"), taken, entry, config.model_type)


def _draft(name: str, taken: set[str], entry: dict, model_type: str) -> EncoderDraft:
    name = free_id(name, taken) if name in taken else name
    lines = [f"    {key}: {yaml_value(value)}" for key, value in entry.items()]
    comment = (
        "    # What it was pretrained for and on: where that is unknown, Thaw cannot warn that a task was part of it."
    )
    at = next(number for number, line in enumerate(lines) if line.startswith("    objective"))
    text = "\n".join([f"  {name}:  # {model_type}", *lines[:at], comment, *lines[at:]])
    return EncoderDraft(name, text, [key for key, value in entry.items() if value in (UNKNOWN, [UNKNOWN])])
