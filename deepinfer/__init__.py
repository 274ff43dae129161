"""Inference engine for DeepSeek V4 / V4.1 and other open models. Importing it imports no torch and touches no device."""

__version__ = "0.1.0"
