"""Writes `_penstock/functions.py`, what NetworkX is told about the functions, from their decorators:

python -m penstock.interfaces.nx.metadata
"""

from __future__ import annotations

from pathlib import Path

from penstock.interfaces.nx import algorithms  # noqa: F401  registers the functions
from penstock.interfaces.nx.function import FUNCTIONS, PARAMETERS

HEAD = '''"""What NetworkX's documentation says of each function, written by `penstock.interfaces.nx.metadata`."""

'''


def render() -> str:
    """The text of the module."""
    functions = {name: FUNCTIONS[name].docs for name in sorted(FUNCTIONS)}
    parameters = {f"{name} : str, optional": text for name, text in PARAMETERS.items()}
    return HEAD + "\n".join(_table("PARAMETERS", parameters) + _table("FUNCTIONS", functions) + [""])


def _table(name: str, texts: dict[str, str]) -> list[str]:
    return [f"{name}: dict[str, str] = {{", *(f'    "{key}": "{text}",' for key, text in texts.items()), "}"]


def main() -> None:
    import _penstock

    Path(_penstock.__file__).with_name("functions.py").write_text(render())


if __name__ == "__main__":
    main()
