"""An old name of `thaw export`, kept for one version."""

import sys

from thaw.cli.main import main

if __name__ == "__main__":
    main(["export", *sys.argv[1:]])
