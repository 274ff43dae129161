"""Test support for everything that serves or speaks this API: shipped, documented, without a model."""
