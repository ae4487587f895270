"""What probes say of each layer: scores with their baseline, and mutual information."""

from collections.abc import Iterator

from thaw.outputs.frame.probe_frame import PROBED, Names, ProbeRecord, over_seeds
from thaw.words import wording

SCORE = ["task", "subset", "probe", "measure"]
ENCODER = ["encoder", "run"]
# Further scores of a probe with a row of their own.
MORE = {"uuas": ["dspr", "nspr", "root"]}


def scores(records: list[ProbeRecord], split: str):
    """Return a row for each score and layer: mean and sd over seeds x 100, their number, and `baseline`.

    The baseline is that of the record: the most frequent label; NaN where there
    is none. split: "test" (the first of a task) or "validation".
    """
    import pandas

    rows = []
    for record in records:
        main, cell = record.value("main"), record.cell | {"split": record.split(split)}
        constant = record.value("majority").get(cell["split"], {})
        for end in record.value("layers"):
            for measure in [main, *MORE.get(main, [])]:
                score = end["scores"][cell["split"]][measure]
                row = cell | {"measure": measure, "layer": end["layer"]}
                rows.append(row | {"value": _points(score), "baseline": _points(constant.get(measure))})
    keys = [*SCORE, *ENCODER, "split", "layer"]
    table = pandas.DataFrame(rows).astype({"value": float, "baseline": float})
    frame = over_seeds(table, keys).drop(columns=["low", "high"])
    return frame.assign(baseline=table.groupby(keys, sort=False)["baseline"].first().to_numpy())


def _points(score: float | None) -> float | None:
    return None if score is None else 100 * score


def score_name(key: dict, names: Names) -> str:
    """Return a row's name: its task, its subset and probe where several have the same score, and what is scored."""
    words = names.title_words(key, "subset") + names.probe_if_several(key, "task", "measure")
    return f"{', '.join(words)}: {wording.metric_name(names.labels, key['measure'])}"


def bits(records: list[ProbeRecord], split: str, estimators: list[str]):
    """Return a row for each estimator and layer: mean, sd and number of seeds, and a flag.

    Further columns: the means of `entropy` and `bound_error`. The flag is `noise` if an estimate is not above that of
    shuffled labels. split: see `scores`.
    """
    import pandas

    keys = [*PROBED, "probe", "estimator", "split", "layer"]
    table = pandas.DataFrame(estimates(records, split, estimators)).astype({"noise": float})
    frame = over_seeds(table, keys).drop(columns=["low", "high"])
    means = table.groupby(keys, sort=False)[["entropy", "bound_error", "noise"]].mean().reset_index(drop=True)
    flags = (frame["mean"] <= means.pop("noise")).map({True: "noise", False: ""})
    return pandas.concat([frame, means], axis=1).assign(flag=flags)


def estimates(records: list[ProbeRecord], split: str, estimators: list[str]) -> Iterator[dict]:
    """Yield a row for each record, layer and estimator that it has: `value` in bits, and what else is said of it.

    That is, where the estimator has it, `noise`, `lowest` and so on, and `bound`, `bound_error` and `entropy` of the
    layer. split: see `scores`.
    """
    for record in records:
        cell = record.cell | {"split": record.split(split)}
        for end in record.value("layers"):
            values = end["scores"][cell["split"]]
            for name in filter(values.__contains__, estimators):
                row = cell | {"estimator": name, "layer": end["layer"], "value": values[name]}
                of_name = [key for key in values if key.startswith(f"{name}_")]
                row |= {key.removeprefix(f"{name}_"): values[key] for key in of_name}
                yield row | {key: values[key] for key in ("bound", "bound_error", "entropy")}
