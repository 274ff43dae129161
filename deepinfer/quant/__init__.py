"""Packed number formats."""
