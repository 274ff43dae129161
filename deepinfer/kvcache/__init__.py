"""Blocks of the KV cache and the prefixes they hold."""
