"""What the runs of an experiment lack, as far as it can be known before they start. No torch.

Rows and labels of prepared corpora, positions of encoders at hand, and what has to be downloaded while the Hub is off.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from thaw.core import hub
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.declarations.task_types import no_f1
from thaw.encoders.weight_sources import locate
from thaw.planning.jobs import encoder_of
from thaw.schema.corpora import SubsetConfig, TaskConfig, ViewConfig
from thaw.schema.encoder import EncoderConfig

MOST = 3  # sentences in one error
COUNTED_FROM_PADDING = ("roberta", "camembert", "mpnet")  # models whose positions begin after that of the padding


def refuse_shortfalls(plan) -> None:
    """Raise UserError where the experiment lacks what its runs read, so that it cannot be finished.

    Args: a Plan. An experiment whose results may be missing (`allow_missing`) goes on without these runs.
    """
    lacks = [] if plan.experiment.allow_missing else shortfalls(plan)
    if lacks:
        raise UserError("; ".join(lacks[:MOST]) + (f"; and {len(lacks) - MOST} more" if len(lacks) > MOST else ""))


def shortfalls(plan) -> list[str]:
    """Return a sentence for each lack: of rows for a subset, of two labels for `f1`, of positions, of a download."""
    return list(dict.fromkeys([*_of(plan), *_not_cached(plan), *_too_long(plan)]))


def _not_cached(plan) -> list[str]:
    """Return a sentence for each download that HF_HUB_OFFLINE forbids and no cache of this machine has."""
    if not hub.is_off():
        return []
    lacking = [(step, id) for step, _, id in plan.status.to_download if not _has_cached(step, id)]
    return [
        f"{hub.OFFLINE} is set, and {'data set' if step == 'prepare' else 'encoder'} {id} is in no cache of this "
        "machine; unset it, or fetch it once with a network"
        for step, id in lacking
    ]


def _has_cached(step: str, id: str) -> bool:
    """Return whether a cache has files of a data set (step `prepare`) or an encoder; its id may be a local folder."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    kind = "dataset" if step == "prepare" else "model"
    if Path(id).exists() or (Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=id, repo_type=kind)).is_dir():
        return True
    tables = Path(os.environ.get("HF_DATASETS_CACHE", Path(constants.HF_HOME) / "datasets"))
    letters = re.sub("[^a-z0-9]", "", id.lower())  # `datasets` writes AB/NewsGroups as AB___news_groups
    return any(re.sub("[^a-z0-9]", "", folder.name.lower()) == letters for folder in tables.glob("*___*"))


def _too_long(plan) -> list[str]:
    """Return a sentence for each view that is longer than an encoder that is here has positions."""
    sentences = []
    for key in plan.jobs["features"]:
        spec, encoder = plan.job("features", key).spec, encoder_of(key)
        asked = ViewConfig.model_validate(spec["view"]).max_length
        longest = _positions(plan.catalogue.get("encoders", encoder, "encoders"))
        if longest is not None and asked > longest:
            place = plan.catalogue.place("views", key.rpartition("/")[2], "max_length")
            sentences.append(f"{place}: {asked} tokens, but {encoder} reads at most {longest}; write {longest} or less")
    return sentences


def _positions(entry: EncoderConfig) -> int | None:
    """Return the longest sequence that an encoder's config and tokenizer allow; None where they are not on this disk.

    What was loaded says it exactly (`encoders.loading.longest`), when the texts are cut into tokens.
    """
    if entry.kind != "transformers":
        return None
    try:
        folder = _cached(entry) if entry.hub else locate(entry).folder
        config, tokenizer = (read_json(folder / name) for name in ("config.json", "tokenizer_config.json"))
    except (UserError, OSError, ValueError):  # which fetch says
        return None
    after = any(name in str(config.get("model_type")) for name in COUNTED_FROM_PADDING)
    begin = (config.get("pad_token_id") or 0) + 1 if after else 0
    counts = [config[name] - begin for name in ("max_position_embeddings", "n_positions") if config.get(name)]
    return min([*counts, *filter(None, [tokenizer.get("model_max_length")])], default=None)


def _cached(entry: EncoderConfig) -> Path:
    """Return the folder of an encoder in the Hub's cache. Raises OSError where it is not there."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(entry.hub or "", "config.json", revision=entry.revision)
    if not isinstance(config, str):
        raise FileNotFoundError(entry.hub)
    return Path(config).parent


def _of(plan) -> Iterator[str]:
    for name in plan.experiment.tasks:
        task = plan.catalogue.get("tasks", name, "tasks")
        if plan.status.is_current("prepare", task.corpus):
            card = read_json(Path(plan.files("prepare", task.corpus)[0]))
            subsets = {subset: plan.catalogue.get("subsets", subset, "subsets") for subset in plan.experiment.subsets}
            yield from (f"{name}: {lack}" for lack in _lacks(task, card, subsets))


def _lacks(task: TaskConfig, card: dict, subsets: dict[str, SubsetConfig]) -> Iterator[str]:
    """Yield what a corpus lacks. Args: a task; the corpus's card; the subsets of the experiment by id."""
    labels, rows = card["labels"].get(task.target, []), card["splits"]["train"]["rows"]
    if "f1" in task.metrics and len(labels) > 2:
        yield no_f1(task.target, len(labels))
    for name, subset in subsets.items():
        reserved = min(subset.reserved or 0, rows // 2)  # as `Corpus.reserved` takes them
        if subset.rows is not None and subset.rows > rows - reserved:
            kept = f", of which {reserved} are reserved" if reserved else ""
            yield f"subset {name} of {subset.rows} rows: train of {task.corpus} has {rows}{kept}; ask for fewer"
        counts = card["splits"]["train"].get("labels", {}).get(task.target, {}) if subset.per_label else {}
        for label in (label for label in labels if counts.get(label, 0) < (subset.per_label or 0)):
            of = f"train of {task.corpus} has {counts.get(label, 0)} of {label}"
            yield f"subset {name} of {subset.per_label} rows a label: {of}; ask for fewer"
