"""The spec of a run: all that its result depends on, but for the digests of what was made before it. No torch."""

from thaw.adaptation.selectors import boundary
from thaw.adaptation.stages import phases_to_spec
from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.core.steps import FIT_VERSION, STEPS, kind_version
from thaw.declarations.heads import HEAD_KINDS
from thaw.declarations.objective_kinds import objectives_of
from thaw.declarations.task_types import SCORE_TYPES, WORD_TYPES
from thaw.planning import student_checks
from thaw.planning.run_grid import RunPlanner, task_spec
from thaw.planning.run_plan import RunPlan, TeachPlan
from thaw.schema.entry import spec_of


def run_spec(planner: RunPlanner, run: RunPlan, of_cell: dict) -> dict:
    """Return the spec of a run, without those digests. Args: of_cell, as `spec_of_cell` returns it."""
    return of_cell | {"seed": run.seed} | ({"keep": True} if keeps(planner, run) else {})


def spec_of_cell(planner: RunPlanner, run: RunPlan) -> dict:
    """Return what the specs of all seeds of a run's cell have in common.

    `layers` is L of the encoder as it was pretrained; a student says in `student` which of them it keeps.
    """
    task = planner.catalogue.get("tasks", run.task, "tasks")
    encoder, several = planner.catalogue.get("encoders", run.encoder, "run"), planner.strategy(run).multi_task
    names = several.of_run(run.task) if several else [run.task]
    corpora = {planner.catalogue.get("tasks", name, "tasks").corpus for name in names}
    held = [planner.catalogue.get("corpora", corpus, "corpora") for corpus in corpora]
    # one encoder of several tasks starts from one boundary
    stored = sorted(set.intersection(*(set(planner.experiment.store.boundaries(encoder, one)) for one in held)))
    lowest, read, head = _lowest_of_start(planner, run), planner.read(run), planner.head_under(run)
    converges = planner.strategy(run).fits_to_convergence
    # of several layers a fit reads their vectors, and no states of tokens
    vectors = head.stored_vectors(task.type in WORD_TYPES) if planner.strategy(run).reads and converges else None
    shape, of_teacher = planner.shape(run), [phase.distil for phase, _ in planner.phases(run)]
    # The teacher's scores alone, from which the head of a regression must then begin.
    unlabelled = task.type in SCORE_TYPES and all(distil and not distil.hard for distil in of_teacher)
    phases = phases_to_spec(planner.phases(run), encoder.layers, stored, lowest, read, vectors)
    if run.step == "fit_heads":
        for entry in phases:
            for name in ("precision", "batch_gib"):  # heads on cached vectors are computed in fp32, and take little
                entry.pop(name, None)
    trained = [item for phase in planner.strategy(run).phases for item in phase.train]
    words = [word for item in trained for word in ([item] if isinstance(item, str) else item)]
    words += planner.catalogue.get("tasks", run.task, "tasks").metrics
    return {
        "version": STEPS[run.step].version,
        "task": task_spec(run.task, task),
        "subset": spec_of(planner.catalogue.get("subsets", run.subset, "subsets")),
        "head": head.spec_for(task.type),
        **kind_version("head_version", HEAD_KINDS[head.kind].version if head.kind in HEAD_KINDS else 1),
        **kind_version("fit_version", FIT_VERSION if converges else 1),
        "layers": encoder.layers,
        **({"student": shape.entry()} if shape else {}),
        **({"unlabelled": True} if unlabelled else {}),
        "phases": _with_pairs(planner, run, phases),
        "after": None,
        **({"trial": True} if run.trial else {}),
        "keep": False,
        "compute": spec_of(planner.experiment.compute),
        **plugins.in_spec([*words, planner.own_head(run)[1].kind]),
    }


def _with_pairs(planner: RunPlanner, run: RunPlan, entries: list[dict]) -> list[dict]:
    """Return the phases of a spec, with the boundaries that are matched to the teacher's where states are compared."""
    layers, kept = planner.layers(run.encoder), _layers_kept(planner, run)
    place = planner.catalogue.place("strategies", run.strategy, "phases")
    needs = (run.trained_by or run).needs
    teacher = next((need.of.run for need in needs if isinstance(need.of, TeachPlan)), run)
    others, highest = (_layers_kept(planner, teacher), planner.layers(teacher.encoder)), planner.read(run)[-1]
    for (phase, chosen), entry in zip(planner.phases(run), entries, strict=True):
        for name, kind in objectives_of(phase).items():
            if wrong := kind.in_student(kept, layers, chosen):
                raise UserError(f"{place}: {name}: {wrong}")
        for term, key in (("hidden", "pairs"), ("attention", "attended")):
            if not (phase.distil and (compared := getattr(phase.distil, term))):
                continue
            try:
                pairs = compared.pairs(kept, layers, boundary(chosen, layers), others[1])
            except ValueError as error:
                raise UserError(f"{place}: distil: {term}: {error}") from error
            asked = f"{place}: distil: {term}: map"
            student_checks.check_matched(compared, pairs, (kept, layers), others, highest, asked)
            entry[key] = [list(pair) for pair in pairs]
        if phase.distil:
            student_checks.check_stages(phase.distil, entry, layers, place)
            widths = [planner.catalogue.get("encoders", one.encoder, "run").width for one in (run, teacher)]
            student_checks.check_widths(phase.distil, widths, f"{place}: distil")
    return entries


def _layers_kept(planner: RunPlanner, run: RunPlan) -> list[int]:
    shape = planner.shape(run)
    return list(shape.layers) if shape else list(range(1, planner.layers(run.encoder) + 1))


def keeps(planner: RunPlanner, run: RunPlan) -> bool:
    """Return whether a run is asked to keep the encoder's tensors."""
    strategy = planner.strategy(run)
    keep = strategy.keep or planner.is_probed(run) or run.folder in planner.kept
    return keep or bool(strategy.multi_task and strategy.multi_task.own == "member" and not run.trained_by)


def _lowest_of_start(planner: RunPlanner, run: RunPlan) -> int | None:
    """Return the boundary under which a run starts as the pretrained encoder: L without another start or shape."""
    layers, shape = planner.layers(run.encoder), planner.shape(run)
    below = [boundary(chosen, layers) for before in run.earlier() for chosen in planner.trained(before)]
    lowest = [n for n in below if n is not None]
    if shape:
        lowest.append(shape.unchanged_below(layers))
    return min(lowest, default=layers) if None not in below else None
