"""An old name of `thaw predict`, kept for one version."""

import sys

from thaw.cli.main import main

if __name__ == "__main__":
    main(["predict", *sys.argv[1:]])
