"""The console script."""
