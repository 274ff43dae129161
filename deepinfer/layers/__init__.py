"""Building blocks that call operators."""
