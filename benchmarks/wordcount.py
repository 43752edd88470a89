"""Word count of a 2 GB text under a budget of 256 MB, beside a DuckDB query, and checked against coreutils.

The text is Zipf's: the word of rank r comes up about in proportion to 1/r, frequent words are short, and more than five
million distinct ones are there. Penstock and DuckDB count from the file into a file of lines, each in a process
of its own, on two threads, the text not in the page cache. DuckDB has two forms of the query, lines split and unnested,
and words read as CSV fields; it may spill and need not keep any order, and under the small limit its CSV buffers are
small. Where that limit is not enough for it, it has 4 GB beside; of all forms, the fastest is run in every round.

Coreutils (`tr`, `sort`, `uniq -c`) need minutes: their answer, a digest of all counts, is kept beside the results with
the digest of the text, and found out anew where the text is another one, or with `--coreutils`.

`python benchmarks/run.py wordcount`, or `python benchmarks/wordcount.py --bytes 2000000000 --rounds 3`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, child, evict, median, save, table

BYTES, WORDS, THREADS = 2_000_000_000, 10_000_000, 2
LIMIT, MORE = 256_000_000, 4_000_000_000
ANSWERS = RESULTS / "wordcount.coreutils.json"

PENSTOCK = """
from pathlib import Path
from penstock.apps.jobs.wordcount import word_count
from penstock.mapreduce.session import MapReduce
text, target, limit, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def run(text, limit):
    with MapReduce(memory_limit=limit, threads=threads, temp_directory=Path(target).parent, device="cpu") as mr:
        with word_count(mr, text) as found:
            found.write(target, ("word", "count"), overwrite=True)
        return mr.stats()
few = Path(target + ".few")
with open(text, "rb") as file:
    few.write_bytes(file.read(1 << 22))
run(few, 4 << 20)
few.unlink()
with open("/proc/self/status") as file:
    start = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))
began, cpu = time.perf_counter(), time.process_time()
stats = run(text, limit)
seconds = time.perf_counter() - began
extra = {"cpu_seconds": time.process_time() - cpu, "spilled": stats["spill_written"], "start_bytes": start}
"""

DUCKDB = """
import duckdb
text, target, limit, threads, form = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
connection = duckdb.connect()
connection.execute(
    f"SET memory_limit='{limit}B'; SET threads={threads}; SET temp_directory='{target}.tmp';"
    "SET preserve_insertion_order=false; SET enable_progress_bar=false"
)
small = ", max_line_size=100000, buffer_size=1000000" if limit < 1e9 else ""
about = "quote='', escape='', header=false, auto_detect=false" + small
if form == "lines":
    words = (
        "unnest(string_split(line, ' ')) AS w "
        f"FROM read_csv('{text}', columns={{'line': 'VARCHAR'}}, delim='\\1', {about})"
    )
else:
    names = [f"c{k}" for k in range(12)]
    kinds = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    words = (
        f"unnest([{', '.join(names)}]) AS w "
        f"FROM read_csv('{text}', columns={{{kinds}}}, delim=' ', null_padding=true, {about})"
    )
query = f"SELECT w, count(*) FROM (SELECT {words}) WHERE w <> '' GROUP BY w"
began, cpu = time.perf_counter(), time.process_time()
try:
    connection.execute(f"COPY ({query}) TO '{target}' (FORMAT csv, DELIMITER ' ', HEADER false, QUOTE '')")
except duckdb.Error as error:
    extra = {"failed": str(error).splitlines()[0]}
seconds = time.perf_counter() - began
extra["cpu_seconds"] = time.process_time() - cpu
extra["version"] = duckdb.__version__
"""

CODE = {
    "penstock": (PENSTOCK, LIMIT, ""),
    "duckdb lines": (DUCKDB, LIMIT, "lines"),
    "duckdb fields": (DUCKDB, LIMIT, "fields"),
    "duckdb lines, more": (DUCKDB, MORE, "lines"),
    "duckdb fields, more": (DUCKDB, MORE, "fields"),
}
NAMES = {
    "penstock": "Penstock",
    "duckdb lines": "DuckDB, lines split",
    "duckdb fields": "DuckDB, CSV fields",
    "duckdb lines, more": "DuckDB, lines split",
    "duckdb fields, more": "DuckDB, CSV fields",
}


# ---- the text


def vocabulary(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Words of one syllable, then of two, and so on, each with a space; and their lengths."""
    consonants, vowels = np.frombuffer(b"bcdfghjklmnpqrstvwxz", np.uint8), np.frombuffer(b"aeiou", np.uint8)
    syllables = np.stack([np.repeat(consonants, 5), np.tile(vowels, 20)], 1)
    words, lengths = np.full((count, 9), ord(" "), np.uint8), np.empty(count, np.uint8)
    first, size = 0, 1
    while first < count:
        last = min(first + 100**size, count)
        number = np.arange(last - first)
        for k in range(size)[::-1]:
            words[first:last, 2 * k : 2 * k + 2] = syllables[number % 100]
            number //= 100
        lengths[first:last] = 2 * size + 1
        first, size = last, size + 1
    return words, lengths


def make_text(path: Path, size: int, count: int) -> str:
    """Write the text, twelve words in a line; returns its digest."""
    import xxhash

    words, lengths = vocabulary(count)
    random, digest, made = np.random.default_rng(1), xxhash.xxh3_64(), 0
    columns = np.arange(words.shape[1], dtype=np.uint8)
    with path.open("wb") as out:
        while made < size:
            # Uniform in the logarithm of the rank.
            rank = (np.exp(random.random(12 << 15) * np.log(count + 1)) - 1).astype(np.int64)
            np.clip(rank, 0, count - 1, out=rank)
            length = lengths[rank]
            text = words[rank][columns < length[:, None]]
            text[np.cumsum(length, dtype=np.int64)[11::12] - 1] = ord("\n")
            out.write(text)
            digest.update(text)
            made += len(text)
    return digest.hexdigest()


# ---- the answer


def digest_of(counts: Path) -> dict[str, Any]:
    """A digest of the lines `word<tab>count`, sorted, and how many there are. Words may be in quotes."""
    sort = f"tr -d '\"' < '{counts}' | tr ' ' '\\t' | sort --parallel=2 -S 512M -T '{counts.parent}'"
    found, lines = hashlib.sha256(), 0
    with subprocess.Popen(sort, shell=True, stdout=subprocess.PIPE, env=os.environ | {"LC_ALL": "C"}) as process:
        assert process.stdout is not None
        while block := process.stdout.read(1 << 20):
            found.update(block)
            lines += block.count(b"\n")
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, sort)
    return {"digest": found.hexdigest(), "distinct": lines}


def coreutils(text: Path, key: str, again: bool) -> dict[str, Any]:
    """What coreutils find, of this text once."""
    kept = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    if again or key not in kept:
        counts = text.with_suffix(".uniq")
        subprocess.run(
            f"tr -s ' ' '\\n' < '{text}' | sort --parallel=2 -S 1G -T '{text.parent}' | uniq -c > '{counts}'",
            shell=True, check=True, env=os.environ | {"LC_ALL": "C"},
        )  # fmt: skip
        lines = text.with_suffix(".lines")
        subprocess.run(f"sed -E 's/^ *([0-9]+) (.*)$/\\2\\t\\1/' '{counts}' > '{lines}'", shell=True, check=True)
        kept[key] = digest_of(lines)
        for path in (counts, lines):
            path.unlink()
        RESULTS.mkdir(exist_ok=True)
        ANSWERS.write_text(json.dumps(kept, indent=1) + "\n")
    return dict(kept[key])


# ---- the runs


def measure(name: str, text: Path, want: dict[str, Any], checked: set[str]) -> dict[str, Any]:
    """One run; the first that comes to an end is compared with coreutils'."""
    evict([text])
    target = text.with_name("counts.txt")
    code, limit, form = CODE[name]
    try:
        done = child(code, str(text), str(target), str(limit), str(THREADS), form)
        if "failed" not in done and name not in checked:
            found = digest_of(target)
            if found["digest"] != want["digest"]:
                raise SystemExit(f"{name} counts other words than coreutils: {found['distinct']:,} distinct ones")
            checked.add(name)
        return done
    except subprocess.CalledProcessError as error:
        return {"failed": f"exit status {error.returncode}"}
    finally:
        target.unlink(missing_ok=True)
        shutil.rmtree(f"{target}.tmp", ignore_errors=True)


def run(folder: Path, size: int, rounds: int, names: list[str], again: bool = False) -> dict[str, Any]:
    text = folder / "zipf.txt"
    key = make_text(text, size, max(1000, WORDS * size // BYTES))
    os.sync()
    try:
        want = coreutils(text, key, again)
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        checked: set[str] = set()
        for turn in range(rounds):
            # Of the forms that are beside the point only the faster one is run again.
            slow = _slower(results) if turn else set()
            for name, runs in results.items():
                if name in slow or (runs and "failed" in runs[-1]):
                    continue
                runs.append(measure(name, text, want, checked))
        size = text.stat().st_size
    finally:
        text.unlink()
    return report(results, want, size, rounds, key)


def _slower(results: dict[str, list[dict[str, Any]]]) -> set[str]:
    ended = {name: runs[0]["seconds"] for name, runs in results.items() if runs and "failed" not in runs[0]}
    peers = [name for name in ended if name != "penstock"]
    return set(peers) - {min(peers, key=lambda name: ended[name])} if peers else set()


def report(
    results: dict[str, list[dict[str, Any]]], want: dict[str, Any], size: int, rounds: int, key: str
) -> dict[str, Any]:
    seconds = {name: median([one["seconds"] for one in runs]) for name, runs in results.items() if _ended(runs)}
    rows, figures = [], {}
    for name, runs in results.items():
        limit = CODE[name][1]
        figures[name] = {"memory_limit": limit}
        if name not in seconds:
            rows.append((NAMES[name], f"{limit / 1e6:.0f}", "failed", "", "", "", runs[-1]["failed"][:60]))
            figures[name] |= {"failed": runs[-1]["failed"]}
            continue
        peak = max(one["peak"] for one in runs)
        ratio = seconds[name] / seconds["penstock"] if "penstock" in seconds else None
        rows.append(
            (
                NAMES[name], f"{limit / 1e6:.0f}", f"{seconds[name]:.1f}", f"{size / seconds[name] / 1e6:.0f}",
                f"{median([one['cpu_seconds'] for one in runs]):.1f}",
                f"{peak / 1e6:.0f}", "" if ratio is None or name == "penstock" else f"{ratio:.2f} x Penstock's",
            )
        )  # fmt: skip
        figures[name] |= {
            "seconds": [round(one["seconds"], 3) for one in runs],
            "median_seconds": seconds[name],
            "peak_bytes": peak,
            "time_by_penstocks": ratio,
            "agrees_with_coreutils": True,
            **{
                note: runs[-1][note]
                for note in ("cpu_seconds", "spilled", "start_bytes", "version")
                if note in runs[-1]
            },
        }
    title = (
        f"Word count: {size / 1e9:.1f} GB of text, {want['distinct']:,} distinct words, {THREADS} threads; all "
        f"that came to an end agree with coreutils; median of {rounds}"
    )
    table(title, ("", "limit MB", "seconds", "MB/s", "CPU seconds", "peak MB", "time"), rows)
    return {
        "text_bytes": size, "text_digest": key, "distinct_words": want["distinct"], "threads": THREADS,
        "rounds": rounds, "counts_digest": want["digest"], "figures": figures,
    }  # fmt: skip


def _ended(runs: list[dict[str, Any]]) -> bool:
    return bool(runs) and "failed" not in runs[-1]


def main(folder: Path, scale: int, rounds: int) -> None:
    """2 GB from scale 20 on, as the others' graphs are large from there; 20 MB below."""
    size = BYTES if scale >= 20 else BYTES // 100
    print(f"kept in {save('wordcount', run(folder, size, rounds, list(CODE)))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--only", nargs="*", default=list(CODE), choices=list(CODE))
    parser.add_argument("--coreutils", action="store_true", help="ask coreutils again")
    parser.add_argument("--no-save", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    found = run(given.folder, given.bytes, given.rounds, given.only, given.coreutils)
    if not given.no_save:
        print(f"kept in {save('wordcount', found)}")
