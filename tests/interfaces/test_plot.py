"""`penstock plot`: a picture of a store or of a result; what will not do is refused before anything is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Call

pytest.importorskip("matplotlib")


def test_a_store_and_a_result(cli: Call, made: Path) -> None:
    done = cli("plot", "degree", made, "-o", "degree.svg")
    assert done.exit_code == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", f"degree.svg: degree of {made}\n")
    assert Path("degree.svg").stat().st_size > 1000
    assert cli("run", "pagerank", made, "-o", "ranks.csv", "-q").exit_code == 0
    for kind in ("rank", "values"):
        done = cli("plot", kind, "ranks.csv", "-o", f"{kind}.png", "-q")
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
        assert Path(f"{kind}.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["dgree", "kron.pen", "-o", "x.png"], 2, "do you mean degree?"),
        (["degree", "korn.pen", "-o", "x.png"], 2, "korn.pen does not exist, do you mean kron.pen?"),
        (["degree", "kron.pen", "-o", "x.jpg"], 2, "x.jpg does not end in one of .png, .svg, .pdf"),
        (["degree", "kron.pen", "-o", "there.png"], 2, "there.png exists"),
        (["degree", "kron.pen", "-o", "nowhere/x.png"], 2, "nowhere"),
        (["degree", "kron.pen"], 2, "--output"),
        (["degree", "kron.pen", "-o", "x.png", "--direction", "up"], 2, "direction must be one of"),
        (["rank", "kron.pen", "-o", "x.png", "--memory-limit", "30kB"], 3, "set memory_limit to at least"),
    ],
)
def test_refused(cli: Call, store: Path, words: list[str], code: int, reason: str) -> None:
    Path("there.png").write_text("mine")
    refused = cli("plot", *words)
    assert refused.exit_code == code
    assert refused.stderr.startswith("penstock: ")
    assert refused.stderr.count("\n") == 1
    assert reason in refused.stderr
    assert not Path("x.png").exists()
    assert Path("there.png").read_text() == "mine"
