"""The data: rows of a task that both sides read from the same files, from published corpora or Thaw's own grammar."""

import json
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.planning.configuration import load_plan

from .options import HOME, Options

# Each task of the benchmark, and the synthetic one in its place where the published files are not at hand.
TASKS = {"sst2_sentences": "acceptability", "mrpc": "paraphrase"}
SPLITS = ("train", "validation", "test")
SHARE = 4  # validation and test have this part of train's rows


@dataclass(frozen=True)
class Texts:
    """A task with its rows by split; each row has the text columns and a `label`."""

    name: str
    columns: list[str]
    labels: list[str]
    rows: dict[str, list[dict]]
    max_length: int = 128

    def write(self, folder: Path) -> None:
        """Write a file of JSON lines for each split."""
        folder.mkdir(parents=True, exist_ok=True)
        for split, rows in self.rows.items():
            (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def entries(self) -> dict[str, dict]:
        """Return what Thaw's catalogue says of it: a corpus, a task and a view."""
        words = sum(len(row[column].split()) for rows in self.rows.values() for row in rows for column in self.columns)
        examples = sum(map(len, self.rows.values()))
        files = {split: f"{self.name}/{split}.jsonl" for split in self.rows}
        corpus = {
            "texts": self.columns,
            "targets": {"label": "label"},
            "labels": {"label": self.labels},
            "files": {"format": "jsonl", "splits": files},
            "size": {"examples": examples, "tokens": 2 * words},
        }
        kind = "classification" if len(self.columns) == 1 else "pair_classification"
        task = {"corpus": self.name, "target": "label", "type": kind, "metrics": ["accuracy"], "view": "bench"}
        return {
            "corpora": {self.name: corpus},
            "tasks": {self.name: task},
            "views": {"bench": {"max_length": self.max_length}},
        }

    def for_peers(self, folder: Path) -> dict:
        """Return what a peer is told of it."""
        return {
            "folder": str(folder),
            "columns": self.columns,
            "labels": self.labels,
            "max_length": self.max_length,
        }


def tasks(options: Options, whole_test: bool = False) -> list[Texts]:
    """Return both tasks, in a quick run the first alone, cut to the rows asked for; see `cut`."""
    names = list(TASKS.items())[: 1 if options.quick else None]
    return [cut(read(name, stand_in, options), options.rows, whole_test) for name, stand_in in names]


def read(name: str, stand_in: str, options: Options) -> Texts:
    """Return a task of the shipped catalogue, or the one that stands in for it, with all its rows."""
    published = options.data_dir / name.partition("_")[0]
    selection = {
        "experiment": "bench",
        "title": "texts",
        "tasks": [name if published.is_dir() else stand_in],
        "encoders": ["minilm"],
        "strategies": ["frozen"],
        "seeds": [1],
        "outputs": ["main_table"],
        "data_dir": str(options.data_dir),
        "sources": ["files", "synthetic"],
    }
    plan = load_plan(selection, HOME)
    (name,) = selection["tasks"]
    task = plan.catalogue.get("tasks", name, "bench")
    with tempfile.TemporaryDirectory() as folder:
        prepare(plan.job("prepare", task.corpus).spec, options.data_dir, Path(folder))
        corpus = Corpus(folder)
        rows = {split: _rows(corpus, split, task.target) for split in SPLITS}
        return Texts(f"bench_{name}", corpus.texts, corpus.labels(task.target), rows)


def _rows(corpus: Corpus, split: str, target: str) -> list[dict]:
    """Return a split's texts and labels."""
    frame = corpus.frame(split)
    return frame[[*corpus.texts, target]].rename(columns={target: "label"}).to_dict("records")


def cut(texts: Texts, rows: int, whole_test: bool = False) -> Texts:
    """Return a task with this many training rows, drawn once and for all, and a quarter of them in the other splits.

    Of a split that has fewer all are taken, and of test where it stays whole.
    """
    counts = {split: rows if split == "train" else max(rows // SHARE, 1) for split in texts.rows}
    counts |= {"test": len(texts.rows["test"])} if whole_test else {}
    chosen = {split: random.Random(1).sample(given, len(given))[: counts[split]] for split, given in texts.rows.items()}
    return Texts(texts.name, texts.columns, texts.labels, chosen, texts.max_length)


def joined(texts: Texts, tokens: int, rows: int) -> Texts:
    """Return a task whose texts are sentences of one label joined until no view of `tokens` tokens holds them.

    Cut by the view, each text then has exactly so many tokens. For tasks of one text.
    """
    (column,) = texts.columns
    draw = random.Random(tokens)
    found = {}
    for split, given in texts.rows.items():
        pools = {label: [row[column] for row in given if row["label"] == label] for label in texts.labels}
        count = rows if split == "train" else max(rows // SHARE, 1)
        labels = [texts.labels[i % len(texts.labels)] for i in range(count)]
        found[split] = [{column: _long(pools[label], tokens, draw), "label": label} for label in labels]
    return Texts(f"{texts.name}_{tokens}", texts.columns, texts.labels, found, tokens)


def _long(pool: list[str], words: int, draw: random.Random) -> str:
    """Return sentences of a pool, joined until there are so many words."""
    text: list[str] = []
    while len(text) < words:
        text += draw.choice(pool).split()
    return " ".join(text)
