"""A reader that stops reading is no error; random numbers come from named streams."""

import os
import subprocess
import sys

import torch

from thaw.core.runtime import seeded


def test_a_reader_that_has_seen_enough_is_no_error(home):
    line = f"{sys.executable} -m thaw.cli.main plan --runs | head -1"
    here = os.environ | {"PYTHONPATH": f"{home}/scripts"}
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=120, env=here)
    assert done.stdout.startswith("experiment demo") and done.stderr == ""


def test_a_stream_leaves_the_generator_as_it_was_and_looks_at_no_device():
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    with seeded(1, "initialisation"):
        first = torch.rand(3)
    with seeded(1, "initialisation"):
        assert torch.equal(torch.rand(3), first)
    assert torch.equal(torch.random.get_rng_state(), state)
