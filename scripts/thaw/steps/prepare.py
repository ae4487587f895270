"""Step prepare: one corpus from its source to checked Parquet splits and a card.

python -m thaw.steps prepare --spec '{"corpus": ..., "entry": {...}, "source": "files", ...}'
    --data-dir DIR --out results/data/<corpus>
"""

from thaw.core.runtime import run_step
from thaw.core.step_arguments import parse_arguments, read_word, required
from thaw.data.preparation import prepare


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        required("--data-dir", "folder that file sources are relative to"),
        ("--copies", {"default": {}, "type": read_word, "help": "other copies on the Hub, by corpus, as JSON"}),
        out="folder for the splits and card.json",
    )
    prepare(arguments.spec, arguments.data_dir, arguments.out, arguments.copies.get(arguments.spec["corpus"], []))


if __name__ == "__main__":
    run_step(main)
