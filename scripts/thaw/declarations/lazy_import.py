"""The code of a kind, which a declaration names and does not import: whoever only reads declarations stays light."""

from dataclasses import dataclass
from pkgutil import resolve_name


@dataclass(frozen=True)
class LazyImport:
    """A kind whose code is imported when it is asked for.

    source: module and name, as `thaw.heads.linear:MlpHead`.
    """

    source: str

    def load(self):
        return resolve_name(self.source)
