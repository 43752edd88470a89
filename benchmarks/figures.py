"""Put the figures of the last runs, which benchmarks/results keeps, into docs/benchmarks.md: run it without arguments.

What stands between `<!-- figures: NAME -->` and `<!-- end -->` is made anew from NAME.json; without that file it stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import RESULTS

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def lines(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    marks = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in (header, marks, *rows))


def where(record: dict[str, Any]) -> str:
    machine, rounds = record["machine"], record.get("rounds")
    busy = record.get("load_average", [0])[0] > 2 * machine["cpus"]
    about = f"; median of {rounds}" if rounds and rounds > 1 else "; one round" if rounds else ""
    if busy:
        about += (
            f"; the machine was busy with other work (load {record['load_average'][0]}): times are not to be quoted"
        )
    return (
        f"{machine['cpu']}, {machine['threads']} threads, {machine['memory'] / 2**30:.0f} GiB, Python "
        f"{machine['python']}; {record['date'][:10]}{about}"
    )


def gimv(record: dict[str, Any]) -> str:
    from gimv import NAMES

    rows = []
    for form, found in record["figures"].items():
        if "failed" in found:
            rows.append((form, "failed", "", found["failed"]))
            continue
        ratio, apart = found["times_as_fast_as_pyspark"], found["largest_relative_difference"]
        rows.append(
            (
                NAMES[form],
                f"{found['median_iteration_seconds'] * 1e3:.1f}",
                f"{ratio:.1f}" if ratio else "",
                f"{apart:.0e}",
            )
        )
    header = ("", "ms per iteration", "times as fast as PySpark", "ranks differ by at most")
    return f"{record['edges']:,} edges, {where(record)}\n\n" + lines(header, rows)


def wordcount(record: dict[str, Any]) -> str:
    from wordcount import NAMES

    rows = []
    for name, found in record["figures"].items():
        limit = f"{found['memory_limit'] / 1e6:.0f}"
        if "failed" in found:
            rows.append((NAMES[name], limit, "out of memory" if "Memory" in found["failed"] else "failed", "", ""))
            continue
        ratio = "" if name == "penstock" else f"{found['time_by_penstocks']:.2f}"
        rows.append((NAMES[name], limit, f"{found['median_seconds']:.1f}", f"{found['peak_bytes'] / 1e6:.0f}", ratio))
    header = ("", "memory limit, MB", "seconds", "peak, MB", "time by Penstock's")
    about = (
        f"{record['text_bytes'] / 1e9:.1f} GB, {record['distinct_words']:,} distinct words, {where(record)}. All that "
        "came to an end agree with coreutils."
    )
    return about + "\n\n" + lines(header, rows)


def chunks(record: dict[str, Any]) -> str:
    rows = [
        (
            f"{one['chunk_size'] >> 10} KiB" if one["chunk_size"] else f"not given ({one['chunk_bytes'] >> 10} KiB)",
            one["chunks"] or "not given", f"{one['median_seconds']:.2f}", f"{one['spill_written'] / 1e6:.0f}",
            f"{one['spill_read'] / 1e6:.0f}", f"{one['chunks_spilled']:,}", f"{one['memory_peak'] / 1e6:.0f}",
        )
        for one in record["figures"]
    ]  # fmt: skip
    header = (
        "chunk_size",
        "chunks",
        "seconds",
        "MB spilled",
        "MB read back",
        "chunks spilled",
        "most in the ledger, MB",
    )
    about = f"{record['pairs']:,} pairs under {record['memory_limit'] / 1e6:.0f} MB, {where(record)}"
    return about + "\n\n" + lines(header, rows)


def balance(record: dict[str, Any]) -> str:
    rows = [
        (
            one["ids"], one["parts"], f"{one['imbalance_percent']['lpt']:.2f} %",
            f"{one['imbalance_percent']['round robin']:.2f} %", f"{one['largest_key_percent']:.2f} %",
        )
        for one in record["figures"]
    ]  # fmt: skip
    header = ("ids", "parts", "LPT", "round robin", "the largest key alone")
    return f"Kronecker {record['scale']}, edge factor {record['edge_factor']}\n\n" + lines(header, rows)


def sorting(record: dict[str, Any]) -> str:
    from sorting import NAMES

    rows = [
        (NAMES[name], f"{found['median_seconds']:.2f}", f"{found['peak_bytes'] / 1e6:.0f}")
        if "failed" not in found
        else (NAMES[name], "failed", "")
        for name, found in record["figures"].items()
    ]
    about = f"{record['pairs']:,} pairs, a quarter is {record['limit_bytes'] / 1e6:.0f} MB, {where(record)}"
    return about + "\n\n" + lines(("", "seconds", "peak, MB"), rows)


SECTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "balance": balance,
    "chunks": chunks,
    "gimv": gimv,
    "sorting": sorting,
    "wordcount": wordcount,
}


def main() -> None:
    page = PAGE.read_text()
    for name, section in SECTIONS.items():
        path = RESULTS / f"{name}.json"
        if path.exists():
            made = section(json.loads(path.read_text()))
            mark = re.compile(rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
            page = mark.sub(lambda found, made=made: f"{found[1]}\n{made}\n\n{found[2]}", page)  # type: ignore[misc]
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
