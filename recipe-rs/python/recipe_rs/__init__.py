"""Codec between chat requests, prompts, token ids and protocol events."""
