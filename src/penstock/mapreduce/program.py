"""Map through an external program: it reads pairs or files, and the lines it prints are the pairs.

Several run at once, as many as there are threads. Their pairs come in the order of the inputs: a program that prints
much while an earlier one is still running waits for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from penstock.errors import InputError, UsageError
from penstock.mapreduce.columns import Kind, as_kind
from penstock.mapreduce.files import list_files
from penstock.mapreduce.lines import from_lines, to_lines
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.room import Kept
    from penstock.mapreduce.session import MapReduce

_BLOCK = 1 << 16
_TAIL = 4096
_PATIENCE = 0.5
"""Seconds after which a thread that waits looks up. Libraries set handlers after which the kernel goes on with a read
or with a wait for a lock as if there had been no interrupt; only what ends by itself lets Python see it."""
Feed = Callable[[IO[bytes]], None]


def map_program(
    mr: MapReduce, command: str | Sequence[str], inputs: Any = None, *, argument: bool = False, key: Any = "string",
    value: Any = "string", recurse: bool = False, listing: bool = False,
) -> KeyValue:  # fmt: skip
    """The lines `key<tab>value` that a program prints, as pairs.

    `command` is a list of words, or a line that is cut into words as a shell would; no shell runs it. `inputs` is a
    KeyValue, of which each chunk goes to the standard input of one run, or files, each for one run: as its standard
    input or, with `argument`, by name, in place of `{}` or at the end. Without inputs it runs once. `key` and `value`
    are the kinds to make of the text. A program that fails ends it all.
    """
    words = shlex.split(command) if isinstance(command, str) else [os.fspath(each) for each in command]
    if not words:
        raise UsageError("the command is empty")
    tasks = _tasks(mr, words, inputs, argument, recurse, listing)
    runs = _Runs(mr, tasks, as_kind(key), as_kind(value))
    about = progress("map program", total=len(tasks), unit="runs", settings=mr.settings)
    with mr.writer(key, value) as out, about as bar:
        try:
            mr.team.run(lambda worker: runs.serve(out, bar), alone=len(tasks) < 2)
        except BaseException:
            runs.stop()  # an interrupt may come while the other threads are waited for
            raise
        return out.done()


class _Task:
    """One run of the program."""

    def __init__(self, words: list[str], what: str, feed: Feed | None = None, path: Path | None = None) -> None:
        self.words, self.what, self.feed, self.path = words, what, feed, path


def _tasks(mr: MapReduce, words: list[str], inputs: Any, argument: bool, recurse: bool, listing: bool) -> list[_Task]:
    from penstock.mapreduce.keyvalue import KeyValue

    if isinstance(inputs, KeyValue):
        if argument:
            raise UsageError("pairs go to a program's standard input: argument=True is for files")
        return [_Task(words, f"chunk {k}", _feeder(kept)) for k, kept in enumerate(inputs.kept)]
    if inputs is None:
        return [_Task(words, "its only run")] if mr.communicator.rank == 0 else []
    if not isinstance(inputs, (str, os.PathLike, Iterable)):
        raise UsageError(f"inputs of a program are a KeyValue or files, not {type(inputs).__name__}")
    files = list_files(inputs, recurse, listing)[mr.communicator.rank :: mr.communicator.size]
    if not argument:
        return [_Task(words, str(path), path=path) for path in files]
    if any("{}" in word for word in words):
        return [_Task([word.replace("{}", str(path)) for word in words], str(path)) for path in files]
    return [_Task([*words, str(path)], str(path)) for path in files]


def _feeder(kept: Kept) -> Feed:
    def feed(pipe: IO[bytes]) -> None:
        with kept.read() as chunk:
            for some in to_lines(chunk):
                pipe.write(some)

    return feed


class _Runs:
    """The runs of one command: which is next, and whose turn it is to write."""

    def __init__(self, mr: MapReduce, tasks: list[_Task], key: Kind, value: Kind) -> None:
        self.mr, self.tasks, self.key, self.value = mr, tasks, key, value
        self._changed = threading.Condition()
        self._next = self._turn = 0
        self._stopped = False
        self._alive: set[subprocess.Popen[bytes]] = set()

    def stop(self) -> None:
        """Kill what runs, with all that it started, and let nobody wait any more."""
        with self._changed:
            self._stopped = True
            for process in self._alive:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
            self._changed.notify_all()

    def serve(self, out: Any, bar: Any) -> None:
        """Run one after the other until none is left: what each thread does."""
        try:
            while True:
                with self._changed:
                    number = self._next
                    if self._stopped or number >= len(self.tasks):
                        break
                    self._next += 1
                self._run(number, out)
                bar.advance()
            self._wait_for_turn(len(self.tasks))  # an interrupt has to find someone who looks up
        except BaseException:
            self.stop()
            raise

    def _start(self, task: _Task) -> subprocess.Popen[bytes]:
        """By a thread of its own: an interrupt, which comes to the main one, does not fall between the start of a
        process and the note of it."""
        made: list[subprocess.Popen[bytes] | BaseException] = []

        def start() -> None:
            try:
                made.append(self._started(task))
            except BaseException as error:
                made.append(error)

        helper = threading.Thread(target=start)
        helper.start()
        helper.join()
        if isinstance(made[0], BaseException):
            raise made[0]
        return made[0]

    def _started(self, task: _Task) -> subprocess.Popen[bytes]:
        with contextlib.ExitStack() as stack:
            source: Any = subprocess.PIPE if task.feed else subprocess.DEVNULL
            if task.path is not None:
                try:
                    source = stack.enter_context(task.path.open("rb"))
                except OSError as error:
                    raise InputError(f"cannot be read: {error.strerror}", path=task.path) from None
            with self._changed:
                if self._stopped:
                    raise InterruptedError
                try:
                    # A session of its own, so that it can be killed with all that it starts.
                    process = subprocess.Popen(
                        task.words, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
                    )
                except OSError as error:
                    raise UsageError(f"program {task.words[0]!r} cannot be started: {error.strerror}") from None
                self._alive.add(process)
        return process

    def _run(self, number: int, out: Any) -> None:
        task = self.tasks[number]
        try:
            process = self._start(task)
        except InterruptedError:
            return
        problems: list[BaseException] = []
        tail = bytearray()
        helpers = [threading.Thread(target=_drain, args=(process.stderr, tail), daemon=True)]
        if task.feed is not None:
            helpers.append(threading.Thread(target=_feed, args=(task.feed, process.stdin, problems), daemon=True))
        for each in helpers:
            each.start()
        try:
            self._collect(number, process, out)
            status = _ended(process)
            for each in helpers:
                each.join()
        finally:
            self._end(process)
        if self._stopped:
            return
        if problems:
            raise problems[0]
        if status:
            raise InputError(_failure(task, status, bytes(tail)))
        self._wait_for_turn(number)
        with self._changed:
            self._turn += 1
            self._changed.notify_all()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        with self._changed:
            self._alive.discard(process)
        if process.stdout is not None:
            process.stdout.close()

    def _wait_for_turn(self, number: int) -> bool:
        """Whether it has come; False when all is to end."""
        with self._changed:
            while not self._stopped and self._turn != number:
                self._changed.wait(_PATIENCE)
            return not self._stopped

    def _collect(self, number: int, process: subprocess.Popen[bytes], out: Any) -> None:
        """Its lines as columns: into `out` when it is its turn, and until then kept, up to half a chunk of them."""
        assert process.stdout is not None
        most = max(_BLOCK, self.mr.chunk_bytes // 2)
        waiting: list[bytes] = []
        size = 0
        rest = b""
        with self.mr.room.reserve(2 * most, "lines of a program"):
            while block := _read(process.stdout.fileno()):
                at = block.rfind(b"\n") + 1
                if not at:
                    rest += block
                    continue
                waiting.append(rest + block[:at])
                rest = block[at:]
                size += len(waiting[-1])
                if size >= most or (size >= 4 * _BLOCK and self._turn == number):
                    if not self._wait_for_turn(number):
                        return
                    self._write(b"".join(waiting), number, out)
                    waiting, size = [], 0
            if rest:
                waiting.append(rest + b"\n")
            # A program that failed must not leave half of its pairs behind its error: that is raised by the caller.
            if waiting and self._wait_for_turn(number):
                self._write(b"".join(waiting), number, out)

    def _write(self, data: bytes, number: int, out: Any) -> None:
        try:
            out.add_chunk(*from_lines(data, self.key, self.value))
        except InputError as error:
            task = self.tasks[number]
            raise InputError(f"program {task.words[0]!r} printed for {task.what}: {error}") from None


def _read(descriptor: int) -> bytes:
    """The next bytes; none at the end. A poll is never taken up again by the kernel, as a read may be."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not poll.poll(1000 * _PATIENCE):
        pass
    return os.read(descriptor, _BLOCK)


def _ended(process: subprocess.Popen[bytes]) -> int:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_PATIENCE)


def _drain(pipe: IO[bytes], tail: bytearray) -> None:
    """The end of what it says on stderr."""
    with pipe:
        while block := pipe.read1(_BLOCK):  # type: ignore[attr-defined]
            tail += block
            del tail[:-_TAIL]


def _feed(feed: Feed, pipe: IO[bytes], problems: list[BaseException]) -> None:
    try:
        with pipe:
            feed(pipe)
    except BrokenPipeError:
        pass  # it does not want to read all
    except BaseException as error:
        problems.append(error)


def _failure(task: _Task, status: int, tail: bytes) -> str:
    said = [line.strip() for line in tail.decode("utf-8", "replace").splitlines() if line.strip()]
    how = f"ended with exit status {status}" if status > 0 else f"was killed by signal {-status}"
    last = f": {said[-1]}" if said else " and said nothing on stderr"
    return f"program {task.words[0]!r} {how} for {task.what}{last}"


__all__ = ["map_program"]
