"""`python -m recipe_rs`: the command `recipe-rs`."""

import sys

from recipe_rs._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
