"""The shape of a student as the plan knows it: which layers it keeps, and whose weights they start from. No torch."""

from dataclasses import dataclass, field

from thaw.adaptation.selectors import block
from thaw.core.errors import UserError
from thaw.schema.encoder import EncoderConfig
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
        """Return what the spec of a run says of its student."""
        start = {str(layer): source for layer, source in self.start.items()}
        return {"layers": list(self.layers), **({"start": start} if start else {})}

    def unchanged_below(self, layers: int) -> int:
        """Return the highest boundary up to which the student is the encoder that it was made from, of L layers."""
        dropped = [n for n in range(1, layers + 1) if n not in self.layers]
        return min([*dropped, *self.start, layers + 1]) - 1

    def of_trained(self, chosen: list[str]) -> list[str]:
        """Return those of some components that the student has."""
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
