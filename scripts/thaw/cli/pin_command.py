"""Pin what an experiment reads from the Hub to the commits that its names stand for now, in a file beside it.

thaw pin my.yaml              writes my.pins.yaml, which every plan of my.yaml reads

What is here already is pinned to the commit that it was made from, everything else to the newest one. Pin before the
first run: a pinned revision is part of what a result depends on, so that results without it are made again.
"""

from pathlib import Path

from thaw.cli.selection import configuration, parsed, selecting
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_text
from thaw.core.home import HOME
from thaw.planning.configuration import load_plan, pins_beside
from thaw.planning.plan import Plan
from thaw.schema.encoder import RANDOM_TWIN

HEAD = "# Written by `thaw pin {file}`. Results depend on these revisions; delete a line to have the newest one.\n"
WAIT = 20  # seconds for an answer of the Hub


def main(words: list[str]) -> None:
    given = parsed(selecting("pin", __doc__), words)
    plan = load_plan(configuration(given.files, given.config), HOME, files=given.files, pinned=False)
    if not plan.downloads:
        raise UserError(f"{given.files[0]}: reads nothing from the Hub, so that there is nothing to pin")
    text = HEAD.format(file=given.files[0])
    for step, keys in plan.downloads.items():
        text += "corpora:\n" if step == "prepare" else "encoders:\n"
        for key in dict.fromkeys(key.removesuffix(RANDOM_TWIN) for key in keys):
            text += f"  {key}: {pinned(plan, step, key)}\n"
    path = pins_beside(given.files[0])
    write_text(path, text)
    print(f"{text}written to {path}, which every plan of {given.files[0]} reads")


def pinned(plan: Plan, step: str, key: str) -> str:
    """Return <id>@<commit> of a data set or an encoder: what its result here was made from, else what its entry names.

    Raises UserError where the Hub has none of them, or gives no answer.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    if step == "prepare":
        info = HfApi().dataset_info
        named = [(one.id, one.revision) for one in plan.catalogue.get("corpora", key, "corpora").on_hub]
    else:
        info, entry = HfApi().model_info, plan.catalogue.get("encoders", key, "encoders")
        named = [(str(entry.hub), entry.revision)]
    card = Path(plan.files(step, key)[0])
    made = read_json(card) if card.exists() else {}
    source = made.get("source") if step == "prepare" else made
    made_from = [(id, source["revision"]) for id, _ in named if source and source.get("id", id) == id]
    for id, revision in [*(one for one in made_from if one[1]), *named]:
        try:
            return f"{id}@{info(id, revision=revision, timeout=WAIT).sha}"
        except (RepositoryNotFoundError, RevisionNotFoundError):
            print(f"{key}: the Hub has no {id} at {revision or 'its newest revision'}")
        except Exception as error:  # of many kinds, from several libraries
            raise UserError(f"{id}: the Hub gave no answer ({error}); nothing was pinned, run it again") from error
    raise UserError(f"{key}: none of its sources is on the Hub; name another one at `hub:`")
