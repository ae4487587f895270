"""An old name of `thaw budget`, kept for one version."""

import sys

from thaw.cli.main import main

if __name__ == "__main__":
    main(["budget", *sys.argv[1:]])
