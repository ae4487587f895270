"""checklist.md: what Thaw knows of the questions that ACL's Responsible NLP checklist and NeurIPS' checklist ask."""

from thaw.data.carving import FEW_ROWS
from thaw.declarations.chosen import CHOSEN
from thaw.declarations.task_types import PAIR_TYPES
from thaw.outputs import wording
from thaw.schema.strategy import StrategyConfig

OPEN = "Thaw does not know: answer it yourself."


def checklist(content: dict, command: str) -> str:
    """Return the answers as Markdown. Args: what `report_page.content` returns; the command of the workflow."""
    spec, counts, tasks = content["spec"], content["counts"], content["tasks"]
    searched = sorted(
        {id for id, entry in spec["strategies"].items() if entry.get("search") or entry.get("rates_from")}
    )
    names = [wording.label(spec["labels"], "strategies", id) for id in searched]
    licences = [f"{task['label']}: {task['licence']}" for task in tasks]
    licences += [f"{encoder['label']}: {encoder['licence']}" for encoder in content["encoders"]]
    questions = {
        "Do you cite the creators of what you used? (ACL B1, NeurIPS: existing assets)": [
            f"references.bib in this folder has {wording.plural(len(content['references']), 'entry', 'entries')}; "
            "paper.tex cites them.",
        ],
        "Do you discuss the licence of data and models? (ACL B2, NeurIPS: licences)": licences,
        "Is your use consistent with their intended use? (ACL B3)": [OPEN],
        "Do the data contain personal or offensive content? (ACL B4)": [
            f"{OPEN} SYNTHETIC data are written by Thaw's own grammar: {wording.listing(content['synthetic_tasks'])}."
            if content["synthetic_tasks"]
            else OPEN
        ],
        "What are the sizes of the splits? (ACL B6)": [_sizes(task) for task in tasks],
        "How many parameters, what computing budget and infrastructure? (ACL C1, NeurIPS: compute resources)": [
            *(f"{encoder['label']}: {encoder['text'] or 'not fetched'}" for encoder in content["encoders"]),
            *(f"{what}: {' and '.join(values)}" for what, values in content["values"].items() if "machine" in what),
            f"{wording.plural(counts['runs'], 'run')}: {wording.seconds(content['extraction']['training'])} of "
            f"training and {wording.seconds(content['extraction']['seconds'])} of feature extraction. Not counted: "
            f"{counts['preparatory']} preparatory runs, and runs that were thrown away.",
        ],
        "What is the set-up, what the hyperparameter search and the best values? (ACL C2, NeurIPS: settings)": [
            "Settings of each strategy: section Setup of report.html and paper.tex.",
            f"Settings chosen by search: {wording.listing(names)}."
            if names
            else "No learning rate or batch size is searched.",
            *_tried(spec),
            f"All other settings were fixed beforehand. {content['choices']}",
        ],
        "Do you report error bars and descriptive statistics? (ACL C3, NeurIPS: statistical significance)": [
            _error_bars(counts, content["draws"]),
            "Differences: one simultaneous 95 % interval for each table (max-|t|), and no test.",
        ],
        "Which versions of packages, which parameters of metrics? (ACL C4)": [
            *(f"{what} {' and '.join(values)}" for what, values in content["values"].items() if _is_version(what)),
        ],
        "Can the results be reproduced? (NeurIPS: reproducibility)": [
            f"`{command.removesuffix(' --')}`, with Thaw {content['release']}. "
            "Each run's folder has its spec, seed and digest.",
        ],
        "Do you release code and data? Do you discuss limitations, risks, and the use of AI assistants?": [OPEN],
    }
    lines = [
        f"# {spec['title']}: checklist",
        "",
        "Written by Thaw from the records of the experiment; check each answer.",
    ]
    for question, answer in questions.items():
        lines += ["", f"## {question}", "", *(f"- {line}" for line in answer)]
    return "\n".join(lines) + "\n"


def _error_bars(counts: dict, draws: list[str]) -> str:
    """Return over what means are and what is printed with them. Args: the report's counts; its notes on draws."""
    fewest, most = counts["fewest"], counts["most"]
    numbers = "" if draws else f" ({', '.join(map(str, counts['seeds']))})"
    spread = ", standard deviation (n − 1)" + " from 3 on" * (fewest < 3) if most > 2 else ""
    over = wording.seed_range(fewest, most, counts["unit"])
    text = f"Means over {over}{numbers}{spread}, 95 % CI ({wording.ci_over(fewest, most)})."
    return " ".join([text, *draws])


def _tried(spec: dict) -> list[str]:
    """Return what validation chooses within a run, and in the runs of which strategies."""
    pairs = any(task["type"] in PAIR_TYPES for task in spec["tasks"].values())
    deepest = max((encoder["layers"] for encoder in spec["encoders"].values()), default=0)
    chosen: dict[str, list[str]] = {}
    for id, entry in spec["strategies"].items():
        strategy = StrategyConfig.model_validate(entry)
        of_run = {"end": strategy.ends_by_validation, "rate": strategy.rate_by_validation}
        name, folds = wording.label(spec["labels"], "strategies", id), strategy.phases[0].folds
        name += f" (below {FEW_ROWS:,} rows by {folds}-fold cross-validation)" if folds else ""
        for what in [*strategy.tried_on_validation(pairs, deepest), *(name for name, does in of_run.items() if does)]:
            chosen.setdefault(what, []).append(name)
    return [
        f"{CHOSEN[what].subject} is chosen on validation: {wording.listing(names)}." for what, names in chosen.items()
    ]


def _sizes(task: dict) -> str:
    if not task["prepared"]:
        return f"{task['label']}: not prepared"
    held = " (held out from train)" if task["carved"] else ""
    tests = ", ".join(wording.count(rows) for rows in task["test"])
    train, validation = wording.count(task["train"]), wording.count(task["validation"])
    return f"{task['label']}: train {train}, validation {validation}{held}, test {tests}"


def _is_version(what: str) -> bool:
    return "machine" not in what and what not in ("precision", "protocol")
