"""The same spec on other processors: what differs where sums are taken in another order, and what does not.

A processor without some instructions is had by telling numpy, torch and its libraries not to use them.
"""

import numpy as np
import pandas
import pytest

from tiny import tiny_encoder
from workflow import Workplace

# The instructions that every x86 processor has, and those of one without AVX-512.
PLAIN = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
PROCESSORS = {"this": {}, "without AVX-512": AVX2, "plain": PLAIN, "plain again": PLAIN}
SAME_ANYWHERE = ("data/**/*.parquet", "data/**/card.json", "features/**/tokens.parquet")


def predictions(place: Workplace) -> dict[str, np.ndarray]:
    """Return the numbers that every run predicts, by its folder: probabilities of classes, or scores."""
    found = {}
    for path in sorted((place.folder / "results/runs").rglob("predictions.parquet")):
        frame = pandas.read_parquet(path)
        numbers = frame["probabilities"] if "probabilities" in frame else frame["prediction"]
        found[str(path.parent.relative_to(place.folder))] = np.array(numbers.to_list(), np.float64)
    return found


@pytest.mark.slow
def test_other_processors_change_last_digits_and_no_data(tmp_path, monkeypatch):
    places, encoder = {}, tiny_encoder("bert", tmp_path / "tiny")
    for number, (name, settings) in enumerate(PROCESSORS.items()):
        (tmp_path / str(number)).mkdir()
        places[name] = Workplace(tmp_path / str(number), encoder)
        with monkeypatch.context() as patched:
            for key, value in settings.items():
                patched.setenv(key, value)
            places[name].snakemake()
    here = places.pop("this")
    for name, place in places.items():
        for pattern in SAME_ANYWHERE:
            for path in (here.folder / "results").glob(pattern):
                assert (place.folder / path.relative_to(here.folder)).read_bytes() == path.read_bytes()
        found, mine = predictions(place), predictions(here)
        largest = {run: float(np.abs(found[run] - mine[run]).max()) for run in mine}
        assert mine and found.keys() == mine.keys() and max(largest.values()) < 1e-2
        print(f"\n{name}: predictions differ by {max(largest.values()):.1e} at most", end="")
    assert places["plain"].records() == places["plain again"].records()
