"""An old name of `thaw new`, kept for one version."""

import sys

from thaw.cli.main import main

if __name__ == "__main__":
    main(["new", *sys.argv[1:]])
