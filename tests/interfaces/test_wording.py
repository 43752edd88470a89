"""Sentences in the words of the command line."""

from __future__ import annotations

import pytest

from penstock.errors import InputError, TargetExists, UsageError
from penstock.interfaces.cli.wording import as_options, told

from .conftest import Call


@pytest.mark.parametrize(
    ("python", "option"),
    [
        ("use ids='string' if the ids are names", "use --ids string if the ids are names"),
        ("give fill={'w': VALUE}", "give --fill 'w=VALUE'"),
        ("pass fill={'two words': value} or allow_nan=True", "pass --fill 'two words=VALUE' or --allow-nan"),
        ("give vertex_fill={'age': ...}", "give --vertex-fill 'age=VALUE'"),
        ("give allow_empty=True for a graph", "give --allow-empty for a graph"),
        ("leave it out with columns=[], or", "leave it out with --columns '', or"),
        (
            "leave it out of columns=, or give its type with types=",
            "leave it out of --columns, or give its type with --type",
        ),
        ("choose one with columns= (--columns)", "choose one with --columns"),
        ("pass renumber=True (--renumber) to", "pass --renumber to"),
        ("pass --overwrite (overwrite=True)", "pass --overwrite"),
        ("build it with undirected=True", "build it with --undirected"),
        ("max_iter must be at least 1", "--max-iter must be at least 1"),
        ("set memory_limit to at least 4 MB", "set memory_limit to at least 4 MB"),
    ],
)
def test_keywords_become_options(python: str, option: str) -> None:
    assert as_options(python) == option


def test_what_is_quoted_from_the_input_stays() -> None:
    error = InputError("ids='string' is not an integer id", path="columns=.txt", line=3, hint="use ids='string'")
    assert told(error) == "columns=.txt, line 3: ids='string' is not an integer id (use --ids string)"
    assert told(InputError("header= is odd", path="a")) == "a: header= is odd"
    assert told(UsageError("format= is for files")) == "--format is for files"
    assert told(TargetExists("a.pen exists: pass --overwrite (overwrite=True)")) == "a.pen exists: pass --overwrite"


def test_advice_can_be_followed(cli: Call) -> None:
    with open("names.txt", "w") as file:
        file.write("1 2\nann bob\n")
    with open("gap.csv", "w") as file:
        file.write("src,dst,w\n1,2,0.5\n2,3,\n")
    with open("none.txt", "w") as file:
        file.write("# nothing\n")
    for name, advice, words in (
        ("names.txt", "--ids string", ("--ids", "string")),
        ("gap.csv", "--fill 'w=VALUE'", ("--fill", "w=0")),
        ("none.txt", "--allow-empty", ("--allow-empty",)),
    ):
        refused = cli("ingest", name, "-o", "a.pen")
        assert (refused.exit_code, advice in refused.stderr) == (2, True), refused.stderr
        assert cli("ingest", name, "-o", f"{name}.pen", *words).exit_code == 0


def test_advice_is_of_the_command_that_can(cli: Call) -> None:
    with open("names.txt", "w") as file:
        file.write("1 2\nann bob\n")
    with open("none.txt", "w") as file:
        file.write("# nothing\n")
    for words in (("run", "pagerank"), ("explain", "pagerank"), ("mr", "degree"), ("mr", "gimv", "components")):
        for name, advice in (("names.txt", "use --ids string"), ("none.txt", "give --allow-empty")):
            refused = cli(*words, name)
            assert refused.exit_code == 2
            assert f"(build a store with penstock ingest first: {advice} " in refused.stderr, refused.stderr
    assert "(use --ids string " in cli("ingest", "names.txt", "-o", "a.pen").stderr
