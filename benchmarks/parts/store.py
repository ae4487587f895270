"""(e) The store: how fast states are written and read, against a memory copy of the same bytes, page cache warm."""

from .. import work
from ..options import Options
from ..ours import Place
from ..texts import tasks


def measure(options: Options) -> dict:
    """Return rates in GB/s of writing, of reading batches, and of copies of the same bytes."""
    text = tasks(options)[0]
    place = Place(options.folder("store"), options, [text], {"bench_top_3": work.top(3)}, seeds=[1])
    folder = f"results/features/minilm/{text.name}/bench"
    record = place.run(f"{folder}/b3.json")
    found = place.inside("rates", features=str(place.folder / folder), boundary=3, batch_size=work.BATCH)["found"]
    return {"numbers": {"store_read_vs_memcpy": found["read_vs_copy"]}, "passes": record["passes"]} | found
