"""Options that several jobs have, in the words in which the command line explains them."""

from __future__ import annotations

from typing import Annotated

from penstock.options import whole

Recurse = Annotated[bool, "Of folders, take the files in the folders inside them, too."]
Listing = Annotated[bool, "The files given are lists of files, one in a line."]
Seed = Annotated[int, "The same seed gives the same result."]


def seeded(seed: int) -> int:
    """A seed, which is 64 bits, checked."""
    return whole("seed", seed, 0, 2**64 - 1)


__all__ = ["Listing", "Recurse", "Seed", "seeded"]
