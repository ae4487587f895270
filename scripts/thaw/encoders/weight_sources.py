"""Where encoders come from: a folder, an installed package, the Hugging Face Hub. No code of theirs is run."""

from dataclasses import dataclass
from pathlib import Path

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.hub import NEW_REVISION
from thaw.declarations.encoders import ENCODER_KINDS
from thaw.encoders.names import MODULES, PICKLED, SETTINGS, SHARDS, TOKENIZER, WEIGHTS, published, where_to_put
from thaw.schema.encoder import EncoderConfig


@dataclass(frozen=True)
class WeightSource:
    """A folder (or file) with a model, where it is from, and which revision: a commit, a package version, or None."""

    folder: Path
    origin: str
    revision: str | None


def local_files(entry: EncoderConfig, place: str) -> dict[str, str]:
    """Return the sha256 of the files that a user must supply for an encoder, by path; most encoders need none.

    Raises UserError, with the place of the entry, where one is missing.
    """
    if entry.file:
        files = [Path(entry.file)]
    elif entry.folder and (patterns := ENCODER_KINDS[entry.kind].files):
        files = [published(Path(entry.folder), pattern, place, bool(entry.url)) for pattern in patterns]
    else:
        return {}
    if not files[0].is_file():
        raise UserError(f"{place}: there is no file {files[0]}{where_to_put(bool(entry.url))}")
    return {str(path): file_sha256(path) for path in files}


def locate(entry: EncoderConfig) -> WeightSource:
    """Return the place of a catalogue entry's model, downloading it where the entry names a Hub id."""
    if entry.hub:
        return from_hub(entry.hub, entry.revision)
    if entry.package:
        return _package(entry.package, entry.path)
    if entry.file:
        return WeightSource(Path(entry.file), f"file {entry.file}", None)
    assert entry.folder  # an entry has one source
    folder = Path(entry.folder)
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder; folder: takes one with {ENCODER_KINDS[entry.kind].form}")
    return WeightSource(folder, f"folder {folder}", None)


def _package(name: str, path: str) -> WeightSource:
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
    return WeightSource(folder, f"package {name}", revision)


def from_hub(name: str, revision: str | None) -> WeightSource:
    """Download a model's config, tokenizer and weights, safetensors if there are any, into the Hub's own cache.

    The cache's folder is named after the commit of the revision; without network, a cached model is used.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RevisionNotFoundError

    def download(*patterns: str) -> Path:
        try:
            return Path(snapshot_download(name, revision=revision, allow_patterns=list(patterns)))
        except RevisionNotFoundError as error:
            raise UserError(f"{name} has no revision {revision} on the Hub; {NEW_REVISION}") from error
        except GatedRepoError as error:
            terms = f"accept its terms at https://huggingface.co/{name}, then set HF_TOKEN"
            raise UserError(f"{name} is gated; {terms}") from error
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise UserError(
                f"{name} could not be downloaded from the Hub: {reason} Check id, revision and network, or fetch it "
                "elsewhere and give its folder"
            ) from error

    folder = download(*SETTINGS, *MODULES, *TOKENIZER, WEIGHTS, SHARDS, "model-*-of-*.safetensors")
    if not (folder / WEIGHTS).is_file() and not (folder / SHARDS).is_file():
        download(PICKLED)
    return WeightSource(folder, f"hub {name}", folder.name)
