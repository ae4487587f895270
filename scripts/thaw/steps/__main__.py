"""Run a step by its name: python -m thaw.steps train --spec ... --out ...

In a process of the fork server where one listens, which has imported its libraries, else in this one.
"""

import sys

from thaw.core import fork_client

if __name__ == "__main__":
    fork_client.ask_or_run(f"thaw.steps.{sys.argv[1]}", sys.argv[2:], sys.argv[1])
