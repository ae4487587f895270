"""A kind of table or figure: its keys, what an experiment must have for it, and how it is built.

A kind's builder takes `OutputData` (what the results folder holds) and the spec of its step, and returns a `Table` or a
`Figure`; the step writes the formats. Whether a requirement holds says `planning/output_requirements.py`, what the plan
adds to a spec by `planning/output_requirements.py`; neither knows a kind.
"""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Any

from thaw.declarations.lazy_import import LazyImport
from thaw.declarations.output_options import OutputOptions

# By step the formats of its outputs: the ending of the file, and the name in print. The first is the file by which an
# output is known to be done.
FORMATS = {
    "table": {".html": "HTML", ".csv": "CSV", ".tex": "TeX", ".md": "Markdown", ".json": "JSON"},
    "figure": {".svg": "SVG", ".pdf": "PDF", ".png": "PNG", ".csv": "CSV", ".json": "JSON"},
}


class Requirement(StrEnum):
    """What an experiment must have, so that an output can be drawn of it, as a message says it after "it needs"."""

    SIZES = "training subsets of two sizes, as subsets: [n100_d1, n500_d1]"
    PROBES = "a probe of kind {probes} under probes:"
    ALL_LAYERS = "probes of every layer; leave their layers: out"
    TRANSFER = "a task with transfer_sets:"
    CLAIMS = "all strategies of a claim in findings.yaml, as linear_probe and full"
    FULL = "{named} under strategies:, without a sweep, and another strategy on its task"
    FULL_AND_FROZEN = "{named} under strategies:, without a sweep, and one that trains the head alone on its task"
    FULL_AND_STUDENT = "{named} under strategies:, without a sweep, and one with student: or teacher: on its task"
    TASK_PAIRS = (
        "{named} under strategies:, without a sweep, and one that trains with or after one other task on its task"
    )
    MERGES = "merges:, as merges: {one_trunk: {strategies: [top_k]}}"
    ONE_ANSWER = "to be the only output of its kind, since each says what to take; name one of them"


class Addition(StrEnum):
    """What the plan adds to the spec of an output."""

    PROBES = "the probes that are drawn, and their names"
    PRINTED = "a paper's printed numbers"
    PROTOCOL = "a paper's settings and ours"
    CLAIMS = "papers' claims, and the runs that test them"
    DRAWS = "which subsets are draws of one size, where they are shown together"
    MERGES = "the merges that are shown, and their names"
    STUDENTS = "which runs are students, of how many layers and of which teacher"
    TASK_PAIRS = "which runs train with or after one other task, and the corpora of both"


@dataclass(frozen=True)
class OutputKind(LazyImport):
    """A kind of table or figure.

    source: its builder. about: what it shows, as the key comment of config/outputs.yaml says it. options: its own keys.
    needs: what an experiment must have for it. adds: what the plan adds to its spec. advises: whether it has answers,
    which are printed when the workflow ends.
    """

    about: str
    options: type[OutputOptions] = OutputOptions
    _: KW_ONLY
    needs: tuple[Requirement, ...] = ()
    adds: tuple[Addition, ...] = ()
    advises: bool = False


OF_PROBES: Any = {"needs": (Requirement.PROBES,), "adds": (Addition.PROBES,)}  # of what shows probes and nothing else
