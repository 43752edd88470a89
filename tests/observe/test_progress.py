from __future__ import annotations

import io
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from penstock.config import Settings, settings
from penstock.observe import bar as drawing
from penstock.observe import progress as module
from penstock.observe.bar import format_rate, format_seconds
from penstock.observe.progress import Progress, ProgressEvent, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in place of stderr. No fixture: pytest puts its own stderr back after set-up."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return screen


def recorder() -> tuple[list[ProgressEvent], Settings]:
    events: list[ProgressEvent] = []
    return events, settings(progress=events.append)


def test_silent_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    for wanted in (None, False):
        with progress("sort", total=10, settings=settings(progress=wanted)) as bar:
            bar.advance(5, residual=0.1)
            bar.update(done=7, total=9)
        assert type(bar) is Progress
    assert capfd.readouterr() == ("", "")


def test_silent_work_loads_no_rich() -> None:
    code = (
        "import sys; from penstock.config import settings; from penstock.observe.progress import progress\n"
        "with progress('sort', settings=settings()) as bar: bar.advance(3)\n"
        "with progress('sort', settings=settings(progress=print)) as bar: bar.advance(3)\n"
        "assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_callback_sees_the_stage_to_its_end() -> None:
    events, wanted = recorder()
    with progress("sort", total=100, unit="bytes", settings=wanted) as bar:
        bar.advance(30)
        bar.advance(np.uint64(70), residual=0.5)
    assert events[0] == ProgressEvent("sort", 30, 100, "bytes", events[0].seconds)
    assert events[-1] == ProgressEvent("sort", 100, 100, "bytes", events[-1].seconds, {"residual": 0.5}, finished=True)
    assert 0 <= events[0].seconds <= events[-1].seconds


def test_a_callback_is_not_called_for_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(0, 1000, 0.01))
    monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(clock)))
    events, wanted = recorder()
    with progress("sort", total=1000, settings=wanted) as bar:
        for _ in range(1000):  # ten seconds
            bar.advance()
    assert 90 <= len(events) <= 102
    assert [e.done for e in events] == sorted(e.done for e in events)
    assert events[-1].done == 1000


def test_update_sets_what_is_known_better() -> None:
    events, wanted = recorder()
    with progress("parse", settings=wanted) as bar:
        bar.update(done=4, total=8, file="a.txt")
    assert (events[0].done, events[0].total, events[0].fields) == (4, 8, {"file": "a.txt"})


def test_a_wrong_estimate_ends_at_what_was_done() -> None:
    for done in (50, 200):
        events, wanted = recorder()
        with progress("parse", total=100, settings=wanted) as bar:
            bar.advance(done)
        assert (events[-1].done, events[-1].total) == (done, done)
        assert all(e.total is not None and e.done <= e.total for e in events)


def test_a_failed_stage_does_not_finish() -> None:
    events, wanted = recorder()
    with pytest.raises(TypeError), progress("sort", settings=wanted) as bar:
        bar.advance(None)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError), progress("sort", total=3, settings=wanted):
        raise ZeroDivisionError
    assert not any(e.finished for e in events)


def test_a_late_worker_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    events, wanted = recorder()
    on_terminal(monkeypatch)
    monkeypatch.setattr(module, "INTERVAL", 0)
    for choice in (wanted, settings(progress=True)):
        with progress("sort", settings=choice) as bar:
            bar.advance()
        bar.advance()
    assert events[-1].finished


def test_a_callback_may_stop_the_work() -> None:
    def stop(event: ProgressEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress("sort", settings=settings(progress=stop)) as bar:
        bar.advance()


def test_threads_lose_no_step() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        events, wanted = recorder()
        with progress("sort", settings=wanted) as bar, ThreadPoolExecutor(8) as pool:
            for _ in range(8):
                pool.submit(lambda: [bar.advance() for _ in range(2000)])
    finally:
        sys.setswitchinterval(before)
    assert events[-1].done == 16000


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(module, "INTERVAL", 0)
    with progress("sorting", total=2_000_000, settings=settings()) as bar:
        for _ in range(3):
            bar.advance(500_000, residual=0.00125)
            time.sleep(0.01)
        assert drawing._display is not None
        drawing._display.refresh()
        assert "sorting" in terminal.getvalue()
        assert "75%" in terminal.getvalue()
        assert "left" in terminal.getvalue()
    last = terminal.getvalue().splitlines()[-1]
    assert "100%" in terminal.getvalue()
    assert "arcs/s" in terminal.getvalue()
    assert "residual 0.00125" in terminal.getvalue()
    assert last.rstrip("\r").endswith("\x1b[?25h")  # the cursor is back


def test_a_bar_can_be_forced_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setenv("COLUMNS", "100")
    with progress("reading", total=10, unit="bytes", settings=settings(progress=True)) as bar:
        bar.advance(10)
    lines = [line for line in log.getvalue().splitlines() if line.strip()]
    assert len(lines) == 1
    assert lines[0].startswith("reading")
    assert "100%" in lines[0]
    assert "B/s" in lines[0]
    assert "\x1b" not in log.getvalue()


def test_nested_stages_share_one_display(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with progress("ingest", total=2, unit="stages", settings=settings()) as outer:
        display = drawing._display
        assert display is not None
        for name in ("parse", "sort"):
            with progress(name, total=5, settings=settings()) as inner:
                assert drawing._display is display
                assert [task.description for task in display.tasks] == ["ingest", name]
                inner.advance(5)
            outer.advance()
        assert [task.description for task in display.tasks] == ["ingest"]
    assert drawing._display is None
    assert drawing._stages == 0
    assert not display.live.is_started
    text = terminal.getvalue()
    assert text.count("100%") == 3


def test_an_interrupt_leaves_a_clean_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    before = threading.active_count()
    with (
        pytest.raises(KeyboardInterrupt),
        progress("outer", settings=settings()),
        progress("inner", settings=settings()),
    ):
        raise KeyboardInterrupt
    assert drawing._display is None
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") == 1
    assert sys.stderr is terminal
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
    with progress("again", total=1, settings=settings()) as bar:
        bar.advance()
    assert "again" in terminal.getvalue()


def test_results_on_a_piped_stdout_stay_there(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with progress("run", settings=settings()):
        print("42")
    assert out.getvalue() == "42\n"
    assert "42" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("rate", "unit", "text"),
    [
        (0.4, "arcs", "0 arcs/s"),
        (999, "arcs", "999 arcs/s"),
        (1000, "arcs", "1.0 k arcs/s"),
        (512_000_000, "arcs", "512 M arcs/s"),
        (1.35e9, "arcs", "1.4 G arcs/s"),
        (2.1e9, "bytes", "2.1 GB/s"),
        (3e15, "edges", "3000 T edges/s"),
    ],
)
def test_rates(rate: float, unit: str, text: str) -> None:
    assert format_rate(rate, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.72, "0.7 s"), (9.96, "0:10"), (12, "0:12"), (59.7, "1:00"), (750, "12:30"), (3723, "1:02:03")],
)
def test_times(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
