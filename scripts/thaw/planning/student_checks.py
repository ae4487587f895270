"""Whether a student, what it learns from a teacher, and what is compared fit together. No torch."""

from thaw.adaptation.selectors import boundary
from thaw.core.boundaries import that_train
from thaw.core.errors import UserError
from thaw.core.phrases import listing
from thaw.declarations.task_types import EXTRACTION_TYPES, WORD_TYPES
from thaw.planning.run_plan import RunPlan
from thaw.planning.student_shape import StudentShape
from thaw.schema.catalogue import Catalogue
from thaw.schema.distillation import AttentionConfig, DistilConfig, HiddenConfig
from thaw.schema.strategy import StrategyConfig
from thaw.schema.strategy_parts import StartConfig, TeacherConfig


def check_same_student(start: StartConfig, before: StudentShape | None, place: str) -> None:
    """Refuse a run without a student that starts from one. Args: which run it starts from; that one's shape."""
    if before:
        kept = listing(map(str, before.layers))
        raise UserError(f"{place}: after: {start.strategy} keeps layers {kept} alone; say the same student: here")


def check_teacher(
    strategy: StrategyConfig, named: TeacherConfig, teacher: RunPlan, read_with: tuple, head, place: str
) -> None:
    """Find out whether a run can teach another.

    Args: the other's strategy, and how it names the run; views, encoder and type of task; head; place.
    """
    views, encoder, task_type = read_with
    terms = {term for phase in strategy.phases if phase.distil for term in phase.distil.terms}
    name = f"{place}.teacher: {teacher.strategy}"
    if len(teacher.views) > 1:
        raise UserError(f"{name} lets validation choose how pairs are read; give it pairs: joint or separate")
    if named.dropout and (terms - {"logits"} or (teacher.views, teacher.encoder) != (views, encoder)):
        raise UserError(f"{name} with dropout: true gives logits alone, of the student's own tokens; leave dropout out")
    if teacher.views != views and terms - {"logits"}:
        raise UserError(f"{name} reads pairs otherwise, so that its tokens are others; only distil: logits: compares")
    if task_type in EXTRACTION_TYPES:
        raise UserError(f"{name} answers with parts of texts; a teacher gives classes, scores or tags, so leave it out")
    if teacher.encoder != encoder and task_type in WORD_TYPES:
        raise UserError(f"{name} is of {teacher.encoder}, which cuts sentences at other words; take a task of texts")
    attention = [phase.distil.attention for phase in strategy.phases if phase.distil and phase.distil.attention]
    if teacher.encoder != encoder and any(entry.heads is None for entry in attention):
        raise UserError(f"{name} is of {teacher.encoder}, whose heads may be others; say distil: attention: heads:")
    if head and "crf" in head[1].kind and "logits" in terms:
        raise UserError(f"{name}: the scores of head {head[0]} are of whole sentences; distil: hidden: compares states")


def rows_of_teacher(catalogue: Catalogue, of_teacher: str | None, own: str, place: str) -> str:
    """Return the id of the subset that a teacher was trained on. Args: what `teacher: subset:` says; the student's own.

    Raises UserError where the teacher would know rows by which its student is chosen or tested.
    """
    if of_teacher is None or of_teacher == own:
        return own
    theirs, ours = (catalogue.get("subsets", id, f"{place}.subset") for id in (of_teacher, own))
    if ours.validation or ours.reserved != theirs.reserved:
        raise UserError(
            f"{place}: subset: {of_teacher} may train on rows that {own} holds out or reserves; name subsets without "
            "validation: and with the same reserved:"
        )
    return of_teacher


def check_matched(
    term: HiddenConfig | AttentionConfig,
    pairs: list[tuple[int, int]],
    student: tuple[list[int], int],
    teacher: tuple[list[int], int],
    highest: int,
    place: str,
) -> None:
    """Find out whether student and teacher have what is matched.

    Args: a term of the loss; the student's layers with the teacher's; of both the layers that they keep and L; the
    highest boundary that the student's head reads; place of the map. Embeddings and output are boundaries 0 and L of
    any encoder, but no layers with attention. Layers above the highest run for their states, not for their attention.
    """
    if not pairs:
        raise UserError(f"{place}: no layer that trains is matched; say last: true, or map: {{2: 4}}")
    for who, (own, layers), place_in_pair in (("student", student, 0), ("teacher", teacher, 1)):
        there = {0, *own, layers} if isinstance(term, HiddenConfig) else set(own)
        if wrong := [pair for pair in pairs if pair[place_in_pair] not in there]:
            raise UserError(f"{place}: {wrong[0][0]} to {wrong[0][1]}: the {who} keeps layers {own} of {layers}")
    if isinstance(term, AttentionConfig) and (above := [own for own, _ in pairs if own > highest]):
        raise UserError(f"{place}: layer {above[0]}: the head reads none above {highest}; match layers up to that")


def check_widths(distil: DistilConfig, widths: list[int], place: str) -> None:
    """Find out whether what is compared has equal widths. Args: those of student and teacher; place of distil:."""
    if distil.hidden and not distil.hidden.project and len(set(widths)) > 1:
        raise UserError(
            f"{place}: hidden: the states of student and teacher have widths of {listing(map(str, widths))}; say "
            "project: true"
        )
    heads = distil.attention and distil.attention.heads
    if wrong := [width for width in widths if heads and width % heads]:
        raise UserError(f"{place}: attention: heads: {heads} do not divide a width of {wrong[0]}")


def check_stages(distil: DistilConfig, entry: dict, layers: int, place: str) -> None:
    """Find out whether every stage of a phase learns something. Args: the phase in the spec; layers L; place."""
    for stage in entry.get("stages", []):
        below = boundary(stage["components"], layers)
        compared = [key for key in ("pairs", "attended") if that_train(entry.get(key, []), below)]
        if not (distil.hard or (distil.logits and distil.logits.weight) or compared):
            raise UserError(
                f"{place}: gradual_unfreezing: nothing that trains at first is compared; give hard: or logits: a weight"
            )
