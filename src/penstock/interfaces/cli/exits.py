"""How a command ends: one sentence on stderr and an exit code, never a traceback unless asked for.

0 done · 1 a check failed or damage was found · 2 bad usage or bad input · 3 does not fit, or the disk is full
70 a bug · 129 the terminal was closed · 130 interrupted · 143 terminated
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from penstock.errors import PenstockError
from penstock.interfaces.cli.wording import told

BUG, INTERRUPTED = 70, 128 + signal.SIGINT
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_received: list[int] = []


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Not KeyboardInterrupt itself: when that passes through an `exec`, as in the making of a dataclass, Python
    forgets the exit code and kills itself with SIGINT at the end."""


class Terminated(BaseException):
    """SIGTERM, or SIGHUP of a terminal that was closed, so that files are cleaned up on the way out; like
    KeyboardInterrupt, no handler for errors sees it."""


def catch_signals() -> None:
    """Make SIGTERM and SIGHUP end a run the way Ctrl-C does."""
    last = -1.0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < 1:  # an impatient second Ctrl-C would only interrupt the clean-up
            return
        last = now
        _received.append(number)
        raise Interrupted if number == signal.SIGINT else Terminated

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A shell starts background jobs with SIGINT ignored, nohup any with SIGHUP: that is to stay so.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


def exit_code(run: Callable[[], Any], *, debug: bool) -> int:
    """Run a command; say what went wrong, if something did."""
    try:
        result = run()
        if result == INTERRUPTED:  # Typer makes a code of it
            return _ended_by(signal.SIGINT)
        return result if isinstance(result, int) else 0
    except SystemExit:
        raise
    except (KeyboardInterrupt, Terminated) as error:
        asked = signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT
        return _ended_by(_received[-1] if _received else asked)
    except BaseException as error:
        if _received:  # libraries turn an interrupt inside their own start-up into errors of their own
            return _ended_by(_received[-1])
        if debug:
            traceback.print_exc()
        code, sentence = explain(error)
        say(sentence)
        return code


def _ended_by(number: int) -> int:
    say("interrupted" if number == signal.SIGINT else "terminated")
    return 128 + number


def explain(error: BaseException) -> tuple[int, str]:
    """The exit code and the sentence for an error."""
    if isinstance(error, PenstockError):
        return error.exit_code, told(error)
    if hasattr(error, "format_message"):  # a usage error; its class belongs to click or to Typer's own copy of it
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context is not None else ""
        # A command without arguments says nothing: its help stands above.
        return 2, (" ".join(error.format_message().split()).rstrip(".") or "nothing to do was named") + hint
    if isinstance(error, MemoryError):
        return 3, f"the system gives no more memory: {error or 'set memory_limit lower'}"
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{error.filename}: " if error.filename else ""
        return (3 if error.errno in _FULL else 2), f"{where}{error.strerror or os.strerror(error.errno)}"
    lines = str(error).strip().splitlines()
    what = type(error).__name__ + (f": {lines[0]}" if lines else "")
    return BUG, f"this should not happen: {what} (run again with --debug to see where, and please report it)"


def say(sentence: str) -> None:
    """One sentence on stderr."""
    print(f"penstock: {sentence}", file=sys.stderr, flush=True)


__all__ = ["BUG", "INTERRUPTED", "Terminated", "catch_signals", "exit_code", "explain", "say"]
