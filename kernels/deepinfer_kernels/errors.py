"""Errors of the operators."""

from __future__ import annotations


class KernelArgumentError(ValueError):
    """An argument of an operator has the wrong shape, dtype, stride, device or value.

    Attributes:
        name: the argument.
        got: what it is.
        expected: what the operator takes.
    """

    def __init__(self, name: str, *, got: object, expected: str) -> None:
        super().__init__(f"{name} must be {expected}, but is {got}")
        self.name = name
        self.got = got
        self.expected = expected


class KernelUnavailableError(RuntimeError):
    """A Triton kernel was launched where Triton cannot run; the torch reference of the operator still works."""
