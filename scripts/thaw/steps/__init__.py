"""Steps: one module per rule, same name as the rule."""

import sys

from thaw.core.runtime import explain_imports

sys.excepthook = explain_imports
