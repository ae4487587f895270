"""An old name of `thaw compare`, kept for one version."""

import sys

from thaw.cli.main import main

if __name__ == "__main__":
    main(["compare", *sys.argv[1:]])
