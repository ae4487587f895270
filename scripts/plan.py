"""An old name of `thaw plan`, kept for one version."""

import sys

from thaw.cli.main import main

if __name__ == "__main__":
    main(["plan", *sys.argv[1:]])
