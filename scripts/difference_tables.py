"""Tables of smaller experiments on their records: scores of strategies, and their differences in points.

Hypotheses stand in the experiments' files, written before the runs. Scores are × 100, on the official test; differences
are paired by run and by test row, with one 95 % interval for all of a table. record_tables.py prints the tables.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from answers import FULL, PROBES, Record, difference, recorded
from record_names import label, mean, task_label
from thaw.outputs.frame.paired_differences import jointly, printed
from thaw.statistics.bootstrap import Resampled
from thaw.words.wording import number

NOISY = {"subj": "SUBJ", "ag_news": "AG News"}
FROZEN, CORAL = "vectors_frozen", "full_coral_stsb"
SIZES = (100, 300, 1000, 3500)


def of_draws(record: Record, task: str, rows: int, arm: str) -> list:
    """Return the lines of a strategy on the official test, by draw. Args: the number of labelled rows."""
    return [record.lines[task, f"n{rows}_r{draw}", arm, "test"] for draw in (1, 2, 3)]


def shown(lines: list) -> str:
    """Return the mean over draws of runs."""
    return mean([100 * line.value for line in lines])


def above(lines: list, others: list) -> list:
    """Return the pairs of lines that `difference` takes, of one test."""
    return [[pair] for pair in zip(lines, others, strict=True)]


def told(found: dict[tuple, Resampled]) -> dict[tuple, str]:
    """Return differences as printed, with one 95 % interval for all."""
    return dict(zip(found, map(printed, jointly(list(found.values()))), strict=True))


def less(arm: str, other: str) -> str:
    """Return the name of a difference of two strategies."""
    return f"{label(arm)} less {label(other)[0].lower()}{label(other)[1:]}"


def worth(record: Record) -> list[list[str]]:
    """Return by task and number of labels what thawing gives, and what more labels give the probe on all layers."""
    places = [(task, rows) for task in record.tasks for rows in SIZES]
    found: dict[tuple, Resampled] = {}
    for task, rows in places:
        probe = of_draws(record, task, rows, PROBES[1])
        found[task, rows, "thawing"] = difference(above(of_draws(record, task, rows, FULL), probe))
        if rows < SIZES[-1]:
            more = of_draws(record, task, SIZES[SIZES.index(rows) + 1], PROBES[1])
            found[task, rows, "labels"] = difference(above(more, probe))
    differences = told(found)
    lines = [["", "linear probe, all layers", "thawing gives", "the next larger number of labels gives"]]
    for task, rows in places:
        cells = [differences.get((task, rows, what), "–") for what in ("thawing", "labels")]
        lines.append([f"{task_label(task)}, {rows:,}", shown(of_draws(record, task, rows, PROBES[1])), *cells])
    return lines


def noise(record: Record) -> list[list[str]]:
    """Return scores with clean and noisy labels and what noise costs; and by how much more it costs fine-tuning."""
    names, pairs = NOISY, {}
    for task in names:
        for arm in (*PROBES, FULL):
            pairs[task, arm] = [of_draws(record, f"{task}_{kind}", 1000, arm) for kind in ("noisy", "split")]
    found: dict[tuple, Resampled] = {place: difference(above(*both)) for place, both in pairs.items()}
    for task in names:
        for arm in PROBES:
            full, probe = (above(*pairs[task, one]) for one in (FULL, arm))
            found[task, FULL, arm] = difference(full, less=probe)
    differences = told(found)
    lines = [["", *(f"{name}, {what}" for name in names.values() for what in ("clean", "noisy", "difference"))]]
    for arm in (*PROBES, FULL):
        both = {task: pairs[task, arm] for task in names}
        cells = [[shown(clean), shown(noisy), differences[task, arm]] for task, (noisy, clean) in both.items()]
        lines.append([label(arm), *sum(cells, [])])
    for arm in PROBES:
        cells = [["", "", differences[task, FULL, arm]] for task in names]
        lines.append([less(FULL, arm), *sum(cells, [])])
    return lines


def noisy(record: Record) -> list[list[str]]:
    """Return differences of strategies with noisy labels, which the sentences about levels are about."""
    asked = ((FULL, PROBES[0]), (FULL, PROBES[1]), (PROBES[0], PROBES[1]))
    found: dict[tuple, Resampled] = {}
    for pair in asked:
        for task in NOISY:
            sides = (of_draws(record, f"{task}_noisy", 1000, arm) for arm in pair)
            found[task, *pair] = difference(above(*sides))
    differences = told(found)
    lines = [["With noisy labels", *NOISY.values()]]
    return [*lines, *([less(*pair), *(differences[task, *pair] for task in NOISY)] for pair in asked)]


def compared(frame: pd.DataFrame, by: str, sides: dict[str, tuple], asked: dict[str, tuple]) -> list[list[str]]:
    """Return scores of some sides by task, and the differences that were asked for.

    Args: by, head or encoder; of a side its head or encoder and its strategy; two sides, or two pairs of them whose
    differences are compared.
    """
    tasks = list(frame["task"].unique())
    of = {name: Record(frame[frame[by] == name]) for name, _ in sides.values()}
    runs = {(side, task): of_draws(of[name], task, 1000, arm) for side, (name, arm) in sides.items() for task in tasks}
    differences = told(
        {
            (name, task): difference(*(above(runs[one, task], runs[other, task]) for one, other in pairs))
            for name, pairs in asked.items()
            for task in tasks
        }
    )
    lines = [["", *map(task_label, tasks)]]
    lines += [[side, *(shown(runs[side, task]) for task in tasks)] for side in sides]
    return [*lines, *([name, *(differences[name, task] for task in tasks)] for name in asked)]


def heads(frame: pd.DataFrame) -> list[list[str]]:
    """Return both heads on a frozen and on a tuned encoder."""
    sides = {
        "Frozen, linear head": ("linear_mean", FROZEN),
        "Frozen, BiLSTM": ("bilstm", FROZEN),
        "Tuned, linear head": ("linear_mean", FULL),
        "Tuned, BiLSTM": ("bilstm", FULL),
    }
    asked = {
        "Frozen: BiLSTM less linear head": (("Frozen, BiLSTM", "Frozen, linear head"),),
        "Tuned: BiLSTM less linear head": (("Tuned, BiLSTM", "Tuned, linear head"),),
        "Frozen with BiLSTM, less tuned with linear head": (("Frozen, BiLSTM", "Tuned, linear head"),),
    }
    return compared(frame, "head", sides, asked)


def recurrent(frame: pd.DataFrame) -> list[list[str]]:
    """Return a recurrent encoder and a transformer, frozen and tuned, pretrained and random."""
    encoders = {"Recurrent": "local_recurrent", "Transformer": "local_decoder"}
    arms = {"probe": PROBES[0], "probe, all layers": PROBES[1], "tuned": "vectors_tuned"}
    starts = {"": "", ", random": "_random"}
    sides = {
        f"{name}{start}, {what}": (f"{encoder}{suffix}", arm)
        for start, suffix in starts.items()
        for name, encoder in encoders.items()
        for what, arm in arms.items()
    }
    tuned, probed = ([f"{name}, {what}" for name in encoders] for what in ("tuned", "probe, all layers"))
    gains = tuple(zip(tuned, probed, strict=True))
    asked = {
        "Probe, all layers: recurrent less transformer": (probed,),
        "Tuned: recurrent less transformer": (tuned,),
        "What tuning adds to the probe on all layers: recurrent less transformer": gains,
        **{f"{name}, tuned: less random": ((f"{name}, tuned", f"{name}, random, tuned"),) for name in encoders},
    }
    titles, *lines = compared(frame[frame["kind"] == "run"], "encoder", sides, asked)
    tests = frame[frame["role"] == "test"].assign(value=100 * frame["value"])
    for point in ("bag_of_words", "majority"):
        of = tests[tests["strategy"] == point]
        lines.insert(0, [label(point), *(mean(of.loc[of["task"] == task, "value"]) for task in frame["task"].unique())])
    return [titles, *lines]


def large_heads(frame: pd.DataFrame) -> list[list[str]]:
    """Return three heads on few rows of SICK-R, without and with CORAL, also on STS-B, its target.

    Rows of STS-B are not in the record, so that their differences have no interval.
    """
    names = {"linear_mean": "Linear head", "bilstm": "BiLSTM", "bimpm": "BiMPM"}
    runs = {(line.head, line.strategy, line.split): line for line in frame.itertuples()}
    splits = ("test", "stsb/test")
    lines = [["100 pairs of SICK-R", "SICK-R", "STS-B"]]
    cosine = {line.split: line for line in frame[frame["strategy"] == "cosine"].itertuples()}
    lines.append(["No head: the cosine of frozen vectors", *(shown([cosine[split]]) for split in splits)])
    for head, name in names.items():
        for arm, said in ((FULL, name), (CORAL, f"{name}, CORAL")):
            lines.append([said, *(shown([runs[head, arm, split]]) for split in splits)])
    asked = {f"{names[head]} less linear head": ((head, FULL), ("linear_mean", FULL)) for head in ("bilstm", "bimpm")}
    asked |= {f"{name}: what CORAL adds": ((head, CORAL), (head, FULL)) for head, name in names.items()}
    asked["BiMPM, CORAL, less linear head"] = (("bimpm", CORAL), ("linear_mean", FULL))
    found = {said: tuple([runs[*side, "test"]] for side in sides) for said, sides in asked.items()}
    differences = told({said: difference(above(*sides)) for said, sides in found.items()})
    for said, (one, other) in asked.items():
        away = 100 * (runs[*one, "stsb/test"].value - runs[*other, "stsb/test"].value)
        lines.append([said, differences[said], number(away)])
    return lines


def students(frame: pd.DataFrame) -> list[list[str]]:
    """Return each way to make a student by its score, and its difference to the untaught lowest layers."""
    runs = frame[(frame["kind"] == "run") & (frame["split"] == "test")].sort_values("seed")
    of = {arm: list(mine.itertuples()) for arm, mine in runs.groupby("point")}
    least = next(arm for arm in of if arm.startswith("drop_top"))
    differences = told({arm: difference(above(lines, of[least])) for arm, lines in of.items() if arm != least})
    lines = [["TREC-6, 250 questions", "accuracy", f"less {label(least)[0].lower()}{label(least)[1:]}", "seconds"]]
    for arm in sorted(of, key=lambda arm: -np.mean([line.value for line in of[arm]])):
        seconds = np.median([line.train for line in of[arm]])
        lines.append([label(arm), shown(of[arm]), differences.get(arm, "–"), f"{seconds:.0f}"])
    return lines


TABLES: dict[str, Callable[[], list[list[str]]]] = {
    "unseen_sizes": lambda: worth(Record(recorded("unseen_sizes"))),
    "head_sizes": lambda: heads(recorded("head_sizes")),
    "large_heads": lambda: large_heads(recorded("head_rows_coral")),
    "students_presets": lambda: students(recorded("students_presets")),
    "recurrent": lambda: recurrent(recorded("recurrent")),
    "label_noise_levels": lambda: noisy(Record(recorded("label_noise"))),
    "label_noise": lambda: noise(Record(recorded("label_noise"))),
}
