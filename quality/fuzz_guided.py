"""Coverage-guided fuzzing of the readers, `make fuzz-guided`: atheris learns which bytes lead to code not yet seen.

The first byte chooses the reader, the rest is the file. It ends after the seconds that are asked for, or with a
traceback and the input that made it.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["thaw"]):
    from test_fuzz import FILES, TRIED, prepared, refused
    from thaw.core.files import read_json
    from thaw.schema.yaml_files import read_yaml

NAMES = [*sorted(FILES), "yaml", "json"]
SEEDS = {name: content for name, (_, _, content) in FILES.items()}
SEEDS |= {"yaml": b"tasks:\n  a: {x: [1, b], y: &c 2.5, z: *c}\n", "json": b'{"a": [1, 2.5, "b", null, true]}'}
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz_guided"))


def read_one(data: bytes) -> None:
    """Read one input; whatever is raised but UserError ends the run."""
    name, path = NAMES[data[0] % len(NAMES)] if data else "json", FOLDER / "data"
    path.write_bytes(data[1:])
    with refused():
        if name in FILES:
            prepared(path, *FILES[name][:2])
        else:
            (read_yaml if name == "yaml" else read_json)(path)
    if TRIED["tried"] % 10_000 == 0:
        print(f"{TRIED['tried']} inputs, {TRIED['refused']} refused with a sentence", flush=True)


if __name__ == "__main__":
    (FOLDER / "seeds").mkdir()
    for number, name in enumerate(NAMES):
        (FOLDER / "seeds" / str(number)).write_bytes(bytes([number]) + SEEDS[name])
    options = [f"-max_total_time={sys.argv[1]}", "-max_len=2000", f"-artifact_prefix={FOLDER}/", "-verbosity=0"]
    atheris.Setup([sys.argv[0], str(FOLDER / "seeds"), *options, "-print_final_stats=1"], read_one)
    atheris.Fuzz()
