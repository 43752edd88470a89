"""Threads that run together, and are started when they are needed."""

from __future__ import annotations

import threading

import pytest

from penstock.memory.team import Team


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("penstock-team")]


def test_threads_are_started_when_they_are_needed() -> None:
    team = Team(3)
    assert team.run(lambda worker: worker, alone=True) == [0]
    assert names() == []
    for _ in range(2):
        assert sorted(team.run(lambda worker: worker)) == [0, 1, 2]
        assert len(names()) == 2
    team.close()
    assert names() == []


def test_a_team_that_was_never_needed() -> None:
    Team(3).close()
    assert names() == []


def test_an_error_of_any_thread_comes_up() -> None:
    team = Team(3)

    def task(worker: int) -> None:
        if worker == 2:
            raise KeyError("two")

    for _ in range(2):
        with pytest.raises(KeyError, match="two"):
            team.run(task)
    team.close()
