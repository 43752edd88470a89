"""What stands in for a function that a program leaves out."""

from __future__ import annotations


def nothing(v, p):
    """No message, no tally."""
    return 0.0


def same(message, e, p):
    """A contribution that is the message."""
    return message


def always(v, p):
    """Whether a vertex wants contributions."""
    return True


def still(v, new, p):
    """By how much an update moved a vertex."""
    return 0.0


def leave(s, i, j, new):
    """Store nothing."""


__all__ = ["always", "leave", "nothing", "same", "still"]
