"""Find the strategy to take without training all: probes first, then what may gain most, as long as it may.

thaw advise reviews.csv                                your labelled texts: writes reviews.yaml and goes on from it
thaw advise reviews.csv --text body --label stars      where names and values leave several columns
thaw advise reviews.csv --label mood topic             a task for each column; they share the encoder's stored states
thaw advise train.csv test.csv                         files that are a split each
thaw advise hub:owner/name                             a data set on the Hugging Face Hub
thaw advise reviews.csv --encoder bert_base_uncased    another encoder than minilm; also owner/name of the Hub
thaw advise reviews.csv --time 10m                     starts no training that would not fit
thaw advise my.yaml --config data_dir=path/to/data     an experiment

Any file will do that `thaw new task` takes. A second call on it goes on from the experiment that the first one wrote.
Without a file it advises on the only experiment in this folder, else on its config/config.yaml, else on the demo.
Further options are Snakemake's own, as --cores 4.

First come the baselines and the strategies that fit a head on the frozen encoder. Then comes, each time, the strategy
that may gain most, with one seed. With an unknown encoder all run, the cheapest first. A run that may gain less than
0.1 points on average is not made. Nor is one that may gain less than `price_weight` asks for its seconds. The answer is
that of the report on the same runs (docs/explanation/decision.md). What was trained stays, and `thaw run` continues
from it with further seeds.
"""

import argparse
import contextlib
import io
import itertools
import json
import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from thaw.cli import export_command
from thaw.cli.new_command import HUB, draft_options, experiment_of, with_draft_options
from thaw.cli.run_command import ready_for_jobs, run_in_subprocess, threads_of_jobs_here
from thaw.cli.selection import given_plan, parser_of
from thaw.core import lasting_servers, layout
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.home import HOME
from thaw.data.file_profile import SUFFIXES
from thaw.decision import prior, record
from thaw.decision.arms import arm_name
from thaw.decision.record import ADVISED, TaskAnswer
from thaw.decision.stops import gain_of_unseen, has_to_gain
from thaw.declarations.outputs import ADVISING
from thaw.declarations.splits import shown_split, splits_of
from thaw.declarations.task_types import PAIR_TYPES
from thaw.planning import pending_runs
from thaw.planning.pending_runs import Pace, PendingRun
from thaw.planning.plan import Plan
from thaw.planning.run_plan import RunPlan
from thaw.words import answer_text, wording

REPLAYED = "`thaw advise`"  # an entry of config/replay.json, which scripts/replay.py writes


def _given(words: list[str]) -> tuple[argparse.Namespace, tuple[Plan, argparse.Namespace, list[str]]]:
    """Return its own options, and what `given_plan` returns: of a file of texts the experiment on it."""
    parser = parser_of("advise", __doc__)
    parser.add_argument("--time", metavar="10m", help="train nothing that would not fit into this time")
    with_draft_options(parser.add_argument_group("the first look at a file of labelled texts"))
    parser.add_argument("--encoder", metavar="ID", help="an id of `thaw list encoders`, owner/name, or a folder")
    parser.add_argument("--export", type=Path, metavar="DIR", help="write the model that is taken, as `thaw export`")
    own, _ = parser.parse_known_args(words)
    if own.export:
        from thaw.exporting.finished_run import require_new  # imports torch

        require_new(own.export)
    own.limit = pending_runs.seconds_of(own.time) if own.time else None
    if files := [*itertools.takewhile(_is_data, words)]:
        own.source, own.further, own.encoders = files[0], files[1:], [own.encoder or "minilm"]
        own.config = own.revision = None  # of a data set on the Hub
        words = [str(experiment_of(own)), *words[len(files) :]]
    elif options := draft_options(own):
        raise UserError(f"{options[0]}: is for a file of labelled texts, which comes first, as thaw advise reviews.csv")
    return own, given_plan("advise", parser, words)


def main(words: list[str]) -> None:
    """Train what may change the answer, print each score as it comes, and write the answers of all tasks."""
    own, (plan, given, further) = _given(lasting_servers.refuse(words))
    name = plan.name
    folder = Path(plan.results) / Path(layout.folder("report", {"experiment": name}))
    log = folder / "advise.log"
    folder.mkdir(parents=True, exist_ok=True)
    begin, pace, scores = time.monotonic(), None, Scores(plan, name)
    tried: set = set()
    targets = _first(plan)
    print(f"{log} says what is done", flush=True)
    ready_for_jobs(threads_of_jobs_here({"compute": {"threads": plan.threads}}, further), ("outputs", "models"))
    code = 0
    made: list = []
    chosen: list = []
    waiting: list[Waiting] = []
    weight = advice_spec(plan, name).get("price_weight", 0.0)
    while targets:
        started = time.monotonic()
        with open(log, "ab") as file:
            code = run_in_subprocess(given, further, targets, file, partial(scores.print_new, targets)) or code
        if pace:
            pace.learn(chosen, time.monotonic() - started)
        made = current_answers(plan, name)
        if not made:
            break
        scores.print_new(targets, made)
        pace = pace or Pace(plan)  # it times this machine, for half a second
        turns = [turn for turn in pending_runs.pending_runs(plan) if turn.run.folder not in tried]
        left = None if own.limit is None else own.limit - (time.monotonic() - begin)
        waiting = [waiting_run(plan, turn, made, pace, weight) for turn in turns]
        chosen = next_turns(waiting, left)
        rest = [one.seconds for one in waiting if one.gain >= one.least]
        if chosen:
            needed = wording.seconds(min(sum(rest), math.inf if left is None else left))
            print(f"{needed} left at most, for {wording.plural(len(rest), 'more training')}", flush=True)
        tried |= {turn.run.folder for turn in chosen}
        targets = [plan.result(turn.run.folder) for turn in chosen]
    if not made:
        raise UserError(f"no run could be made; {log} says why")
    record.write(folder / ADVISED, made)
    stops = _stops(waiting, made, advice_spec(plan, name)["labels"], f"thaw run {' '.join(given.configfile)}")
    parts = [*map(answer_text.in_terminal, made), *(["\n".join(stops)] if stops else [])]
    print("\n" + "\n\n".join([*parts, answer_text.replayed(_replay())]), flush=True)
    (page,) = plan.files("report", name)
    trained = {run.seed for run in plan.runs if run.step == "train" and plan.status.is_there(run)}
    seeds = f"seeds={sorted(trained) or plan.experiment.seeds[:1]}"  # the page is about these alone
    partly = argparse.Namespace(configfile=given.configfile, config=[*given.config, seeds, "allow_missing=true"])
    whole = Path(page).exists() and all(map(plan.status.is_there, plan.runs))  # as after `thaw run`
    with open(log, "ab") as file:
        if whole or not run_in_subprocess(partly, further, [page], file):
            print(f"report: {page}", flush=True)
    if code:
        raise UserError(f"some runs failed; {log} says why, and the answer is about those that are there")
    if given.export and any(answer.decision.answer.encoder for answer in made):
        export_command.main([given.configfile[0], str(given.export)])
    elif given.export:
        raise UserError(
            f"{given.export} is not written: no encoder is taken; name a run below {plan.results}/runs to thaw export"
        )


class Scores:
    """The scores of an experiment, each of which is printed once, as soon as it is there."""

    def __init__(self, plan: Plan, name: str):
        self.plan, self.name = plan, name
        self.labels, self.there = advice_spec(plan, name)["labels"], 0
        named = [wording.strategy_name(self.labels, run.strategy, run.variant) for run in plan.shown]
        titles = [wording.task_name(self.labels, run.task) for run in plan.shown]
        self.width = max(map(len, titles)) + max(map(len, [*named, *wording.BASELINE_LABELS.values()])) + 2
        self.said: set[tuple] = set()

    def print_new(self, targets: list[str], made: list[TaskAnswer] | None = None) -> None:
        """Print what came since the last look. Args: what is being made; the answers, if they are known already."""
        before, self.there = self.there, sum(Path(file).exists() for file in targets)
        if made is None and self.there == before:
            return
        for step, key in self.plan.extra_results.values():
            if step == "baseline" and self.plan.status.is_current(step, key):
                self._print_baseline(read_json(self.plan.files(step, key)[0]))
        with contextlib.suppress(UserError):  # what is wrong is said once all have ended
            for answer in made or current_answers(self.plan, self.name):
                for arm in answer.decision.arms:
                    if arm.encoder:
                        self._print(answer.title, answer.names[arm.name], answer_text.scored(arm))

    def _print_baseline(self, record: dict) -> None:
        """Print the score of a baseline, as that of an arm, before any run is there."""
        name, task, subset = (record["spec"][part] for part in ("baseline", "task", "subset"))
        task = splits_of(task, subset)
        title = wording.task_name(self.labels, task["id"])
        title += f" ({wording.SYNTHETIC})" * read_json(self.plan.files("prepare", task["corpus"])[0])["synthetic"]
        known = record["folds"]["scores"] if "folds" in record else record["scores"][shown_split(task, "validation")]
        score = known[task["metrics"][0]]
        self._print(title, wording.BASELINE_LABELS[name], answer_text.number(100 * (score or 0.0)))

    def _print(self, title: str, name: str, said: str) -> None:
        """Print a line of a score unless it was printed: its price changes with those who share an extraction."""
        if (key := (title, name, said.partition(",")[0])) not in self.said:
            self.said.add(key)
            print(f"{f'{title}: {name}':{self.width}} {said}", flush=True)


def _is_data(word: str) -> bool:
    """Return whether a word names labelled texts, there or not; JSON does, if it is no experiment."""
    path = Path(word)
    if path.suffix == ".json" and path.is_file():
        try:
            content = json.loads(path.read_bytes())
        except ValueError:
            return True  # a record a line
        return isinstance(content, list) or "data" in content  # as SQuAD's
    of_data = Path(word.removesuffix(".gz")).suffix in {*SUFFIXES, ".txt"} and path.suffix != ".json"
    of_data |= word.startswith(HUB) or path.exists() and path.suffix not in (".yaml", ".yml")
    return of_data and not word.startswith("-")


def _replay() -> dict[str, float]:
    """Return what the decision lost where it was replayed, by the columns of that table."""
    (line,) = (line for line in read_json(HOME / "config/replay.json") if line["rule"] == REPLAYED)
    return {name: line[name] for name in ("test", "reserved", "tried")}


@dataclass(frozen=True)
class Waiting:
    """The run of a cell that is not there: the points that it may gain and has to gain, and its seconds."""

    turn: PendingRun
    gain: float
    least: float
    seconds: float


def waiting_run(plan: Plan, turn: PendingRun, made: list[TaskAnswer], pace: Pace, weight: float) -> Waiting:
    """Return what a run may gain and has to gain. Args: see `gain_of`; seconds of a run; the key `price_weight`."""
    seconds = pace.seconds(turn.operations)
    return Waiting(turn, gain_of(plan, turn.run, made), has_to_gain(weight, seconds), seconds)


def next_turns(waiting: list[Waiting], left: float | None) -> list[PendingRun]:
    """Return what is trained next: of each group the run that may gain most, of those that have a reason and fit.

    Of equal gains it is the first. Args: the next run of each cell, cheap first; seconds left, None without a limit.
    """
    chosen: dict[tuple, Waiting] = {}
    for one in waiting:
        known = chosen.get(one.turn.group)
        if one.gain >= one.least and (left is None or one.seconds <= left) and (known is None or one.gain > known.gain):
            chosen[one.turn.group] = one
    fitting, spent = [], 0.0
    for one in chosen.values():
        if left is None or spent + one.seconds <= left:
            fitting.append(one.turn)
            spent += one.seconds
    return fitting


def _stops(waiting: list[Waiting], made: list[TaskAnswer], labels: dict, command: str) -> list[str]:
    """Return a sentence for each answer and reason on what was not run. Args: the last runs that were waiting."""
    lines = []
    for answer in made:
        group = (answer.task, answer.subset, answer.encoder, answer.head)
        dear, late = [], []
        for one in (one for one in waiting if one.turn.group == group):
            name = wording.strategy_name(labels, one.turn.run.strategy, one.turn.run.variant)
            if one.gain < one.least:
                dear.append((name, one.gain, one.least))
            else:
                late.append((name, one.seconds))
        lines += answer_text.not_run(answer, dear, late, command)
    return lines


def _first(plan: Plan) -> list[str]:
    """Return what is made first: baselines that train no encoder, and the runs that fit a head to convergence."""
    baselines = [key for step, key in plan.extra_results.values() if step == "baseline"]
    files = [file for key in baselines for file in plan.files("baseline", key)]
    fitted = [run for run in plan.shown if plan.job(run.step, run.key).fits_to_convergence]
    return files + [plan.result(run.folder) for run in fitted or plan.shown[:1]]


def current_answers(plan: Plan, name: str) -> list[TaskAnswer]:
    """Return the answers of an experiment by what is there, as its table of recommendations would have them.

    None where no run is there.
    """
    import pandas

    from thaw.outputs.frame import collection, task_arms
    from thaw.outputs.frame.output_data import OutputData
    from thaw.outputs.frame.runs_frame import COLUMNS, read_runs

    try:
        of_what_is_there = {"missing": True, "stale": plan.status.stale()}
        rows = collection.rows(plan.status.spec("collect", plan.name) | of_what_is_there, plan.results, "logs")
    except UserError:  # no run has a result yet
        return []
    table = io.StringIO(pandas.DataFrame(rows, columns=COLUMNS).to_csv(index=False))
    spec = advice_spec(plan, name)
    data = OutputData(Path(plan.results), read_runs(table), first=spec.get("first_draws"))
    return task_arms.answers(data, spec)


def gain_of(plan: Plan, run: RunPlan, made: list[TaskAnswer]) -> float:
    """Return the points that the run of a strategy that was not tried may gain on average.

    It is infinite for a head on the frozen encoder, by which nobody loses, and where nothing is known. So without a
    prior for the encoder and the type of task every strategy runs once. Args: the answers by what is there.
    """
    group = (run.task, run.subset, run.encoder, run.head)
    answer = next((one for one in made if (one.task, one.subset, one.encoder, one.head) == group), None)
    if answer is None or run.step == "fit_heads":
        return math.inf
    task_type = plan.catalogue.get("tasks", run.task, "tasks").type
    if not prior.is_measured(run.encoder, task_type):
        return math.inf
    trains_layers, name = plan.job(run.step, run.key).trains_layers, arm_name(run.strategy, run.variant)
    gain = prior.expected(run.encoder, task_type, name, trains_layers)
    return gain_of_unseen(answer.decision, gain, run.read_as if task_type in PAIR_TYPES else "")


def advice_spec(plan: Plan, name: str) -> dict:
    """Return what is read of the spec of the experiment's table of recommendations; without one that of its report."""
    report = plan.job("report", name).spec
    ids = [output["id"] for output in report["outputs"] if output["kind"] in ADVISING]
    return plan.job("table", f"{name}/{ids[0]}").spec if ids else {key: report[key] for key in ("labels", "order")}
