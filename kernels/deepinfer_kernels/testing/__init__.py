"""Support for testing and timing operators: tolerances, input generators, ahead-of-time compilation, a timer."""
