"""The benchmark's command line: `PYTHONPATH=scripts python -m benchmarks table --rows 500`, or `all`, or `report`.

Each part writes results/bench/parts/<part>.json, and the report puts together what is there. With `record` nothing is
measured: `record table` keeps what was measured of that part in docs/results/benchmark.json. A failing part is
reported, and the others go on.
"""

import argparse
import importlib
import json
import signal
import sys
import time
import traceback
from dataclasses import asdict, fields, replace
from pathlib import Path

from thaw.core.files import write_json

from . import record, report
from .measuring import machine
from .options import QUICK, Options

PARTS = (
    "table",
    "table_fp32",
    "grid",
    "probes",
    "all_layers",
    "few_labels",
    "advise",
    "lora",
    "compiled",
    "single",
    "added",
    "quality",
    "steps",
    "steps_fp32",
    "ways",
    "store",
    "planning",
    "cold",
    "boosting",
    "lengths",
    "growth",
    "memory",
)
IN_QUICK = ("table", "table_fp32", "grid", "probes", "single", "added", "steps", "steps_fp32", "store", "planning")


def main() -> None:
    """Measure the parts that are asked for, then write the report, or keep them; exit with 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "all", "report", "record"])
    parser.add_argument("--quick", action="store_true", help="less work: " + json.dumps(QUICK))
    for field in fields(Options):
        if field.name != "quick":
            parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=None)
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    asked, quick = given.pop("parts"), given.pop("quick")
    options = replace(Options(**(QUICK if quick else {})), **given)
    names = [part for part in (IN_QUICK if quick else PARTS) if "all" in asked or part in asked]
    names += [part for part in asked if part in PARTS and part not in names]
    if "record" in asked:
        if "all" in asked:
            names = [name for name in names if options.part(name).exists()]
        record.keep(names, options)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that what is being measured is stopped too
    failed = [name for name in names if not _measured(name, options)]
    report.write(options.out)
    if failed:
        sys.exit(f"these parts failed: {', '.join(failed)}; all others are in {options.out}")


def _measured(name: str, options: Options) -> bool:
    """Measure a part and write what it found; return False where it failed, and say why."""
    print(f"{time.strftime('%H:%M:%S')} {name} ...", file=sys.stderr, flush=True)
    before, begin = machine(), time.perf_counter()
    try:
        found = importlib.import_module(f"{__package__}.parts.{name}").measure(options)
    except Exception:  # whatever goes wrong in one part, the others are worth having
        traceback.print_exc()
        return False
    words = {key: str(value) if isinstance(value, Path) else value for key, value in asdict(options).items()}
    places = {"data_dir", "out", "peers", "setfit"}  # paths of this machine are nobody's business
    words |= found.pop("used", {})  # options that the part sets itself
    record = {"part": name, "options": {key: value for key, value in words.items() if key not in places}}
    record |= {"took": time.perf_counter() - begin, "machine": before | {"load_after": machine()["load"]}}
    write_json(options.part(name), record | found)
    return True


if __name__ == "__main__":
    main()
