"""All kinds of outputs by the name that config/outputs.yaml gives them, and the step that draws each."""

from thaw.declarations.figures import FIGURES
from thaw.declarations.tables import TABLES

OUTPUTS = TABLES | FIGURES
ADVISING = [kind for kind, declared in OUTPUTS.items() if declared.advises]


def step_of(kind: str) -> str:
    """Return the step that draws a kind of output: table or figure."""
    return "table" if kind in TABLES else "figure"
