"""`python -m headwise.cli` is `headwise`."""

import sys

from headwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
