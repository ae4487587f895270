"""How many times as fast as in fp32 this machine's CPU computes in bf16, timed in training two layers with attention.

python -m thaw.compute_cost.bf16_gain --width 384 --threads 2

A program of its own, since the plan imports no torch; in a workflow on one machine a process of the fork
server, which has it. B texts, T tokens, d width.
"""

import argparse
import sys
import time

from thaw.core import fork_client
from thaw.core.devices import processor_has_bf16

TEXTS, TOKENS = 16, 32  # of a batch
REPEATED = 5


def main() -> None:
    """Print the ratio of the two times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, required=True, help="width of the encoder")
    parser.add_argument("--threads", type=int, required=True, help="threads of a job")
    given = parser.parse_args()
    if not processor_has_bf16():
        print(1)  # such phases are computed in fp32
        return
    import torch
    from torch import nn

    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    width = given.width
    sizes = {"nhead": max(1, width // 64), "dim_feedforward": 4 * width, "activation": "gelu", "batch_first": True}
    model = nn.Sequential(*(nn.TransformerEncoderLayer(width, **sizes) for _ in range(2)))
    tokens = torch.randn(TEXTS, TOKENS, width, device="cpu")  # [B, T, d]
    times = {False: float("inf"), True: float("inf")}
    for _ in range(REPEATED):
        for bf16 in times:
            start = time.process_time()
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                model(tokens).float().sum().backward()
            times[bf16] = min(times[bf16], time.process_time() - start)
    print(f"{times[False] / times[True]:.3f}")


if __name__ == "__main__":
    fork_client.ask_or_run("thaw.compute_cost.bf16_gain", sys.argv[1:], "train")
