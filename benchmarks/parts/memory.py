"""Memory against the size of a corpus: the largest process of preparation and extraction, and of a training on a part.

A small random encoder reads made-up sentences, since it is the number of sentences that counts here. Training takes
the same 500 rows of a store that grows.
"""

import random
import statistics

from tests.tiny import WORDS, tiny_encoder
from thaw.core.files import read_json

from .. import work
from ..options import Options
from ..ours import Place
from ..texts import Texts

SIZES = (10_000, 100_000, 1_000_000)
LAYERS, WIDTH = 3, 32
ROWS = 500  # of validation, of test, and of each training


def measure(options: Options) -> dict:
    """Return by number of sentences the seconds, MiB of memory and bytes of the store."""
    sizes = [size // 5 for size in SIZES[:2]] if options.quick else SIZES
    return {"numbers": {}, "memory": {str(size): _extracted(size, options) for size in sizes}}


def _extracted(size: int, options: Options) -> dict:
    """Extract a corpus of so many sentences and train on a few of them."""
    place = Place(
        options.folder(f"memory_{size}"),
        options,
        [sentences(size)],
        {"bench_top_1": work.top(1, 1)},
        encoders=["tiny"],
        subsets=["n500_d1"],
        seeds=[1],
    )
    tiny_encoder("bert", place.folder / "tiny", LAYERS)
    stated = {"layers": LAYERS, "width": WIDTH, "cased": False, "objective": "none", "pretraining": ["none"]}
    place.write("catalogue/encoders.yaml", {"encoders": {"tiny": {"folder": "tiny", "label": "Tiny"} | stated}})
    store = place.folder / f"results/features/tiny/{place.tasks[0].name}/bench"
    until = place.run(str(store.relative_to(place.folder) / f"b{LAYERS - 1}.json"))
    tokens = sum(split["tokens"] for split in read_json(store / "tokens.json")["splits"].values())
    held = sum(path.stat().st_size for path in store.glob("b*.safetensors"))
    place.thaw()
    costs = [read_json(path)["peak_memory_mb"] for path in (place.folder / "results/runs").rglob("cost.json")]
    return {
        "seconds": until["wall"],
        "extraction_mib": until["memory_mb"],
        "training_mib": statistics.median(costs),
        "store_bytes": held,
        "store_by_plan": held / (tokens * WIDTH * 2),
    }


def sentences(size: int) -> Texts:
    """Return a task of so many made-up sentences of 3 to 20 words."""
    draw = random.Random(size)
    counts = {"train": size - 2 * ROWS, "validation": ROWS, "test": ROWS}
    rows = {split: [_row(draw) for _ in range(count)] for split, count in counts.items()}
    return Texts("bench_sentences", ["text"], ["no", "yes"], rows)


def _row(draw: random.Random) -> dict:
    """Return a sentence and its label."""
    return {"text": " ".join(draw.choices(WORDS, k=draw.randint(3, 20))), "label": draw.choice(["no", "yes"])}
