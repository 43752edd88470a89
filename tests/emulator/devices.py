"""Which devices there are, and which of them a thread uses."""

from __future__ import annotations

import threading
from typing import Any

DEVICES = 2
TOTAL = 1 << 30
"""Bytes of memory of each."""


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int, what: str = "") -> None:
        super().__init__(what or f"error {status}")
        self.status = status


class _Current(threading.local):
    device = 0


_CURRENT = _Current()


def current() -> int:
    return _CURRENT.device


class Device:
    def __init__(self, id: int) -> None:
        assert 0 <= id < DEVICES
        self.id = id

    def use(self) -> None:
        _CURRENT.device = self.id

    def __enter__(self) -> Device:
        self._before = current()
        self.use()
        return self

    def __exit__(self, *_: Any) -> None:
        _CURRENT.device = self._before


__all__ = ["DEVICES", "TOTAL", "CUDARuntimeError", "Device", "current"]
