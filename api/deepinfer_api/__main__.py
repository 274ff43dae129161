"""`python -m deepinfer_api --model PATH`: the server alone, with the options of `deepinfer serve`."""

from __future__ import annotations

import sys

from deepinfer.cli.main import main

if __name__ == "__main__":
    # The command takes the model as an argument without a name.
    main(["serve", *(argument for argument in sys.argv[1:] if argument != "--model")])
