"""The bar on the terminal: one live display for all stages under way; finished ones scroll up as lines of a log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID
from rich.progress import Progress as Display
from rich.table import Column
from rich.text import Text

from penstock.config import format_size
from penstock.observe.progress import Counted, ProgressEvent

_lock = threading.RLock()
_display: Display | None = None
_stages = 0


def format_rate(rate: float, unit: str) -> str:
    """`512 M arcs/s`, `2.1 GB/s`."""
    if unit == "bytes":
        return f"{format_size(rate)}/s"
    for prefix in ("", "k ", "M ", "G ", "T "):
        if rate < 999.5 or prefix == "T ":
            return f"{rate:.1f} {prefix}{unit}/s" if rate < 99.95 and prefix else f"{rate:.0f} {prefix}{unit}/s"
        rate /= 1000
    raise AssertionError


def format_seconds(seconds: float) -> str:
    """`0.7 s`, `0:12`, `12:30`, `1:02:03`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _percentage(task: Task) -> str:
    return "" if task.total is None else f"{task.percentage:.0f}%"


def _rate(task: Task) -> str:
    # The last rate shown is the mean of the whole stage; before, that of the last half minute.
    rate = task.speed if not task.fields["finished"] else task.completed / max(task.fields["seconds"], 1e-9)
    return format_rate(rate, task.fields["unit"]) if rate else ""


def _time(task: Task) -> str:
    if task.fields["finished"]:
        return format_seconds(task.fields["seconds"])
    left = task.time_remaining
    return format_seconds(task.elapsed or 0) + ("" if left is None else f", {format_seconds(left)} left")


def _notes(task: Task) -> str:
    notes = task.fields["notes"]
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in notes.items()
    )


class _Cell(ProgressColumn):
    """A column that says what `text` makes of a task; never wrapped, so that a narrow terminal stays tidy."""

    def __init__(self, text: Callable[[Task], str], *, width: int, right: bool = False) -> None:
        super().__init__(
            Column(min_width=width, no_wrap=True, overflow="ellipsis", justify="right" if right else "left")
        )
        self._text = text

    def render(self, task: Task) -> Text:
        return Text(self._text(task), no_wrap=True, overflow="ellipsis")


def _new_display() -> Display:
    return Display(
        _Cell(lambda task: task.description, width=18),
        BarColumn(bar_width=16),
        _Cell(_percentage, width=4, right=True),
        _Cell(_rate, width=13, right=True),
        _Cell(_time, width=16, right=True),
        _Cell(_notes, width=0),
        console=Console(stderr=True),
        transient=True,
        # What a program prints on a piped stdout is its result and must not end up on stderr.
        redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
    )


class Bar(Counted):
    """A stage with a line on the terminal."""

    def __enter__(self) -> Self:
        global _display, _stages  # noqa: PLW0603
        with _lock:
            if _display is None:
                display = _new_display()
                try:
                    display.start()
                except BaseException:
                    display.stop()
                    raise
                _display = display
            _stages += 1
            self._display = _display
            self._task: TaskID = _display.add_task(
                self._stage, total=self._total, unit=self._unit, seconds=0.0, finished=False, notes={}
            )
        return super().__enter__()

    def show(self, event: ProgressEvent) -> None:
        self._display.update(
            self._task,
            completed=event.done,
            total=event.total,
            seconds=event.seconds,
            finished=event.finished,
            notes=event.fields,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        global _display, _stages  # noqa: PLW0603
        try:
            super().__exit__(kind, error, traceback)
        finally:
            with _lock:
                _stages -= 1
                display = self._display
                try:
                    row = next(task for task in display.tasks if task.id == self._task)
                    display.remove_task(self._task)
                    display.refresh()  # or the line would stand there twice until the next refresh
                    if kind is None:
                        display.console.print(display.make_tasks_table([row]))
                finally:
                    if _stages == 0:
                        _display = None
                        display.stop()


__all__ = ["Bar", "format_rate", "format_seconds"]
