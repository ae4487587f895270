"""The shape of a student: which layers of its encoder it keeps, and whose weights they start from.

L layers of the encoder, n of the student, a layers below those that may be dropped. A layer that is kept stays where
it was: boundary 4 of a student that keeps layer 4 has the depth of boundary 4 of its teacher. A dropped layer passes
its input on. Only an export counts them again from 1.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from thaw.core.errors import UserError
from thaw.core.phrases import plural
from thaw.schema.entry import Count
from thaw.schema.keys import ConfigModel

RANDOM = "random"


def kept_layers(spec: dict) -> list[int] | None:
    """Return the layers, counted from 1, that the encoder of a run keeps; None for all. Args: the run's spec."""
    return spec.get("student", {}).get("layers")


def _bottom(count: int, below: int, layers: int) -> list[int]:
    return list(range(below + 1, below + count + 1))


def _top(count: int, below: int, layers: int) -> list[int]:
    return list(range(layers - count + 1, layers + 1))


def _spread(count: int, below: int, layers: int) -> list[int]:
    """Return layers at equal distances, the last one among them: of 12, six are 2, 4, ..., 12."""
    return [below + (2 * i * (layers - below) + count) // (2 * count) for i in range(1, count + 1)]


def _ends(count: int, below: int, layers: int) -> list[int]:
    """Return the lowest half and the highest half (Sajjad et al. 2020: symmetric dropping)."""
    return _bottom(count - count // 2, below, layers) + _top(count // 2, below, layers)


PLACES = {"bottom": _bottom, "spread": _spread, "top": _top, "ends": _ends}


class StudentConfig(ConfigModel):
    """The layers that a student keeps of its encoder, and whose weights they start from."""

    hints: ClassVar[dict[str, str]] = {"num_hidden_layers": "layers"}
    layers: Count | str | list[Count] = Field(
        description="how many of the last `top` layers are kept, 3 or a variable of sweep:; or those that are, [2, 4]"
    )
    top: Count | str | None = Field(
        None,
        description="the last layers, of which `layers` are kept; all below these are kept anyway. A number or a "
        "variable of sweep:; null: all layers of the encoder",
    )
    keep: Literal["bottom", "spread", "top", "ends"] = Field(
        "bottom", description="which of these: the lowest, at equal distances (every other one), the highest, both ends"
    )
    start: Literal["same", "bottom", "spread", "top", "ends", "random"] | list[Count] = Field(
        "same",
        description="whose weights the kept ones start from, in order; their own, those of as many layers chosen "
        "as for keep, random ones, or a list of layers",
    )

    def meaningless(self) -> dict[str, str]:
        """A list of layers says which are kept by itself."""
        return dict.fromkeys(("top", "keep"), "with a list of layers") if isinstance(self.layers, list) else {}

    @model_validator(mode="after")
    def _rising(self):
        listed = self.layers if isinstance(self.layers, list) else [1]
        if not listed or any(lower >= upper for lower, upper in pairwise(listed)):
            raise ValueError("layers: must rise, each layer once, as [2, 4, 6]")
        if isinstance(self.start, list) and isinstance(self.layers, list) and len(self.start) != len(listed):
            raise ValueError(f"start: lists {plural(len(self.start), 'layer')}, and layers: {len(listed)}")
        return self

    def shape(self, layers: int, variables: dict[str, int]) -> tuple[list[int], dict[int, int | str]]:
        """Return the layers that are kept, ascending, and by kept layer whose weights it starts from, if not its own.

        Args: layers L; the sweep's variables with their values. Raises UserError for layers that the encoder lacks,
        more of them than there are, all of them as they are, and a start of another length.
        """
        if isinstance(self.layers, list):
            kept, below = self.layers, 0
        else:
            count, top = self._number("layers", variables), self._number("top", variables) or layers
            if not (count and 1 <= count <= top <= layers):
                raise UserError(
                    f"student: layers: {count} of the last {top} can not be kept of {layers} layers; "
                    "expected 1 <= layers <= top <= the encoder's layers"
                )
            below = layers - top
            kept = list(range(1, below + 1)) + PLACES[self.keep](count, below, layers)
        if kept[-1] > layers:
            raise UserError(f"student: layers: {kept[-1]} is none of the encoder's layers 1 to {layers}")
        own = [n for n in kept if n > below]
        start = {place: source for place, source in self._sources(own, below, layers) if source != place}
        # of a sweep over the number of layers the last point may be the whole encoder
        if len(kept) == layers and not start and not isinstance(self.layers, str):
            of = "" if self.top is None else f" of the last {layers - below}"
            raise UserError(
                f"student: layers: {self.layers}{of} drops none of the encoder's {layers} layers; keep fewer, start "
                "them from other layers, or leave out student:"
            )
        return kept, start

    def _sources(self, own: list[int], below: int, layers: int) -> list[tuple[int, int | str]]:
        """Return each own layer of the student with the layer whose weights it starts from."""
        sources: Sequence[int | str]
        if self.start == "same":
            sources = own
        elif self.start == RANDOM:
            sources = [RANDOM] * len(own)
        else:
            sources = self.start if isinstance(self.start, list) else PLACES[self.start](len(own), below, layers)
        if len(sources) != len(own) or any(isinstance(n, int) and n > layers for n in sources):
            raise UserError(f"student: start: {sources} does not give one of {layers} layers to each of {own}")
        return list(zip(own, sources, strict=True))

    def _number(self, key: str, variables: dict[str, int]) -> int | None:
        value = getattr(self, key)
        if isinstance(value, str) and value not in variables:
            raise UserError(f"student: {key}: {value} is neither a number nor a variable of sweep:")
        return variables.get(value, value)
