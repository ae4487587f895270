"""Memory against the size of a corpus: the largest process of preparation, of extraction, and of a training on a part.

A small random encoder reads made-up sentences, since it is the number of sentences that counts here. Training takes
the same 500 rows of a store that grows. A million sentences are not read: they are on the line through the two largest
sizes. Measure this part alone: Linux counts what this process once held as held by all that it starts.
"""

import random
from concurrent.futures import ProcessPoolExecutor

from thaw.core.files import read_json

from .. import work
from ..options import Options
from ..ours import Place
from ..texts import Texts

SIZES = (10_000, 30_000, 100_000)
LARGE = 1_000_000
LAYERS, WIDTH = 3, 32
CORPUS, PART = "bench_sentences", "bench_part"
TRAINED = f"results/runs/{CORPUS}/{PART}/tiny/{work.TABLE_HEAD}/bench_top_1/base/seed1"
ROWS = 500  # of validation, of test, and of each training


def measure(options: Options) -> dict:
    """Return by number of sentences the seconds, MiB of memory and bytes of the store."""
    sizes = [size // 5 for size in SIZES[:2]] if options.quick else SIZES
    found = {}
    for size in sizes:
        with ProcessPoolExecutor(1) as pool:
            place = pool.submit(_written, size, options).result()
        found[size] = _extracted(place)
    memory = {str(size): one for size, one in found.items()} | {f"{LARGE}, extrapolated": extrapolated(found)}
    return {"numbers": {}, "used": {"rows": ROWS, "seeds": 1, "rounds": 1}, "memory": memory}


def extrapolated(found: dict[int, dict[str, float]]) -> dict[str, float]:
    """Return what LARGE would have by the line through the two largest sizes. Args: what was measured, by size."""
    (below, low), (above, high) = sorted(found.items())[-2:]
    return {key: high[key] + (high[key] - low[key]) / (above - below) * (LARGE - above) for key in high}


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
    prepared = place.run("--until", "prepare")
    store = place.folder / f"results/features/tiny/{CORPUS}/bench"
    until = place.thaw(str(store.relative_to(place.folder) / "tokens.json"))
    tokens = sum(split["tokens"] for split in read_json(store / "tokens.json")["splits"].values())
    held = sum(path.stat().st_size for path in store.glob("b*.safetensors"))
    place.thaw(f"{TRAINED}/metrics.json")
    return {
        "preparation_seconds": prepared["wall"],
        "extraction_seconds": until["wall"],
        "preparation_mib": prepared["memory_mb"],
        "extraction_mib": until["memory_mb"],
        "training_mib": read_json(place.folder / TRAINED / "cost.json")["peak_memory_mb"],
        "store_bytes": held,
        "store_by_plan": held / (tokens * WIDTH * 2),
    }


def sentences(size: int, words: list[str]) -> Texts:
    """Return a task of so many made-up sentences of 3 to 20 of these words."""
    draw = random.Random(size)
    counts = {"train": size - 2 * ROWS, "validation": ROWS, "test": ROWS}
    rows = {split: [_row(draw, words) for _ in range(count)] for split, count in counts.items()}
    return Texts(CORPUS, ["text"], ["no", "yes"], rows)


def _row(draw: random.Random, words: list[str]) -> dict:
    """Return a sentence and its label."""
    return {"text": " ".join(draw.choices(words, k=draw.randint(3, 20))), "label": draw.choice(["no", "yes"])}
