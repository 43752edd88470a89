"""The commands of key-value work: one for each job, made of its annotated parameters, and those on whole graphs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from penstock.apps.jobs import JOBS, Job, options_of
from penstock.errors import UsageError
from penstock.interfaces.cli.mr import gimv, matrices
from penstock.interfaces.cli.mr.outcome import Tables, running
from penstock.interfaces.cli.mr.session import session
from penstock.interfaces.cli.options import Limits, limits, spill, with_options
from penstock.interfaces.cli.run import Targets, job_targets

EXAMPLES = {
    "word_count": "penstock mr word-count books/ -o counts.parquet --memory-limit 256MB",
    "histogram": "penstock mr histogram visits.parquet --column country",
    "kmeans": "penstock mr kmeans points.npy --k 8",
    "rmat": "penstock mr rmat --levels 16 --nonzeros 8 -o edges.parquet",
    "triangles": "penstock mr triangles edges.txt --memory-limit 1GB -o triangles.parquet",
}
_METAVARS = {"text": "FILE...", "keys": "FILE...", "points": "POINTS.npy", "edges": "EDGES"}
_HELPS = {
    "text": "Text files; folders stand for the files in them.",
    "keys": "Text files, whose lines are the keys, or tables (.parquet .arrow .csv).",
    "points": "An array of two dimensions, as numpy.save writes it.",
    "edges": "A store, or an edge list in any format that ingest reads; ids are whole numbers.",
}
_MORE = {"similarity": matrices.similarity, "shortest_paths": matrices.shortest_paths}


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "")


class Commands(TyperGroup):
    """All jobs by name. One is imported when it is called, not when it is listed; `wordcount` is `word-count`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name.replace("_", "-") for name in (*JOBS, *_MORE)] + ["gimv"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name == "gimv":
            found = typer.main.get_command(gimv.app)
            found.name = cmd_name
            return found
        name = self._known(cmd_name)
        return None if name is None else TyperCommand(cmd_name, help=_sentence(name))

    def _known(self, word: str) -> str | None:
        return next((name for name in (*JOBS, *_MORE) if _plain(name) == _plain(word)), None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] == "gimv":
            return "gimv", self.get_command(ctx, "gimv"), args[1:]
        name = self._known(args[0])
        if name is not None:
            return name.replace("_", "-"), command(name), args[1:]
        if ctx.resilient_parsing:  # of a line that is being completed
            return None, None, args[1:]
        raise UsageError(f"there is no job {args[0]!r}; there are {', '.join(self.list_commands(ctx))}")


app = typer.Typer(cls=Commands, no_args_is_help=True, help="Key-value work (MapReduce) inside the memory you allow.")


@app.callback()
def _group() -> None:
    pass


def _sentence(name: str) -> str:
    text = JOBS[name].finds if name in JOBS else str(_MORE[name].__doc__)
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def command(name: str) -> Any:
    """The command of one job."""
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    text = _sentence(name) + (f"\n\n{EXAMPLES[name]}" if name in EXAMPLES else "")
    call = _call(name, JOBS[name]) if name in JOBS else _MORE[name]
    alone.command(name.replace("_", "-"), help=text, context_settings={"help_option_names": ["-h", "--help"]})(call)
    return typer.main.get_command(alone)


def _call(name: str, job: Job) -> Any:
    from penstock.interfaces.cli.parameters import chosen, group, parameters

    known = options_of(name)

    @with_options(
        given=_inputs(job),
        options=group(parameters(known)),
        targets=job_targets,
        limits=limits,
        session=session,
        spill=spill,
    )
    def call(
        given: Any,
        options: dict[str, Any],
        targets: Targets,
        limits: Limits,
        session: dict[str, Any],
        spill: dict[str, Any],
    ) -> None:
        from penstock.apps import jobs

        with running(name.replace("_", "-"), session | spill, targets, limits) as (mr, finish):
            inputs = () if given is None else (given,)
            found = getattr(jobs, name)(mr, *inputs, **chosen(known, options, "int64"))
            finish(Tables(found, job.columns, _files(job, given, options), job.ranked))

    return call


def _inputs(job: Job) -> Any:
    """What a job reads, as a group of one argument or none."""

    def given(**values: Any) -> Any:
        return next(iter(values.values()), None)

    made = []
    if job.takes != "nothing":
        kind: Any = list[Path] if job.takes in ("text", "keys") else Path
        about = typer.Argument(metavar=_METAVARS[job.takes], help=_HELPS[job.takes], show_default=False)
        made.append(inspect.Parameter("inputs", inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, about]))
    given.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
    return given


def _files(job: Job, given: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What the numbers of files stand for."""
    if "file" not in job.columns:
        return {}
    from penstock.mapreduce.files import list_files

    return {"file": [str(path) for path in list_files(given, options["recurse"], options["listing"])]}


__all__ = ["app"]
