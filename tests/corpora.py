"""Small corpora for tests: rows written as JSONL and prepared in-process."""

import json

from thaw.core.digests import canonical
from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.data.sources import find_source
from thaw.schema.corpora import CorpusConfig as Entry
from thaw.schema.entry import spec_of

PAIRS = {"texts": ["a", "b"], "targets": {"label": "label", "score": "score"}}
WORDS = {"words": "words", "targets": {"tags": "tags"}}


def spec_for(entry: dict, folder, sources=("files",), name="mine") -> dict:
    """Return the spec of a prepare job as the plan writes it."""
    corpus = Entry.model_validate(entry)
    source, files = find_source(name, corpus, list(sources), folder)
    spec = {"version": 1, "corpus": name, "entry": spec_of(corpus), "source": source, "files": files}
    return json.loads(canonical(spec))


def prepared(folder, entry: dict, **splits) -> Corpus:
    """Write rows as JSONL files, one per split, and prepare them."""
    for split, rows in splits.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    files = {"format": "jsonl", "splits": {split: f"{split}.jsonl" for split in splits}}
    entry = {**entry, "files": {**files, **entry.get("files", {})}}
    prepare(spec_for(entry, folder), folder, folder / "out")
    return Corpus(folder / "out")


def pair(a, b, label="yes", score=1.0):
    return {"a": a, "b": b, "label": label, "score": score}


TRAIN = [pair("one", "two"), pair("Three", "four", "no", 2), pair("one", "five", "no", "2.5")]
