"""Codec between chat requests, prompts, token ids and protocol events."""

from recipe_rs._native import *  # noqa: F403
