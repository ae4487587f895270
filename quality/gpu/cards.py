"""What the tests for a card share: the card. Where there is none they are left out."""

import os

import pytest
import torch

from pretended import pretended
from thaw.core.home import PACKAGE
from thaw.core.runtime import set_threads

DRY = os.environ.get("THAW_TEST_DEVICE")  # cpu or pretended: the tests are tried there, as far as it makes sense
# Of processes that import Thaw: libraries may lie where PYTHONPATH says, as on a machine where nothing is installed.
PATH = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
if not DRY and not torch.cuda.is_available():
    pytest.skip("no CUDA device here", allow_module_level=True)


@pytest.fixture
def device():
    """The device that is tried: the first card. A dry run tries the tests alone, on the CPU or pretended."""
    set_threads(1)
    if DRY == "pretended":
        with pretended() as there:
            yield there
    elif DRY:
        yield torch.device("cpu")
    else:
        torch.use_deterministic_algorithms(True)
        yield torch.device("cuda", 0)
        torch.use_deterministic_algorithms(False)


@pytest.fixture
def card():
    """The first card, where a dry run cannot stand for it."""
    if DRY:
        pytest.skip("needs a card, also in a dry run")
    return torch.device("cuda", 0)
