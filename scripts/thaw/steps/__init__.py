"""Steps: one module per rule, same name as the rule."""

import sys


def _explain(kind, error, trace) -> None:
    from thaw.core.runtime import explain_imports  # which a job that asks a server does without

    explain_imports(kind, error, trace)


sys.excepthook = _explain
