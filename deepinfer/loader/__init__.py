"""Model files of all formats as one Checkpoint."""
