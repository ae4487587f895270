"""Whether a student, what it learns from a teacher, and what is compared fit together. No torch."""

from dataclasses import dataclass, field

from thaw.adaptation.selectors import block, boundary
from thaw.core.boundaries import that_train
from thaw.core.errors import UserError
from thaw.core.phrases import listing
from thaw.declarations.task_types import EXTRACTION_TYPES, WORD_TYPES
from thaw.planning.run_plan import RunPlan
from thaw.schema.catalogue import Catalogue
from thaw.schema.distillation import AttentionConfig, DistilConfig, HiddenConfig
from thaw.schema.encoder import EncoderConfig
from thaw.schema.strategy import StrategyConfig, TeacherConfig
from thaw.schema.student import StudentConfig


@dataclass(frozen=True)
class StudentShape:
    """The layers that are kept, ascending; by layer whose weights it starts from, where these are not its own."""

    layers: tuple[int, ...]
    start: dict[int, int | str] = field(compare=False)

    @classmethod
    def of(cls, student: StudentConfig, id: str, encoder: EncoderConfig, variables: dict[str, int]) -> "StudentShape":
        """Return a student's shape. Args: its entry; id and entry of the encoder; the sweep's variables.

        Raises UserError for layers that there are not, and for an encoder without a list of transformer layers.
        """
        if encoder.kind != "transformers":
            raise UserError(f"student: {id} is of kind {encoder.kind} and has no transformer layers to keep or drop")
        kept, start = student.shape(encoder.layers, variables)
        return cls(tuple(kept), start)

    def entry(self) -> dict:
        start = {str(layer): source for layer, source in self.start.items()}
        return {"layers": list(self.layers), **({"start": start} if start else {})}

    def unchanged_below(self, layers: int) -> int:
        """Return the highest boundary up to which the student is the encoder that it was made from, of L layers."""
        dropped = [n for n in range(1, layers + 1) if n not in self.layers]
        return min([*dropped, *self.start, layers + 1]) - 1

    def of_trained(self, chosen: list[str]) -> list[str]:
        own = {"head", "embeddings", *(f"layer.{n}" for n in self.layers)}
        if not any(block(component) in own for component in chosen):
            raise UserError(f"student: drops all of {', '.join(chosen)}, and nothing is left to train")
        return [component for component in chosen if block(component) in own]

    def check_read(self, read: list[int], head: str, layers: int, place: str) -> None:
        """Raise UserError where a head reads a boundary at a dropped layer, but for the last one, the model's output.

        Args: the boundaries that it reads; its id; layers L; place of student:.
        """
        if missing := [n for n in read if n not in (0, *self.layers, layers)]:
            raise UserError(
                f"{place}: head {head} reads layer {missing[0]}, which the student drops; keep it, or read the last"
            )


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
