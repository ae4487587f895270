"""The workflow as a user meets it: a small run of all rules, the rerun table, dry runs, lint and format."""

import html
import json
import re
import shlex
import shutil
import subprocess

import pytest
import yaml

import forked
import one_answer
from test_papers import PAPERS
from thaw.core.steps import STEPS
from thaw.planning.configuration import load_plan, read_config
from thaw.words import wording
from tiny import tiny_encoder
from workflow import HOME, Workplace

SHOWN = {"table": 1, "figure": 1, "report": 1}
REDRAWN = {"collect": 1, **SHOWN}
LITTLE = {"tasks": ["colour"], "outputs": ["main_table"]}  # of an experiment that is run here


METRIC = """def kept(gold, predicted):
    '''Return the share of equal predictions, by a function of one's own.'''
    return sum(g == p for g, p in zip(gold, predicted)) / len(gold) if len(gold) else float("nan")
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory, servers) -> Workplace:
    """A workplace whose experiment has run to its end, with an own metric."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    place.files["my/my_metrics.py"] = METRIC
    place.files["my/tasks.yaml"]["tasks"]["colour"]["metrics"].append("my_metrics:kept")
    for name, content in place.files.items():
        place.write(name, content)
    place.printed = place.snakemake()
    place.servers = servers  # Snakemake's own forked the jobs of that run
    return place


@pytest.fixture
def place(finished):
    """The finished workplace; its own files are as they were again after the test."""
    yield finished
    for name, content in finished.files.items():
        finished.write(name, content)


def altered(place: Workplace, name: str, change) -> None:
    """Write a workplace's file after `change(content)`."""
    content = yaml.safe_load(yaml.safe_dump(place.files[name]))
    change(content)
    place.write(name, content)


def test_every_rule_ran_and_the_results_lie_where_the_legend_says(place):
    results = place.folder / "results"
    run = results / "runs/colour/all/tiny/linear/short_top/k01/seed1"
    for name in ("metrics.json", "cost.json", "history.csv", "predictions.parquet", "head.safetensors"):
        assert (run / name).is_file()
    for name in ("runs.csv", "report.html", "tables/main_table.tex", "figures/layers.pdf"):
        assert (results / "outputs/mine" / name).stat().st_size > 0
    assert json.loads((run / "metrics.json").read_text())["scores"]["test"]["accuracy"] is not None


def test_one_encoder_pass_a_split_serves_all_tasks_and_strategies(place):
    passes = [line for line in place.printed.splitlines() if "encoder pass:" in line]
    assert len(passes) == 3, passes


def test_an_own_metric_stands_beside_the_others(place):
    run = place.folder / "results/runs/colour/all/tiny/linear/linear_probe/base/seed1"
    scores = json.loads((run / "metrics.json").read_text())["scores"]["test"]
    assert scores["my_metrics:kept"] == scores["accuracy"]


def test_a_run_speaks_in_lines_of_its_own_and_ends_with_where_the_report_is(place):
    """Steps say whose each line is, one line counts all jobs, and Snakemake is silent on jobs that go well."""
    # no ^ and $: several processes write to one pipe, so that a line may follow another's on the same line
    epoch = r"[\d:]{8} \[train weight/all/tiny/linear/short_top/k01/seed1\] epoch 1 of 1: loss [\d.]+"
    assert re.search(epoch, place.printed)
    result = r"[\d:]{8} \[train colour/all/tiny/linear/short_stack/base/seed1\] test accuracy [\d.]+, [\d.]+ s"
    assert re.search(result, place.printed)
    spoken = [line for line in place.printed.splitlines() if re.search(r"/seed\d\] (epoch|test) ", line)]
    whole = [line for line in spoken if re.fullmatch(r"[\d:]{8} \[[\w /]+/seed\d\] (epoch|test) .*", line)]
    assert len(whole) >= len(spoken) - 1 > 1
    # a run of less than 15 seconds does not say how long it will take
    assert re.search(r"^\d+ of \d+ jobs(, about \d+ (s|min) left)?$", place.printed, re.M)
    assert "\nreport: results/outputs/mine/report.html\n" in place.printed
    assert not re.search(r"^(Job \d|Finished job|Reason:|Select jobs)", place.printed, re.M)


def test_a_step_is_one_rule_of_its_name_in_snakemakes_options(place):
    """A second encoder has a store of its own; the seeds of a cell are a run each, of which some keep their encoder."""
    tiny = place.files["my/encoders.yaml"]["encoders"]["tiny"]
    altered(place, "my/encoders.yaml", lambda c: c["encoders"].update(second=tiny))
    altered(place, "my/strategies.yaml", lambda c: c["strategies"]["short_full"].update(keep=True))
    chosen = {"encoders": ["tiny", "second"], "strategies": ["linear_probe", "short_full"], "seeds": [1, 2]}
    place.write("two.yaml", place.experiment("two", tasks=["colour"], baselines=[], outputs=["main_table"], **chosen))

    def planned(*options: str) -> dict[str, int]:
        return place.planned("two.yaml", *options)

    before = {"fetch": 1, "features": 1, "fit_heads": 2}
    whole = before | {"train": 4, "collect": 1, "table": 1, "report": 1}
    assert planned() == whole
    assert planned("-R", "features") == whole | {"features": 2}
    assert planned("--until", "features") == {"fetch": 1, "features": 1}
    assert planned("--until", "train") == {"fetch": 1, "features": 1, "train": 4}
    assert planned("--omit-from", "train") == before
    assert planned("--omit-from", "features") == {"fetch": 1}
    show = f'include: "{HOME}/Snakefile"\nfor name in ("train", "features"):\n    '
    place.write("show.smk", show + 'print("asks", name, workflow.get_rule(name).resources["mem_mb"]._value)\n')
    asked = ["--set-resources", "train:mem_mb=12345", "features:mem_mb=54321"]
    printed = place.checked("--snakefile", "show.smk", "--dry-run", *asked, config="two.yaml")
    assert "asks train 12345\nasks features 54321\n" in printed
    # finished runs: those of the rule that is named are made again, and what shows them
    assert place.planned("mine.yaml", "-R", "train") == {"train": 4, **REDRAWN}
    assert place.planned("mine.yaml", "-R", "features") == {"features": 1}
    assert place.planned("mine.yaml", "-R", "train", "--until", "train") == {"train": 4}


def test_a_run_whose_folder_was_deleted_is_made_again(place):
    folder = next(place.folder.glob("results/runs/colour/*/*/*/short_top/k01/seed1"))
    folder.rename(place.folder / "aside")
    planned = place.planned()
    (place.folder / "aside").rename(folder)
    assert planned == {"train": 1, **REDRAWN} and place.planned() == {}


def commands(place: Workplace) -> dict[str, str]:
    """Return the command of each number of the report's main table, by cell: task and row."""
    page = (place.folder / "results/outputs/mine/report.html").read_text()
    shown = json.loads(re.search(r'<script type="application/json" id="commands">(.*?)</script>', page, re.DOTALL)[1])
    found = {}
    table = re.search(r'<figure class="table" id="main_table".*?</figure>', page, re.DOTALL)[0]
    for head, row in re.findall(r'<th scope="row"[^>]*>(.*?)</th>(.*?)</tr>', table, re.DOTALL):
        name = html.unescape(re.sub(r"<.*?>", "", head)).replace("\N{NO-BREAK SPACE}", " ")
        for anchor in map(html.unescape, re.findall(r'href="runs.html#(.*?)"', row)):
            if anchor in shown["files"]:
                task = anchor.partition(".")[0]
                found[f"{task}, {name}"] = f"{shown['command']} {shown['files'][anchor]}"
    return found


def printed(place: Workplace, name: str) -> str:
    """Return what a cell of the table says. Args: task, which is the head of its column, and row."""
    task, row = name.split(", ", 1)
    lines = (place.folder / "results/outputs/mine/tables/main_table.md").read_text().replace("\\_", "_").splitlines()
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    column = next(place for place, head in enumerate(rows[0]) if head.startswith(f"{task}<br>"))
    return next(cells[column] for cells in rows if cells[0] == row)


def check_rebuilding(place: Workplace, name: str) -> None:
    """Put the runs of a cell aside, make them by its command, and compare: records to the byte, and what is printed."""
    command = commands(place)[name]
    files = [place.folder / file for file in shlex.split(command.partition(" -- ")[2])]
    for file in files:
        file.parent.rename(file.parent.with_suffix(".aside"))
    subprocess.run(["bash", "-c", command], cwd=place.folder, env=place.environment, capture_output=True, check=True)
    scores = []
    for file in files:
        aside = file.parent.with_suffix(".aside")
        assert file.read_bytes() == (aside / file.name).read_bytes()
        record = json.loads(file.read_text())
        scores.append(record["scores"]["test"][record["spec"]["task"]["metrics"][0]])
        shutil.rmtree(file.parent)
        aside.rename(file.parent)
    assert printed(place, name).startswith(wording.number(100 * sum(scores) / len(scores)))


def test_a_cell_is_made_again_by_the_command_that_the_report_shows_for_its_number(place):
    check_rebuilding(place, "weight, short_stack")
    assert place.planned() == {}


def test_all_who_are_asked_about_finished_runs_give_one_answer(place):
    place.write("asked.yaml", place.experiment("asked", tasks=["colour"], outputs=["advice"]))
    place.checked(config="asked.yaml")
    card = one_answer.check(place.folder, "asked", "asked.yaml", "--cores", "2", environment=place.environment)
    assert "once more on 68 rows (48 of train and 20 of validation)" in card


def commented(place: Workplace) -> None:
    text = yaml.safe_dump(place.files["my/strategies.yaml"], sort_keys=False)
    place.write("my/strategies.yaml", "# a remark\n" + text + "\n# another\n")


def touched(place: Workplace) -> None:
    for path in [*place.folder.glob("data/*.csv"), *place.folder.glob("results/*/**/*.json")]:
        path.touch()


def phases_say(*strategies: str, **said):
    """Return a change of what strategies say of their phase."""

    def change(place: Workplace) -> None:
        def say(content: dict) -> None:
            for name in strategies:
                content["strategies"][name]["phases"][0].update(said)

        altered(place, "my/strategies.yaml", say)

    return change


def selects(**said):
    """Return a change of what the experiment selects."""
    return lambda place: place.write("mine.yaml", place.experiment("mine", **said))


FEWER = ["linear_probe", {"short_top": [1]}]
RERUNS = {  # what is changed: how, and the jobs that it plans
    "nothing": (lambda place: None, {}),
    "a comment": (commented, {}),
    "the order of keys": (
        lambda place: place.write("my/strategies.yaml", yaml.safe_dump(place.files["my/strategies.yaml"])),
        {},
    ),
    "a default that is written": (phases_say("short_full", "short_top", batch_size=32), {}),
    "times of files": (touched, {}),
    "a label": (
        lambda place: altered(
            place, "my/strategies.yaml", lambda c: c["strategies"]["short_top"].update(label="Highest")
        ),
        SHOWN,
    ),
    "fewer strategies": (selects(strategies=FEWER), REDRAWN),
    # frozen heads of all seeds are one job of seconds; the trained runs of seed 1 stay
    "one more seed": (selects(seeds=[1, 2]), {"fit_heads": 2, "train": 4, **REDRAWN}),
    "one more strategy": (selects(strategies=[*FEWER, "short_stack", "short_full"]), {"train": 2, **REDRAWN}),
    "one more k": (
        selects(strategies=["linear_probe", {"short_top": [1, 2]}, "short_stack"]),
        {"features": 1, "train": 2, **REDRAWN},
    ),
    "a rate": (phases_say("short_top", rate=2e-3), {"train": 2, **REDRAWN}),
    "a part of one's own": (
        lambda place: place.write("my/my_metrics.py", METRIC + "# a remark\n"),
        {"fit_heads": 1, "train": 2, "baseline": 1, **REDRAWN},
    ),
}


@pytest.mark.parametrize("change", RERUNS)
def test_a_change_makes_again_what_depends_on_it_and_nothing_else(place, change):
    make, expected = RERUNS[change]
    make(place)
    assert place.planned() == expected


def test_as_many_trainings_run_at_a_time_as_the_memory_of_a_gpu_holds(place):
    """Of three two. The memory is pretended: each asks for little more than 1,000 MiB, and computes on the CPU."""
    place.write("shares.yaml", place.experiment("shares", strategies=["short_full"], seeds=[71, 72, 73], **LITTLE))
    place.checked("--cores", "3", "--resources", "gpu_mb=2500", "--until", "train", config="shares.yaml")
    files = (path for path in (place.folder / ".snakemake/metadata").rglob("*") if path.is_file())
    records = (json.loads(path.read_text()) for path in files)
    jobs = {str(one["log"]): one for one in records if "seed7" in str(one["log"])}
    spans = [(one["starttime"], one["endtime"]) for one in jobs.values()]
    assert len(spans) == 3
    assert max(sum(begin <= start < end for begin, end in spans) for start, _ in spans) == 2


def test_a_search_over_heads_is_one_job_and_their_seeds_another(place):
    phases = {"phases": [{"train": ["head"], "rate": 1e-3, "epochs": 1}]}
    search = {"search": {"grid": {"rate": [1e-3, 1e-2]}, "seeds": [1, 2]}}
    altered(place, "my/strategies.yaml", lambda c: c["strategies"].update(tried=phases | search))
    place.write("my/heads.yaml", {"heads": {"small": {"kind": "bilstm", "options": {"size": 4, "layers": 1}}}})
    chosen = {"strategies": ["tried"], "heads": ["linear", "small"], "tasks": ["colour"], "outputs": ["main_table"]}
    place.write("tried.yaml", place.experiment("tried", seeds=[1, 2, 3], **chosen))
    once = {"collect": 1, "table": 1, "report": 1}
    assert place.planned("tried.yaml") == {"search_heads": 1, "fit_heads": 1, "train": 4 + 3, "select": 1, **once}
    (place.folder / "my/heads.yaml").unlink()


def test_a_changed_corpus_runs_everything_that_reads_it(place):
    original = (place.folder / "data/test.csv").read_text()
    (place.folder / "data/test.csv").write_text(original + "the old river number 999,dull,1.0\n")
    planned = place.planned()
    (place.folder / "data/test.csv").write_text(original)
    assert planned == {"prepare": 1, "features": 1, "fit_heads": 2, "train": 4, "baseline": 2, **REDRAWN}


def test_a_result_of_an_older_version_is_finished_and_a_changed_setting_still_makes_it_again(place, tmp_path):
    """Its folder was not declared: Snakemake has no record of it. Nor is a file missed that no job names."""
    card, lost, records = "results/data/things/card.json", "results/data/things/test.parquet", ".snakemake/metadata"
    shutil.copytree(place.folder / records, tmp_path / "records")
    place.checked("--cleanup-metadata", "results/data/things")
    (place.folder / lost).rename(tmp_path / "lost")
    assert "Nothing to be done" in place.checked("--dry-run", card)
    altered(place, "my/tasks.yaml", lambda c: c["corpora"]["things"]["files"].update(quoting="none"))
    assert "params have changed since last execution" in place.checked("--dry-run", card).lower()
    (tmp_path / "lost").rename(place.folder / lost)
    shutil.copytree(tmp_path / "records", place.folder / records, dirs_exist_ok=True)


@pytest.mark.slow
def test_freed_payloads_are_made_again_only_for_who_reads_them(place):
    before = {path: path.stat().st_mtime_ns for path in place.folder.glob("results/runs/**/metrics.json")}
    for payload in place.folder.glob("results/features/**/*.safetensors"):
        payload.unlink()
    assert place.planned() == {}
    strategies = ["linear_probe", {"short_top": [1]}, "short_stack", {"again": [1]}]
    altered(
        place,
        "my/strategies.yaml",
        lambda c: c["strategies"].update(again={"sweep": {"k": [1]}, **_one_epoch("head", {"top": "k"})}),
    )
    place.write("mine.yaml", place.experiment("mine", strategies=strategies, **LITTLE))
    place.checked()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    names = {path.name for path in place.folder.glob("results/features/**/*.safetensors")}
    assert names == {"b2.safetensors"}


@pytest.mark.slow
def test_a_store_is_freed_when_all_that_read_it_are_done(place):
    made = {path: path.stat().st_mtime_ns for path in place.folder.glob("results/runs/**/metrics.json")}
    strategies = ["linear_probe", {"short_top": [2]}]
    place.write("mine.yaml", place.experiment("mine", store={"free": True}, strategies=strategies, **LITTLE))
    place.checked()
    assert not list(place.folder.glob("results/features/**/b*.safetensors")) and place.planned() == {}
    assert list(place.folder.glob("results/features/tiny/things/*/freed"))
    assert {path: path.stat().st_mtime_ns for path in made} == made


def _one_epoch(*selectors) -> dict:
    return {"phases": [{"train": list(selectors), "rate": 2e-3, "epochs": 1}]}


def test_strategies_that_start_from_one_further_pretraining_share_it(place):
    altered(place, "my/encoders.yaml", lambda c: c.update(further_pretraining={"text": {"phase": {"epochs": 1}}}))
    more = {"mlm_full": {"from": "text", **_one_epoch("all")}, "mlm_head": {"from": "text", **_one_epoch("head")}}
    altered(place, "my/strategies.yaml", lambda c: c["strategies"].update(more))
    place.write(
        "mine.yaml", place.experiment("mine", strategies=["linear_probe", {"short_top": [1]}, "short_stack", *more])
    )
    assert place.planned() == {"pretrain": 1, "features": 1, "train": 2, "fit_heads": 2, **REDRAWN}
    place.checked("--", "results/encoders/tiny.text.things/card.json")
    assert place.planned() == {"features": 1, "train": 2, "fit_heads": 2, **REDRAWN}


def test_two_experiments_in_turn_retrain_nothing(place):
    place.write(
        "other.yaml", place.experiment("other", strategies=["linear_probe", "short_full"], seeds=[1, 2], **LITTLE)
    )
    place.checked(config="other.yaml")
    assert {k: n for k, n in place.planned().items() if k not in REDRAWN} == {}
    assert place.planned("other.yaml") == {}


def test_when_a_run_fails_the_rest_is_drawn_and_a_later_run_completes_it(place):
    altered(place, "my/strategies.yaml", lambda c: c["strategies"].update(failing=_one_epoch("all")))
    place.write(
        "gap.yaml", place.experiment("gap", strategies=["linear_probe", {"short_top": [1]}, "failing"], **LITTLE)
    )
    run = place.folder / "results/runs/colour/all/tiny/linear/failing/base/seed1"
    (run / "encoder.safetensors").mkdir(parents=True)  # in the way of a file that the run removes
    folder = place.folder / "results/outputs/gap"
    printed = place.checked("--keep-going", config="gap.yaml", status=1)
    assert "error: Is a directory" in printed and not folder.exists()

    place.checked("--config", "allow_missing=true", config="gap.yaml")
    page, table = (folder / "report.html").read_text(), (folder / "tables/main_table.md").read_text()
    assert "train: Is a directory" in page and "2 of 3 runs are present" in page
    assert "| failing | ‡ |" in table and "‡ A run is missing" in table

    (run / "encoder.safetensors").rmdir()
    assert place.planned("gap.yaml") == {"train": 1, "collect": 1, "table": 1, "report": 1}


def test_a_mistake_in_the_data_fails_its_step_with_one_sentence(place):
    original = (place.folder / "data/test.csv").read_text()
    (place.folder / "data/test.csv").write_text(original + "the old river number 999,grey,1.0\n")
    printed = place.checked(status=1)
    (place.folder / "data/test.csv").write_text(original)
    assert "data/test.csv:22: column 'colour': label 'grey'" in printed
    assert "MissingOutputException" not in printed and "Traceback" not in printed
    assert (place.folder / "results/data/things/card.json").exists(), "what was prepared before is still there"


# each has jobs of a rule that those before it lack, or another form of them; tests/test_specs.py plans all experiments
EACH = "merge_small further_pretraining edge_probing head_ensemble intermediate_task students_small"
RUN_HERE = {"search_heads", "select"}  # by experiments of the workplace above
OTHERS = {path.stem for path in HOME.glob("config/experiments/*.yaml")} - {*EACH.split(), *PAPERS, "first"}
OTHERS.add("wang2019")  # the largest
EXPERIMENTS = ["config/config.yaml", *(f"config/experiments/{name}.yaml" for name in ("first", *EACH.split()))]
SLOW = [pytest.param(f"config/experiments/{name}.yaml", marks=pytest.mark.slow) for name in sorted(OTHERS)]


def test_these_experiments_have_jobs_of_every_rule(named_files, home):
    files = [str(home / experiment) for experiment in EXPERIMENTS]
    plans = [load_plan(read_config([name], {"data_dir": str(named_files)}), home) for name in files]
    assert {rule for plan in plans for rule, jobs in plan.jobs.items() if jobs} == set(STEPS) - RUN_HERE


@pytest.mark.parametrize("experiment", [*EXPERIMENTS, *SLOW])
def test_every_experiment_counts_its_jobs(experiment, tmp_path, named_files):
    data = named_files if "experiments/" in experiment else tmp_path
    command = ["snakemake", "--snakefile", HOME / "Snakefile", "--dry-run", "--quiet", "rules", "--cores", "2"]
    command += ["--configfile", HOME / experiment]
    done = forked.run([*command, "--config", f"data_dir={data}"], tmp_path)
    assert done.returncode == 0, done.stderr
    listed = done.stdout + done.stderr
    assert "Job stats" in listed and re.search(r"^(train|fit_heads)\w* ", listed, re.MULTILINE)


def test_snakemake_finds_nothing_to_lint(tmp_path):
    shutil.copytree(HOME / "config", tmp_path / "config")
    done = forked.run(["snakemake", "--snakefile", HOME / "Snakefile", "--lint"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
