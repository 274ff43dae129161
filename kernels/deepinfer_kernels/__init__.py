"""Operators of open-deepinfer: torch reference and Triton kernel side by side. Importing this imports no triton."""
