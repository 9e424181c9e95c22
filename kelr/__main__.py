"""``python -m kelr``."""

import sys

from kelr.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
