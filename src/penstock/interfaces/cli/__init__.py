"""The command line: it parses, calls the public functions and prints. Results on stdout, everything else on stderr."""

from __future__ import annotations

import sys

from penstock.interfaces.cli.exits import catch_signals, exit_code


def main() -> None:
    """What `penstock` and `python -m penstock` call."""
    catch_signals()
    sys.exit(exit_code(_run, debug="--debug" in sys.argv))


def _run() -> None:
    # Loaded here, where an interrupt already ends in one sentence.
    from penstock.interfaces.cli.app import app

    app()


__all__ = ["main"]
