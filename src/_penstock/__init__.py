"""What NetworkX wants to know about Penstock before anyone uses it.

NetworkX calls `get_info` whenever it is imported, in every program of everyone who has Penstock installed.
So this package imports nothing: not NetworkX, not the engine.
"""

from typing import Any


def get_info() -> dict[str, Any]:
    """Penstock's entry in NetworkX's table of backends."""
    return {
        "backend_name": "penstock",
        "project": "penstock",
        "package": "penstock",
        "short_summary": "Graphs that do not fit, streamed from SSD through RAM to the GPU.",
        "default_config": {},
        "functions": {},
    }
