"""Where encoders come from: a folder, an installed package, the Hugging Face Hub. No code of theirs is run."""

from dataclasses import dataclass
from pathlib import Path

from thaw.records import UserError
from thaw.settings import Encoder

SETTINGS = ("config.json",)
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json")
SENTENCEPIECE = ("spm.model", "spiece.model", "sentencepiece.bpe.model")
TOKENIZER = (
    *VOCABULARIES,
    *SENTENCEPIECE,
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
WEIGHTS = "model.safetensors"
SHARDS = "model.safetensors.index.json"
PICKLED = "pytorch_model.bin"


@dataclass(frozen=True)
class Source:
    """A folder with a model, where it came from, and which revision of it: a commit, a package version, or None."""

    folder: Path
    origin: str
    revision: str | None


def locate(entry: Encoder) -> Source:
    """Return the folder of a catalogue entry's model, downloading it where the entry names a Hub id."""
    if entry.hub:
        return _hub(entry.hub, entry.revision)
    if entry.package:
        return _package(entry.package, entry.path)
    folder = Path(entry.folder)
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder; folder: takes one with config.json, weights and tokenizer files")
    return Source(folder, f"folder {folder}", None)


def _package(name: str, path: str) -> Source:
    """Return the model folder of an installed package, found without importing the package."""
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    module = name.replace("-", "_")
    spec = find_spec(module) if module.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"the Python package {name} is not installed; run: pip install {name}")
    folder = Path(spec.submodule_search_locations[0]) / path
    if not folder.is_dir():
        raise UserError(f"the package {name} has no folder {path!r}; path: names the model's folder inside it")
    try:
        revision = version(name)
    except PackageNotFoundError:
        revision = None
    return Source(folder, f"package {name}", revision)


def _hub(name: str, revision: str | None) -> Source:
    """Download a model's config, tokenizer and weights, safetensors if there are any, into the Hub's own cache.

    The cache's folder is named after the commit that the revision stands for; without network a model that is in the
    cache is found there.
    """
    from huggingface_hub import snapshot_download

    def download(*patterns: str) -> Path:
        try:
            return Path(snapshot_download(name, revision=revision, allow_patterns=list(patterns)))
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise UserError(
                f"{name} could not be downloaded from the Hub: {reason} Check id, revision and network, or fetch it "
                "elsewhere and give folder: instead of hub:"
            ) from error

    folder = download(*SETTINGS, *TOKENIZER, WEIGHTS, SHARDS, "model-*-of-*.safetensors")
    if not (folder / WEIGHTS).is_file() and not (folder / SHARDS).is_file():
        download(PICKLED)
    return Source(folder, f"hub {name}", folder.name)
