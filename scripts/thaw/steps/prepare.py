"""Step prepare: one corpus from its source to checked Parquet splits and a card.

python -m thaw.steps.prepare --spec '{"corpus": ..., "entry": {...}, "source": "files", ...}'
    --data-dir DIR --out results/data/<corpus>
"""

import argparse
import json
from pathlib import Path

from thaw.core.runtime import run_step
from thaw.data.preparation import prepare


def main() -> None:
    """Parse the arguments and prepare the corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--spec", required=True, type=json.loads, help="canonical JSON of all that the result depends on"
    )
    parser.add_argument("--data-dir", required=True, type=Path, help="folder that file sources are relative to")
    parser.add_argument("--out", required=True, type=Path, help="folder for the splits and card.json")
    arguments = parser.parse_args()
    prepare(arguments.spec, arguments.data_dir, arguments.out)


if __name__ == "__main__":
    run_step(main)
