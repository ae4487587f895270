"""An old name of `thaw check`, kept for one version."""

import sys

from thaw.cli.main import main

if __name__ == "__main__":
    main(["check", *sys.argv[1:]])
