"""`penstock mr JOB`: key-value work inside a memory budget, a command for each job."""

from __future__ import annotations

from penstock.interfaces.cli.mr.app import app

__all__ = ["app"]
