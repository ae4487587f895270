"""An old name of `thaw doctor`, kept for one version."""

import sys

from thaw.cli.main import main

if __name__ == "__main__":
    main(["doctor", *sys.argv[1:]])
