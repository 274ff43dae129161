"""From a plan to sampled tokens."""
