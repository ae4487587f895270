"""How many times as fast as in fp32 this machine's CPU trains in bf16, timed on two layers' products.

python -m thaw.compute_cost.bf16_gain --width 384 --threads 2

A program of its own, since the plan imports no torch. N tokens, d width.
"""

import argparse
import time

TOKENS = 512  # of a batch of 16 texts with 32 tokens
REPEATED = 5


def main() -> None:
    """Print the ratio of the two times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, required=True, help="width of the encoder")
    parser.add_argument("--threads", type=int, required=True, help="threads of a job")
    given = parser.parse_args()
    import torch
    from torch import nn

    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    width = given.width
    sizes = [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]  # one layer: attention, then its two
    model = nn.Sequential(*(nn.Linear(*size) for size in sizes * 2))
    tokens = torch.randn(TOKENS, width, device="cpu")  # [N, d]
    times = {False: float("inf"), True: float("inf")}
    for _ in range(REPEATED):
        for bf16 in times:
            start = time.perf_counter()
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                model(tokens).float().sum().backward()
            times[bf16] = min(times[bf16], time.perf_counter() - start)
    print(f"{times[False] / times[True]:.3f}")


if __name__ == "__main__":
    main()
