"""The error that a command reports to its user."""


class CommandError(Exception):
    """A command cannot do what it was asked for; the message is one sentence that says what to do."""
