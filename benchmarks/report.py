"""bench.json and the tables, from whatever parts have been measured."""

import re
from pathlib import Path

from thaw.core.files import read_json, write_json, write_text

from . import printed

# What is to be reached: the least value, of those AT_MOST the largest; and what is compared.
GOALS = {
    "table_vs_trainer_default": (3, "(a) whole table against Trainer, defaults on both sides"),
    "table_vs_trainer_tuned": (
        2.5,
        "(a) whole table against Trainer, tuned, in one or several processes",
    ),
    "table_vs_boundary_loop": (
        1.5,
        "(a) whole table against a torch loop that keeps frozen layers' states",
    ),
    "head_grid_vs_cached_loop": (2, "(b) head-only grid against a torch loop on cached features"),
    "probes_vs_sklearn": (5, "(c) layer probes against a scikit-learn loop"),
    "resume_vs_theory": (0.9, "(d) gain of resuming at k of L layers, of L / (L - k), the worst k"),
    "store_read_vs_memcpy": (0.5, "(e) store read against a memory copy of the same bytes"),
    "step_vs_matmul": (0.4, "fine-tuning step in bf16, cold, against its matrix products alone"),
    "step_warm_vs_matmul": (0.4, "the same, warm, in one thread"),
    "step_fp32_vs_matmul": (0.7, "fine-tuning step in fp32, cold, against its matrix products alone"),
    "step_fp32_warm_vs_matmul": (0.7, "the same, warm, in one thread"),
    "single_run_vs_trainer_tuned": (1, "one run of full fine-tuning against Trainer, tuned"),
    "first_result": (8, "seconds to the first result; at most"),
    "planning": (20, "(f) seconds to plan 10,000 jobs; at most"),
    "passes_per_split": (1, "encoder passes for one (encoder, corpus, view, split); at most"),
}
IN_SECONDS = ("first_result", "planning")
AT_MOST = (*IN_SECONDS, "passes_per_split")
# Beside the goals: name, and where in a part's file the number stands.
BESIDE = {
    "pipeline_vs_ours": ("all_layers", "linear probe on all layers, 40 cells, against a scikit-learn pipeline"),
    "pipeline_vs_ours_engine": ("all_layers", "the same, without starts and loading"),
}
# What the summary compares: a part by the name of its record, and its work, with what its options say.
COMPARED = {
    "single": "one full fine-tuning, {rows:,} rows",
    "added": "one strategy more in a finished experiment, {rows:,} rows",
    "table": "seven strategies, {rows:,} rows",
    "table_1000": "seven strategies, {rows:,} rows",
    "table_fp32": "seven strategies in fp32, {rows:,} rows",
    "lora": "LoRA in all layers and in two, {rows:,} rows",
    "grid": "40 heads on the frozen encoder, {rows:,} rows",
    "grid_3000": "40 heads on the frozen encoder, {rows:,} rows",
    "probes": "probes of all layers, {rows:,} rows",
    "all_layers": "40 linear probes on all layers, up to {rows:,} rows",
    "boosting": "nine linear probes on all layers, up to {rows:,} rows",
}
# The sides that the table of ratios compares with Thaw, in this order.
PEERS = (
    "default",
    "tuned",
    "trainer_tuned",
    "trainer_tuned_side_by_side",
    "tuned_side_by_side",
    "peft_side_by_side",
    "boundary_loop",
    "cached_loop",
    "sentence_vectors",
    "sklearn_loop",
    "pipeline",
    "boosting",
)
OF_STRATEGIES = ("table", "table_fp32", "lora", "compiled", "single")  # parts that have seconds of strategies
OF_QUALITY = (*OF_STRATEGIES, "few_labels", "boosting", "quality")  # parts that have their scores
OF_FACTS = (
    "steps",
    "steps_fp32",
    "ways",
    "store",
    "planning",
    "memory",
    "cold",
    "advise",
)  # parts that are shown as a list


def write(out: Path) -> None:
    """Write bench.json and bench.md into a folder, from the files in its folder `parts`."""
    parts = {path.stem: read_json(path) for path in sorted((out / "parts").glob("*.json"))}
    summary = summarised(parts)
    write_json(out / "bench.json", summary | {"parts": parts})
    write_text(out / "bench.md", markdown(summary, parts))


def summarised(parts: dict[str, dict]) -> dict:
    """Return one number per goal (None where its part is missing), whether goals are met, quality and machine."""
    numbers = dict.fromkeys(GOALS)
    for name, part in parts.items():  # a part that is kept with further numbers of rows has its goals from the first
        numbers |= {key: value for key, value in part["numbers"].items() if key in GOALS and name == part["part"]}
    passes = [count for part in parts.values() for count in part.get("passes", {}).values()]
    numbers["passes_per_split"] = max(passes) if passes else None
    goals = {key: {"goal": goal, "met": met(key, numbers[key]), "what": what} for key, (goal, what) in GOALS.items()}
    quality = {name: part["quality"] for name, part in parts.items() if "quality" in part}
    kept = ("machine", "options", "took")
    environment = {name: {key: part[key] for key in kept} for name, part in parts.items()}
    return numbers | {"goals": goals, "quality": quality, "environment": environment}


def met(key: str, value: float | None) -> bool | None:
    """Return whether a goal is met, None where nothing was measured."""
    if value is None:
        return None
    return value <= GOALS[key][0] if key in AT_MOST else value >= GOALS[key][0]


def markdown(summary: dict, parts: dict[str, dict]) -> str:
    """Return the table of goals, then one table for each part that has seconds, rows or rates."""
    lines = ["# Benchmark", "", *goals(summary)]
    for key, (part, what) in BESIDE.items():
        if part in parts:
            lines.append(f"| {what} | {number(parts[part][key])} | | |")
    for name in (*OF_STRATEGIES, "added", "grid", "probes", "all_layers", "boosting"):
        if name in parts:
            lines += ["", f"## {name}: seconds", "", *seconds(parts[name])]
    tables = {name: parts[name] for name in OF_QUALITY if name in parts}
    for name, part in {**tables, **_lengths(parts)}.items():
        if "rows" in part:
            lines += ["", f"## {name}: rows", "", *rows(part)]
        if "quality" in part:
            lines += ["", f"## {name}: quality (test accuracy x 100, mean over seeds)", "", *quality(part["quality"])]
    for name in OF_FACTS:
        if name in parts:
            lines += ["", f"## {name}", "", *facts(parts[name])]
    if "growth" in parts:
        lines += ["", "## growth: seconds and exponents", "", *growth(parts["growth"]["growth"])]
    lines += ["", "## machine", "", *machines(parts)]
    return "\n".join(lines) + "\n"


def goals(summary: dict) -> list[str]:
    """Return the table of goals: what was measured, and whether it is as much as was wanted."""
    lines = ["| what | measured | goal | met |", "|:--|--:|--:|:--|"]
    for key, goal in summary["goals"].items():
        words = {True: "yes", False: "no", None: "not measured"}[goal["met"]]
        lines.append(f"| {goal['what']} | {number(summary[key])} | {goal['goal']} | {words} |")
    return lines


def ratios(parts: dict) -> list[str]:
    """Return how many times Thaw's seconds each other side takes, from start to end, of the parts in COMPARED."""
    lines = ["| work | other side | its seconds / Thaw's |", "|:--|:--|--:|"]
    compared = {what.format(**parts[name]["options"]): parts[name] for name, what in COMPARED.items() if name in parts}
    compared |= {f"five strategies, texts of {length}": part for length, part in _lengths(parts).items()}
    for work, part in compared.items():
        seconds = part["seconds"]
        for side in sorted(set(seconds) & set(PEERS), key=PEERS.index):
            lines.append(f"| {work} | {printed.name(side)} | {number(seconds[side] / seconds['ours'])} |")
            if "ours_again" in seconds:
                again = f"{work}, as a later command"
                lines.append(f"| {again} | {printed.name(side)} | {number(seconds[side] / seconds['ours_again'])} |")
    return lines


def _lengths(parts: dict) -> dict[str, dict]:
    """Return the tables at each length of sentence."""
    return _by_length(parts.get("lengths", {}).get("lengths", {}))


def _by_length(found: dict[str, dict]) -> dict[str, dict]:
    """Return what was measured by length, shortest first. Args: the same by number of tokens."""
    return {f"{tokens} tokens": found[tokens] for tokens in sorted(found, key=int)}


def seconds(part: dict) -> list[str]:
    """Return a table of seconds by side: end to end, of all processors, and of the engine alone."""
    kinds = [("end to end", "seconds"), ("processor", "cpu_seconds"), ("engine alone", "engine_seconds")]
    kinds = [(label, part[key]) for label, key in kinds if key in part]
    lines = ["| side | " + " | ".join(label for label, _ in kinds) + " |", "|:--|" + "--:|" * len(kinds)]
    return lines + [
        f"| {printed.name(side)} | " + " | ".join(number(k.get(side)) for _, k in kinds) + " |" for side in kinds[0][1]
    ]


def rows(part: dict) -> list[str]:
    """Return the rows of a strategy table with each side's seconds and how many times ours they are."""
    sides = list(next(iter(part["rows"].values())))
    peers = [side for side in sides if side != "ours"]
    lines = [
        f"| row | {printed.name('ours')} | " + " | ".join(f"{printed.name(side)} | ratio" for side in peers) + " |"
    ]
    lines.append("|:--|--:|" + "--:|--:|" * len(peers))
    names = printed.of_rows(part["rows"])
    for name, row in part["rows"].items():
        cells = [text for side in peers for text in (number(row[side]), number(row[side] / row["ours"]))]
        lines.append(f"| {names[name]} | {number(row['ours'])} | " + " | ".join(cells) + " |")
    return lines


def quality(found: dict[str, dict]) -> list[str]:
    """Return both sides' scores by row, their difference with its 90 % interval, and whether they are equivalent."""
    lines = ["| row | against | Thaw | other | difference, 90 % CI | within a point |", "|:--|:--|--:|--:|--:|:--|"]
    for peer, verdicts in found.items():
        names = printed.of_rows(verdicts)
        for name, one in sorted(verdicts.items(), key=lambda one: in_order(one[0])):
            means = " | ".join(f"{100 * one[side]['mean']:.1f}" for side in ("ours", "peer"))
            words = {True: "yes", False: "not shown", None: "one seed"}[one["equivalent"]]
            words = "no" if one.get("different") else words
            gap = "" if one["equivalent"] is None else f"{100 * one['difference']:.1f} ± {100 * one['interval']:.1f}"
            lines.append(f"| {names[name]} | {printed.name(peer)} | {means} | {gap} | {words} |")
    return lines


def in_order(name: str) -> list:
    """Return what sorts names by the numbers in them: a kept record has its names by letters."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def facts(part: dict) -> list[str]:
    """Return the other numbers of a part as a list, nested ones by path."""
    left_out = {"part", "options", "took", "machine", "passes", "numbers"}
    return [f"- {path}: {value}" for path, value in _leaves({k: v for k, v in part.items() if k not in left_out})]


def nested(found: dict[str, dict], of: str) -> list[str]:
    """Return a mapping of mappings with the same keys as a table. Args: the mapping; what its own keys are."""
    found = {name: found[name] for name in sorted(found, key=in_order)}
    columns = list(next(iter(found.values())))
    lines = [f"| {of} | " + " | ".join(printed.name(name).replace("_", " ") for name in columns) + " |"]
    lines.append("|:--|" + "--:|" * len(columns))
    rows = [" | ".join(_cell(one[column]) for column in columns) for one in found.values()]
    return lines + [f"| {printed.name(name)} | {row} |" for name, row in zip(found, rows, strict=True)]


def moments(found: dict[str, float], until: str) -> list[str]:
    """Return seconds by what ends them, first ones first. Args: the seconds; what their names are."""
    rows = [f"| {name} | {number(found[name])} |" for name in sorted(found, key=found.get)]
    return [f"| {until} | seconds |", "|:--|--:|", *rows]


def _cell(value) -> str:
    if isinstance(value, list):
        return ", ".join(printed.name(str(one)) for one in value)
    return number(value) if value is None or isinstance(value, float) else printed.name(str(value))


def _leaves(found, path: str = ""):
    """Yield each value of nested mappings with the names that lead to it."""
    for key, value in found.items():
        place = f"{path} {key}".strip()
        if isinstance(value, dict):
            yield from _leaves(value, place)
        else:
            yield place, number(value) if isinstance(value, float) else value


def growth(found: dict[str, dict]) -> list[str]:
    """Return by axis the seconds at each value, and the exponent of a line through them, by side."""
    sides = list(next(iter(found.values()))["seconds"])
    lines = ["| varied | value | " + " | ".join(map(printed.name, sides)) + " |", "|:--|--:|" + "--:|" * len(sides)]
    for axis, one in found.items():
        points = [f"{point:,}" for point in one["points"]] + ["exponent"]
        columns = [[*map(number, one["seconds"][s]), f"{one['exponents'][s]:.2f}"] for s in sides]
        cells = zip(points, *columns, strict=True)
        lines += [f"| {axis} | {point} | " + " | ".join(row) + " |" for point, *row in cells]
    return lines


def lengths(found: dict[str, dict], kind: str) -> list[str]:
    """Return seconds by side and length of the texts in tokens. Args: kind of seconds, a key of `compare`."""
    found = _by_length(found)
    sides = list(next(iter(found.values()))["seconds"])
    lines = ["| side | " + " | ".join(found) + " |", "|:--|" + "--:|" * len(found)]
    return lines + [
        f"| {printed.name(side)} | " + " | ".join(number(one[kind][side]) for one in found.values()) + " |"
        for side in sides
    ]


def machines(parts: dict[str, dict]) -> list[str]:
    """Return what the machine was, and its load as each part began and ended."""
    lines = []
    for name, part in parts.items():
        one = part["machine"]
        bf16 = "computes in bf16" if one["computes_in_bf16"] else "has no bf16: fp32 on all sides"
        amx = {True: ", AMX", False: ", no AMX"}.get(one.get("amx"), "")
        lines.append(
            f"- {name}: {one['cpu']}, {one['cores']} cores, {bf16}{amx}; load {one['load'][0]} before, "
            f"{one['load_after'][0]} after; {part['options']['rows']} rows, {part['options']['seeds']} seeds, "
            f"{part['options']['rounds']} rounds; took {part['took']:.0f} s{_code(one)}"
        )
    return lines


def _code(machine: dict) -> str:
    """Return the version of Thaw and of the libraries that were measured, where the record has them."""
    libraries = [f"{name} {version}" for name, version in machine.get("libraries", {}).items()]
    return "; " + ", ".join([f"Thaw {machine['thaw']}", *libraries]) if libraries else ""


def number(value: float | None) -> str:
    """Return a number to three digits."""
    return "" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
