"""The runs of an experiment as one long table: written by `collect`, read by all outputs.

One row per result, split and metric.

    kind                run; baseline; ensemble: combined predictions of several runs. A baseline has no head, and an
                        encoder only if it is compared with that encoder's runs; ensembles have neither
    weights             the folder below encoders/ and features/ that the run begins with: the encoder's, or that of
                        its further pretraining on a corpus
    value               score as a fraction, empty where it is undefined; n: rows that it was computed on
    train_rows          rows that it may learn from: those of the subset (held_out among them), or all of train
    main                True for the task's main metric
    role                train, validation, test, reserved (rows of train that a subset reserves), unseen (test rows that
                        share no sentence with train), or transfer (a split `<task>/<split>` of another task)
    also_validation     True for a test split on which everything is chosen too (protocol: paper)
    optimizer           of the run's phases; lbfgs means that all seeds share one convex fit
    precision           in which the run's phases were computed
    pairs               how pairs of texts were read: joint or separate; empty where the task has none
    truncated           texts of the split that were longer than the view allows; empty where no text was tokenised
    train_seconds       this run's own training; after_seconds and after_flops: of the runs and the further
                        pretraining that it started from; search_seconds and search_flops: its share of the trials of
                        the search that chose its settings, empty where one is unknown
    processor_seconds   that all threads worked during total_seconds; empty where a run did not note them
    extraction_seconds  the run's share, by the rows that training and choosing read, of the encoder passes that wrote
                        the boundaries which it and its neighbours in this experiment read; 0 where it read none.
                        extraction_whole_seconds: what its rows took of those passes, undivided;
                        extraction_price_seconds: its share as the price has it; extraction_flops: of its share, empty
                        where the encoder's config.json is gone
    price_seconds       all of these together, of the processor where that is known (`price.py`)
    inference_layers    layers of the encoder that a prediction needs; inference_flops: operations of one prediction.
                        Empty for results that were made before runs noted it
    updates             steps of the optimizer of this run; empty where it noted none
    missing             the reason why the result is missing, else empty; one row per split then, without scores
    carved              True where the task's validation split was held out from train
    folder              of the result, below the results folder
"""

import numpy as np

from thaw.core import layout
from thaw.core.errors import UserError

TEXT = (
    "kind task subset encoder weights head strategy variant optimizer precision pairs split role metric flags missing "
    "protocol device digest folder"
).split()
COLUMNS = (
    "kind task subset encoder weights head strategy variant seed thawed embeddings optimizer precision pairs "
    "split role also_validation metric main value n train_rows truncated train_seconds after_seconds search_seconds "
    "total_seconds processor_seconds extraction_seconds extraction_price_seconds extraction_whole_seconds "
    "price_seconds flops after_flops search_flops extraction_flops trained_parameters peak_memory_mb "
    "inference_layers inference_flops updates flags missing synthetic carved protocol device digest folder"
).split()
CELL, RUN = list(layout.CELL), list(layout.RUN)  # pandas takes a tuple for one name


def read_runs(path):
    """Read runs.csv into a pandas frame; ids are text, empty scores NaN. A file without runs is a UserError."""
    import pandas

    try:
        frame = pandas.read_csv(path, dtype={name: str for name in TEXT})
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run step collect") from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, ValueError) as error:
        raise UserError(f"{path}: not a table of runs ({error}); delete it so that it is made again") from error
    missing = [column for column in COLUMNS if column not in frame]
    if missing:
        raise UserError(f"{path}: column {missing[0]} is missing; delete the file so that it is made again")
    if frame.empty:
        raise UserError(f"{path}: holds no runs")
    return frame.fillna({name: "" for name in TEXT})


def of_cell(frame, cell):
    """Return the rows of a cell. Args: its ids in the order of CELL."""
    inside = np.ones(len(frame), dtype=bool)
    for name, value in zip(CELL, cell, strict=True):
        inside &= (frame[name] == value).to_numpy(dtype=bool)
    return frame[inside]


def in_role(frame, role: str):
    """Return which rows have a role; a test split on which everything is chosen is validation too."""
    return (frame["role"] == role) | ((role == "validation") & frame["also_validation"].eq(True))


def head_alone(frame):
    """Return the rows of runs that train only the head."""
    return frame[(frame["thawed"] == 0) & ~frame["embeddings"].astype(bool)]


def value(record, path, *keys):
    """Return a value inside a record; a missing key is a UserError that names the file and the key."""
    inner = record
    for key in keys:
        if not isinstance(inner, dict) or key not in inner:
            raise UserError(f"{path}: '{'.'.join(keys)}' is missing; delete the file so that it is made again")
        inner = inner[key]
    return inner
