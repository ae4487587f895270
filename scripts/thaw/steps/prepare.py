"""Step prepare: one corpus from its source to checked Parquet splits and a card.

python -m thaw.steps prepare --spec '{"corpus": ..., "entry": {...}, "source": "files", ...}'
    --data-dir DIR --out results/data/<corpus>
"""

from thaw.core.runtime import run_step
from thaw.core.step_arguments import parse_arguments, required
from thaw.data.preparation import prepare


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        required("--data-dir", "folder that file sources are relative to"),
        out="folder for the splits and card.json",
    )
    prepare(arguments.spec, arguments.data_dir, arguments.out)


if __name__ == "__main__":
    run_step(main)
