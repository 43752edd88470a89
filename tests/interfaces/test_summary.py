"""What is said on stderr of a run, where it was on a GPU or should have been."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.interfaces.cli.summary import details, remarks, run_summary

from .conftest import Call

HOST = {"form": "combine", "sides": ["in"], "tier": "disk", "ranges": 5, "why": ["the pages do not fit"]}
DEVICE = {
    "ranges": 1, "windows": 1, "state_bytes": 3_000_000, "pages_bytes": 9_000_000, "lists_bytes": 0, "resident": True,
}  # fmt: skip


def stats(*plans: tuple[str, dict[str, Any] | None], **more: Any) -> dict[str, Any]:
    """Of programs, each with the plan of the GPU if it was there."""
    gpu = {
        "name": "Card", "source": "host", "resident": False, "bytes_copied": 10, "ledger_peak": 7_000_000,
        "memory_limit": 8_000_000, "plans": [{"program": name} | there for name, there in plans if there],
    }  # fmt: skip
    return {
        "algorithm": "hits", "seconds": 1.0, "phases": {"run": 1.0}, "peak_memory": 1, "iterations": 2,
        "plans": [{"program": name} | HOST for name, _ in plans], "gpu": gpu | more.pop("gpu", {}), **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({}, None),
        ({"windows": 4}, "state in 4 windows"),
        ({"windows": 8, "ranges": 8}, "state in 8 ranges"),
        ({"ranges": 9, "lists_bytes": 5}, "lists in 9 ranges"),
        (None, "state in 5 ranges"),
    ],
)
def test_the_parts_are_those_of_who_ran_it(there: dict[str, Any] | None, said: str | None) -> None:
    _, second = run_summary(stats(("a", None if there is None else DEVICE | there)))
    assert [part for part in second.split(", ") if part.startswith(("state", "lists"))] == ([said] if said else [])


def test_details_of_each_program() -> None:
    streamed = DEVICE | {"windows": 4, "resident": False}
    lines = details(stats(("a", DEVICE), ("b", None), ("c", streamed)))
    assert lines[1:] == [
        "a: combine over in arcs, on the GPU, 3.0 MB of its memory for the state, all pages there, 9.0 MB",
        "b: combine over in arcs, tier disk, the pages do not fit",
        "c: combine over in arcs, on the GPU, 3.0 MB of its memory for the state at a time, state in 4 windows, "
        "9.0 MB of pages streamed",
        "memory of the GPU: 7.0 MB of 8.0 MB used",
    ]


def test_several_gpus_are_counted() -> None:
    assert run_summary(stats(("a", DEVICE), gpu={"gpus": 2}))[1].startswith("on 2 GPUs, Card, streamed from host")
    assert run_summary(stats(("a", DEVICE), gpu={"gpus": 1}))[1].startswith("on Card, streamed from host")
    assert remarks(stats(("a", DEVICE), gpu={"shared": "4 devices share 1 GPU"})) == ["4 devices share 1 GPU"]
    why = {"why_one_gpu": "sweep programs run on one GPU"}
    assert remarks(stats(("a", DEVICE), **why)) == []
    assert remarks(stats(("a", DEVICE), **why), verbose=True) == ["not on several GPUs: sweep programs run on one GPU"]


def test_why_it_is_not_on_the_gpu() -> None:
    for device, asked in (("auto", False), ("gpu", True), ("gpu:1", True)):
        settings = {"why_not_gpu": "it is too large", "settings": {"device": device}}
        nowhere, some = stats(("a", None), **settings), stats(("a", None), ("b", DEVICE), **settings)
        assert remarks(nowhere) == (["not on the GPU: it is too large"] if asked else [])
        assert remarks(nowhere, verbose=True) == ["not on the GPU: it is too large"]
        assert remarks(some, verbose=True) == ["not all on the GPU: it is too large"]
        assert remarks(stats(("a", DEVICE), settings={"device": device}), verbose=True) == []


def test_on_the_command_line(cli: Call, made: Any) -> None:
    why = "not on the GPU: degree runs no program, and what it reads is not worth the way to a GPU\n"
    assert why in cli("run", "degree", made, "--device", "gpu").stderr
    assert why not in cli("run", "degree", made).stderr
    assert cli("run", "degree", made, "--device", "gpu", "-q").stderr == ""


def test_clusters_and_the_lists_that_were_compared_for_them() -> None:
    plans = [{"program": "scan", "form": "common", "tier": "disk", "ranges": 3}, {"program": "hubs"} | HOST]
    found = {"algorithm": "scan", "seconds": 1.0, "peak_memory": 1, "plans": plans, "clusters": 2, "hubs": 1}
    first, second = run_summary(found)
    assert first == "scan: 2 clusters, 1 hub, 1.0 s"
    assert "state in 5 ranges, lists in 3 ranges" in second
