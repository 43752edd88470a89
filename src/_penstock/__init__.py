"""What NetworkX wants to know about Penstock before anyone uses it.

NetworkX calls `get_info` whenever it is imported, in every program of everyone who has Penstock installed.
So this package imports nothing but itself: not NetworkX, not the engine.
"""

from typing import Any

from _penstock.functions import FUNCTIONS, PARAMETERS


def get_info() -> dict[str, Any]:
    """Penstock's entry in NetworkX's table of backends."""
    return {
        "backend_name": "penstock",
        "project": "penstock",
        "package": "penstock",
        "short_summary": "Graphs that do not fit, streamed from SSD through RAM to the GPU.",
        # min_edges: graphs of fewer edges are left to NetworkX unless the backend is named in the call.
        "default_config": {"min_edges": 20_000, "memory_limit": None, "device": None},
        "functions": {
            name: {"additional_docs": text, "additional_parameters": dict(PARAMETERS)}
            for name, text in FUNCTIONS.items()
        },
    }
