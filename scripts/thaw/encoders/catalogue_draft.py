"""The first draft of an encoder's catalogue entry: layers and width of its config, case of its tokenizer."""

from dataclasses import dataclass
from pathlib import Path

from thaw.core import hub
from thaw.core.errors import UserError
from thaw.core.phrases import yaml_value
from thaw.schema.catalogue import Catalogue
from thaw.schema.encoder import UNKNOWN, EncoderConfig
from thaw.schema.entry import free_id, id_of

COMMENT = "    # What it was pretrained for and on: where that is unknown, Thaw cannot warn that a task was part of it."


@dataclass
class EncoderDraft:
    """An encoder's id, its entry, and the family of its model."""

    name: str
    entry: dict
    model_type: str

    @property
    def blocks(self) -> dict[str, str]:
        """The entry's text by block of encoders.yaml."""
        lines = [f"    {key}: {yaml_value(value)}" for key, value in self.entry.items()]
        at = next(number for number, line in enumerate(lines) if line.startswith("    objective"))
        return {"encoders": "\n".join([f"  {self.name}:  # {self.model_type}", *lines[:at], COMMENT, *lines[at:]])}


def drafted(names: list[str], catalogue: Catalogue) -> list[EncoderDraft]:
    """Return drafts of the encoders that no catalogue has, and have their entries in this one.

    Args: how they are named: ids, Hub ids and folders. Hub ids of catalogues need no network.
    """
    drafts = []
    for name in names:
        if "/" in name and catalogue.id_of("encoders", name) == name:
            drafts.append(draft_of_encoder(name, set(catalogue.ids("encoders"))))
            catalogue.add_encoder(name, drafts[-1].name, drafts[-1].entry)
    return drafts


def draft_of_encoder(source: str, taken: set[str]) -> EncoderDraft:
    """Return the entry of an encoder; what its files do not say is `unknown`.

    Args: a local folder or a Hub id; the ids that exist. Raises UserError where there is no
    model, or its config states no layers.
    """
    from transformers import AutoConfig, AutoTokenizer

    from thaw.encoders.conversion import check_config, check_tokenizer, published_weights

    folder = Path(source).is_dir()
    silence = "" if folder else hub.silence()
    known = {"trust_remote_code": False, "local_files_only": bool(silence)}
    try:
        config = AutoConfig.from_pretrained(source, **known)
    except Exception as error:  # of many kinds, from several libraries
        if silence:
            raise UserError(
                f"{source}: is no folder, and in no cache of this machine, and the Hub does not answer ({silence}); "
                f"give the folder of a copy, as path/to/{Path(source).name}"
            ) from error
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
        tokenizer = AutoTokenizer.from_pretrained(source, **known)
    except Exception:  # of many kinds; fetch says what is wrong with a tokenizer that is needed
        tokenizer = None
    cased = UNKNOWN if tokenizer is None else tokenizer.tokenize("Paris") != tokenizer.tokenize("paris")
    entry = {
        "folder" if folder else "hub": source,
        "layers": layers,
        "width": width,
        "cased": cased,
        "objective": UNKNOWN,
        "pretraining": [UNKNOWN],
    }
    EncoderConfig.model_validate(entry)
    name = id_of(Path(source).name, "encoder")
    name = name if name[0].isalpha() else f"my_{name}"
    return EncoderDraft(free_id(name, taken) if name in taken else name, entry, config.model_type)
