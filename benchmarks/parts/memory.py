"""Memory against the size of a corpus: of preparation, of extraction, and of a training on a part of it.

A small random encoder reads made-up sentences, since it is the number of sentences that counts here. Training takes
the same 500 rows of a store that grows. *Own* is what a process holds beside pages of files, which Linux drops where it
needs the memory. Measure this part alone: Linux counts what this process once held as held by all that it starts.
"""

import contextlib
import random
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from thaw.core.files import read_json

from .. import work
from ..options import Options
from ..ours import Place
from ..texts import Texts

SIZES = (10_000, 100_000, 1_000_000)
OFTEN = 0.05  # seconds between two looks at the processes
LAYERS, WIDTH = 3, 32
CORPUS, PART = "bench_sentences", "bench_part"
TRAINED = f"results/runs/{CORPUS}/{PART}/tiny/{work.TABLE_HEAD}/bench_top_1/base/seed1"
ROWS = 500  # of validation, of test, and of each training


def measure(options: Options) -> dict:
    """Return by number of sentences the MiB of memory, and bytes of the store."""
    found = {}
    for size in [size // 5 for size in SIZES[:2]] if options.quick else SIZES:
        with ProcessPoolExecutor(1) as pool:
            place = pool.submit(_written, size, options).result()
        found[str(size)] = _extracted(place)
    return {"numbers": {}, "used": {"rows": ROWS, "seeds": 1, "rounds": 1}, "memory": found}


def _written(size: int, options: Options) -> Place:
    """Write a corpus of so many sentences, an encoder and an experiment; return the place without its sentences."""
    from tests.tiny import WORDS, tiny_encoder

    place = Place(
        options.folder(f"memory_{size}"),
        options,
        [sentences(size, WORDS)],
        {"bench_top_1": work.top(1, 1)},
        encoders=["tiny"],
        subsets={PART: {"rows": ROWS, "draw": 1}},
        seeds=[1],
    )
    tiny_encoder("bert", place.folder / "tiny", LAYERS)
    stated = {"layers": LAYERS, "width": WIDTH, "cased": False, "objective": "none", "pretraining": ["none"]}
    place.write("catalogue/encoders.yaml", {"encoders": {"tiny": {"folder": "tiny", "label": "Tiny"} | stated}})
    place.write("bench.yaml", place.selection | {"subsets": ["all", PART]})  # what no run reads is not extracted
    place.tasks = []
    return place


def _extracted(place: Place) -> dict:
    """Prepare and extract a corpus, and train on a few of its sentences."""
    store = place.folder / f"results/features/tiny/{CORPUS}/bench"
    with own_memory(place.folder) as preparation:
        prepared = place.run("--until", "prepare")
    with own_memory(place.folder) as extraction:
        extracted = place.thaw(str(store.relative_to(place.folder) / "tokens.json"))
    with own_memory(place.folder) as training:
        place.thaw(f"{TRAINED}/metrics.json")
    tokens = sum(split["tokens"] for split in read_json(store / "tokens.json")["splits"].values())
    held = sum(path.stat().st_size for path in store.glob("b*.safetensors"))
    return {
        "preparation_mib": prepared["memory_mb"],
        "own_of_preparation": max(preparation),
        "extraction_mib": extracted["memory_mb"],
        "own_of_extraction": max(extraction),
        "training_mib": read_json(place.folder / TRAINED / "cost.json")["peak_memory_mb"],
        "own_of_training": max(training),
        "store_mib": held / 2**20,
        "store_by_plan": held / (tokens * WIDTH * 2),
    }


@contextlib.contextmanager
def own_memory(folder: Path) -> Iterator[list[float]]:
    """Yield a list that grows by the memory in MiB of each process in a folder at each look, less pages of files."""
    seen, over = [0.0], threading.Event()

    def look() -> None:
        while not over.wait(OFTEN):
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):  # it has just ended
                    if (process / "cwd").readlink().is_relative_to(folder):
                        held = re.search(r"RssAnon:\s*(\d+)", (process / "status").read_text())
                        seen.append(int(held[1]) / 1024 if held else 0.0)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def sentences(size: int, words: list[str]) -> Texts:
    """Return a task of so many made-up sentences of 3 to 20 of these words."""
    draw = random.Random(size)
    counts = {"train": size - 2 * ROWS, "validation": ROWS, "test": ROWS}
    rows = {split: [_row(draw, words) for _ in range(count)] for split, count in counts.items()}
    return Texts(CORPUS, ["text"], ["no", "yes"], rows)


def _row(draw: random.Random, words: list[str]) -> dict:
    """Return a sentence and its label."""
    return {"text": " ".join(draw.choices(words, k=draw.randint(3, 20))), "label": draw.choice(["no", "yes"])}
