"""The jobs of runs and of the searches that choose their settings, each after what it needs. No torch.

Corpora, encoders and stores of features, which all jobs read, are made once for all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os.path import normpath

from thaw.core import layout
from thaw.core.boundaries import stored_parts_read, taught_parts
from thaw.core.errors import UserError
from thaw.core.steps import STEPS
from thaw.data.sources import find_source
from thaw.declarations.needs import NEEDS
from thaw.declarations.objective_kinds import texts_read
from thaw.encoders.weight_sources import local_files
from thaw.planning import compatibility, trained_tasks
from thaw.planning.initial_weights import InitialWeights
from thaw.planning.jobs import Job, JobTable, corpus_of
from thaw.planning.run_grid import RunPlanner, task_spec
from thaw.planning.run_plan import Planned, RunPlan, SearchPlan, TeachPlan, named_points, pair_views
from thaw.planning.run_specs import run_spec, spec_of_cell
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import TaskConfig
from thaw.schema.entry import spec_of
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.multi_task import OF_A_TASK


class RunJobs:
    """Adds runs to a table of jobs, with all that they need."""

    def __init__(self, table: JobTable, planner: RunPlanner):
        self.table, self.planner = table, planner
        self.catalogue, self.experiment = planner.catalogue, planner.experiment
        self._specs_of_cells: dict[str, dict] = {}

    def task(self, name: str, wanted_by: str) -> TaskConfig:
        task = self.catalogue.get("tasks", name, wanted_by)
        corpus = self.catalogue.get("corpora", task.corpus, self.catalogue.place("tasks", name, "corpus"))
        compatibility.check_task(self.catalogue, name, task, corpus)
        if task.corpus not in self.table.jobs["prepare"]:
            data_dir = self.experiment.data_dir
            source, files = find_source(task.corpus, corpus, self.experiment.sources, data_dir)
            kept = spec_of(corpus, frozenset({"synthetic", "files", "hub"} - {source}))
            spec = {"version": STEPS["prepare"].version, "corpus": task.corpus, "entry": kept, "source": source}
            spec["files"] = files
            inputs = {"files": [normpath(f"{data_dir}/{relative}") for relative in sorted(files)]}
            self.table.add("prepare", task.corpus, spec, inputs)
        return task

    def data(self, corpus: str) -> tuple[str, list[str]]:
        """Return the digest of a corpus, and the card that says it is prepared."""
        return self.table.job("prepare", corpus).digest, self.table.files("prepare", corpus)

    def encoder(self, weights: InitialWeights) -> tuple[Job, list[str]]:
        """Return the job that fetches an encoder, or trains it further, and the card that it writes."""
        step, key = weights.step, weights.key
        if key not in self.table.jobs[step]:
            if weights.further:
                self._pretrain(weights)
            else:
                entry = self.catalogue.get("encoders", weights.encoder, "encoders")
                spec = {"version": STEPS["fetch"].version, "encoder": weights.encoder, "entry": spec_of(entry)}
                if files := local_files(entry, f"encoders.{weights.encoder}"):
                    spec["files"] = files
                self.table.add("fetch", key, spec, {})
        return self.table.job(step, key), self.table.files(step, key)

    def _pretrain(self, weights: InitialWeights) -> None:
        """Add the further pretraining of an encoder: it reads the tokens of the corpus, and no hidden states."""
        fetched, card = self.encoder(InitialWeights(weights.encoder))
        entry = self.catalogue.get("further_pretraining", weights.further, "from")
        store = self.store(InitialWeights(weights.encoder), weights.corpus, entry.view)
        spec = {"version": STEPS["pretrain"].version, "settings": spec_of(entry, frozenset({"view"}))}
        spec |= {"encoder": fetched.digest, "features": self.table.job("features", store).digest}
        spec["compute"] = spec_of(self.experiment.compute)
        inputs = {"encoder": card, "tokens": [self.table.file("features", store)]}
        self.table.add("pretrain", weights.key, spec, inputs)

    def store(self, weights: InitialWeights, corpus: str, view: str) -> str:
        key = layout.key("features", {"weights": weights.key, "corpus": corpus, "view": view})
        if key not in self.table.jobs["features"]:
            entry, (encoder, card) = self.catalogue.get("views", view, "view"), self.encoder(weights)
            data, cards = self.data(corpus)
            spec = {"version": STEPS["features"].version, "view": spec_of(entry), **self.experiment.store.states}
            spec |= {"data": data, "encoder": encoder.digest, "compute": spec_of(self.experiment.compute)}
            self.table.add("features", key, spec, {"data": cards, "encoder": card})
            self.table.boundaries[key], self.table.vectors[key] = [], []
        return key

    def states(self, stores: list[str], read: Sequence[int | str]) -> dict[str, list[str]]:
        """Return the cards of some stores that a run reads, and see to it that they hold the parts that it reads."""
        for key in stores:
            wanted = {*self.table.boundaries[key], *self.table.vectors[key], *read}
            self.table.boundaries[key] = sorted(part for part in wanted if isinstance(part, int))
            self.table.vectors[key] = sorted(part for part in wanted if isinstance(part, str))
        return {
            "tokens": [self.table.file("features", key) for key in stores],
            "boundaries": [card for key in stores for card in self.table.parts(key, read)],
        }

    def based(
        self, weights: InitialWeights, corpus: str, views: tuple[str, ...], read: Sequence[int | str]
    ) -> tuple[dict, dict]:
        """Return what a spec says of corpus, encoder and the store of each view, and the files of these by name.

        Args: read, the parts of the stores that are read.
        """
        stores = [self.store(weights, corpus, view) for view in views]
        digests = [self.table.job("features", key).digest for key in stores]
        (encoder, card), (data, cards) = self.encoder(weights), self.data(corpus)
        spec = {"data": data, "encoder": encoder.digest, "features": digests if len(digests) > 1 else digests[0]}
        return spec, {"data": cards, "encoder": card} | self.states(stores, read)

    def add(self, plan: Planned) -> Job:
        """Add the job of a run or of what a run needs, where it is not among the jobs yet, and return it."""
        if plan.key not in self.table.jobs[plan.step]:
            if isinstance(plan, InitialWeights):
                self.encoder(plan)
            elif isinstance(plan, TeachPlan):
                self._add_teacher(plan)
            elif isinstance(plan, RunPlan):
                self._add_run(plan)
            else:
                self._add_search(plan)
        if plan.result.seed is not None:
            self.table.seeds.add(plan.result.seed)
        return self.table.job(plan.step, plan.key)

    def _spec(self, run: RunPlan) -> dict:
        """Return the spec of a run that is a job; what all seeds of its cell share is computed once."""
        if run.cell not in self._specs_of_cells:
            self._specs_of_cells[run.cell] = spec_of_cell(self.planner, run)
        return run_spec(self.planner, run, self._specs_of_cells[run.cell])

    def _add_run(self, run: RunPlan) -> None:
        """Add one run's job, under its folder for `train` and its variant's folder for `fit_heads`."""
        spec, inputs = self._based(run, self._spec(run))
        of_tasks = {"": spec}
        if (several := self.planner.strategy(run).multi_task) and not run.trained_by:
            members = trained_tasks.members(self.catalogue, self.planner.strategy(run), run)
            of_tasks |= {member.task: self._entry(run, member, spec, inputs) for member in members}
            spec["multi_task"] = spec_of(several, frozenset({"tasks"}))
            spec["auxiliary"] = list(of_tasks.values())[1:]
        for need in run.needs:
            self.add(need.of)
            role = NEEDS[need.role]
            of_tasks[need.task] |= role.entry(self.table.digest(need.of.result), need.facts)
            if isinstance(need.of, TeachPlan):
                matched = set(taught_parts(spec["phases"]))
                self.table.taught[need.of.key] |= matched
                folder = self.table.file(*need.of.result).rpartition("/")[0]
                states = [layout.stored_part(folder, n) for n in sorted(matched, key=str)]
                inputs["teacher_states"] = [*inputs.get("teacher_states", []), *states]
            if role.file:
                inputs[need.role] = [*inputs.get(need.role, []), self.table.file(*need.of.result)]
        if run.step == "fit_heads":
            del spec["seed"]
        self.table.add(run.step, run.key, spec, inputs)
        self.table.executed[run.step].add((run.head, run.strategy))

    def _entry(self, run: RunPlan, member: RunPlan, spec: dict, inputs: dict) -> dict:
        """Return what the spec of a training says of another of its tasks; add to its inputs what that task reads."""
        own, read = self._based(member, self._spec(member))
        if own["phases"] != spec["phases"]:
            place = self.catalogue.place("strategies", run.strategy)
            raise UserError(
                f"{place}: multi_task: the head of {member.task} reads other layers than that of {run.task}; name "
                "heads that read the same"
            )
        for name in ("data", "tokens", "boundaries"):
            of_all = [inputs.get(f"also_{name}", []), read[name], read.get(f"also_{name}", [])]
            inputs[f"also_{name}"] = [file for files in of_all for file in files]
        return {key: own[key] for key in OF_A_TASK if key in own} | {"features": [own["features"]]}

    def _add_teacher(self, plan: TeachPlan) -> None:
        """Add what a run gives on the training rows of a subset, and the run; which states is no part of its spec."""
        run = plan.run
        taught = self.add(run)
        task = self.catalogue.get("tasks", run.task, "tasks")
        base, inputs = self.based(run.weights, task.corpus, run.views, [])
        subset = self.catalogue.get("subsets", plan.rows, "subsets")
        spec = {"version": STEPS["teach"].version, "task": task_spec(run.task, task), "subset": spec_of(subset), **base}
        spec |= {"run": self.table.digest(run.result), "dtype": self.experiment.store.dtype}
        spec["compute"] = taught.spec["compute"]
        inputs["run"] = [self.table.result(run.folder)]
        self.table.taught.setdefault(plan.key, set())
        self.table.add("teach", plan.key, spec, inputs)

    def _add_search(self, search: SearchPlan) -> None:
        if search.step == "search_heads":
            base = search.trials[0]
            self.table.add(search.step, search.key, *self._based(base, heads_spec(search, self.planner)))
        else:
            for need in search.needs:
                self.add(need.of)
            digests = {need.of.key: self.table.digest(need.of.result) for need in search.needs}
            spec = trials_spec(search, self.catalogue, digests)
            inputs = {"trials": [self.table.file(*need.of.result) for need in search.needs]}
            self.table.add(search.step, search.key, spec, inputs)
        self.table.executed[search.step].add((search.head, search.strategy))

    def _based(self, run: RunPlan, spec: dict) -> tuple[dict, dict]:
        """Return a run's spec with what it is based on, corpora, encoder and stores, and the files of these."""
        task = self.task(run.task, "tasks")
        read = stored_parts_read(spec["phases"])
        base, inputs = self.based(run.weights, task.corpus, run.views, read)
        spec |= base
        targets = texts_read(spec["phases"])
        if unknown := targets.keys() - {transfer.task for transfer in task.also}:
            place, other = self.catalogue.place("strategies", run.strategy), min(unknown)
            raise UserError(
                f"{place}: {targets[other]}: {other} is none of the transfer_sets of task {run.task}; name it "
                "there, since these are what a run reads besides its own dataset"
            )
        stores: list[str] = []
        if task.also and (targets or not run.trial):
            spec["also"], stores = self._transfer_sets(run, task)
        if stores:
            inputs["also_data"] = [card for store in stores for card in self.data(corpus_of(store))[1]]
            inputs |= {f"also_{name}": files for name, files in self.states(stores, read).items()}
        return spec, inputs

    def _transfer_sets(self, run: RunPlan, task: TaskConfig) -> tuple[list[dict], list[str]]:
        """Return what a spec says of a task's transfer sets, and their stores: per corpus one for each view."""
        entries, stores = [], []
        for transfer in task.also:
            other = self.catalogue.get("tasks", transfer.task, "transfer_sets")
            views = pair_views(other, run.pairs)
            keys = [self.store(run.weights, other.corpus, view) for view in views]
            features = [self.table.job("features", key).digest for key in keys]
            entry = {"task": task_spec(transfer.task, other), "rename": transfer.rename}
            entries.append(entry | {"data": self.data(other.corpus)[0], "features": features})
            stores += keys
        return entries, stores


def heads_spec(search: SearchPlan, planner: RunPlanner) -> dict:
    """Return the spec of a choice for which the trials are trained, but for the digests of what was made before it."""
    base = replace(search.trials[0], settings={})
    spec = run_spec(planner, base, spec_of_cell(planner, base)) | {"version": STEPS["search_heads"].version}
    seeds = sorted({trial.seed for trial in search.trials})
    kept = {key: spec[key] for key in spec.keys() - {"seed"}}
    return kept | {"grid": list(search.grid), "seeds": seeds} | _penalty(search)


def _penalty(search: SearchPlan) -> dict:
    """Return what a spec says of the penalty of a search; nothing where it has none."""
    return {"penalty": search.penalty} if search.penalty else {}


def trials_spec(search: SearchPlan, catalogue: Catalogue, digests: Mapping[str, str]) -> dict:
    """Return the spec of a choice among trials that are jobs of their own. Args: digests of these, by their key."""
    name = search.trials[0].task
    trials = [{"settings": settings, "runs": {}} for settings in search.grid]
    for trial in search.trials:
        trials[trial.trial - 1]["runs"][str(trial.seed)] = digests[trial.key]
    task = task_spec(name, catalogue.get("tasks", name, "tasks"))
    subset = catalogue.get("subsets", search.trials[0].subset, "subsets")
    chosen_on = {"subset": spec_of(subset)} if subset.validation else {}
    return {"version": STEPS["select"].version, "task": task, **chosen_on, "trials": trials, **_penalty(search)}


def reported_seeds(experiment: ExperimentConfig, catalogue: Catalogue) -> list[str]:
    """Return a warning for each strategy whose search uses a seed that is reported too."""
    warnings = []
    for name, _ in map(named_points, experiment.strategies):
        one = catalogue.get("strategies", name, "strategies")
        search = one.search or (one.rates_from and catalogue.get("strategies", one.rates_from, "strategies").search)
        both = sorted(set(search.seeds[: experiment.search_seeds]) & set(experiment.seeds)) if search else []
        warnings += [
            f"Warning: {one.label or name} is searched with seed {seed}, which this experiment reports too: what chose "
            "the settings is then part of the result; search with other seeds, as seeds: [101]."
            for seed in both[:1]
        ]
    return warnings
