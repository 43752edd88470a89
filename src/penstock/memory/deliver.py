"""Disk to device by threads that never meet in the interpreter.

A thread that goes through Python for each read, copy and event waits for its turn there three times a MiB: with six
threads that, not the disk, is the bound. This kernel takes a whole batch.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penstock.memory.device import foreign, inlined, template_kernel
from penstock.memory.fingerprint import fingerprint
from penstock.memory.gpu import DRIVER, SIMULATED

READ = np.dtype([("file", "i8"), ("offset", "i8"), ("into", "u8"), ("needed", "i8"), ("asked", "u8")])
"""`asked` bytes of a descriptor, of which `needed` must be there, go to byte `into` of a buffer."""
COPY = np.dtype([("start", "u8"), ("to", "u8"), ("nbytes", "u8")])
"""Bytes from `start` of a buffer go to an address of the device."""


def _made(pread, copy, record, wait):
    def deliver(reads, copies, ends, begin, filled, memory, room, events, stream):
        """Read pieces from `begin` on into buffers of `room` bytes, in turn, and begin to copy each to the device.
        `ends`: where the reads and the copies of each piece end. A buffer is filled when its event has come by.

        Returns (the number of pieces, 0), (the piece whose read was not answered in full, 0), or (a piece, an error of
        the driver's). Piece `filled` is in its buffer already.
        """
        for piece in range(begin, len(ends)):
            turn = piece % len(events)
            buffer = memory + np.uint64(turn) * room
            error = wait(events[turn])
            if piece != filled:
                for k in range(ends[piece - 1, 0] if piece else 0, ends[piece, 0]):
                    each = reads[k]
                    got = pread(np.int32(each.file), buffer + each.into, each.asked, each.offset)
                    if got < each.needed:
                        return piece, 0
            for k in range(ends[piece - 1, 1] if piece else 0, ends[piece, 1]):
                one = copies[k]
                error = error or copy(one.to, buffer + one.start, one.nbytes, stream)
            error = error or record(events[turn], stream)
            if error:
                return piece, error
        return len(ends), 0

    return deliver


@functools.cache
def delivery() -> Any:
    """The kernel, with the driver's functions, or with what stands in for them in the simulator."""
    pread = foreign("pread", "intp", "int32", "uintp", "uintp", "intp")
    if not SIMULATED:
        copy = foreign("cuMemcpyHtoDAsync_v2", "int32", "uintp", "uintp", "uintp", "uintp", library=DRIVER)
        record = foreign("cuEventRecord", "int32", "uintp", "uintp", library=DRIVER)
        wait = foreign("cuEventSynchronize", "int32", "uintp", library=DRIVER)
        return template_kernel(_made(pread, copy, record, wait), fingerprint("deliver", _made))
    move = foreign("memmove", "uintp", "uintp", "uintp", "uintp")

    @inlined
    def moved(to, start, nbytes, stream):
        move(to, start, nbytes)
        return np.int32(0)

    @inlined
    def nothing(*_):
        return np.int32(0)

    return template_kernel(_made(pread, moved, nothing, nothing), fingerprint("deliver", _made, "simulated"))


__all__ = ["COPY", "READ", "delivery"]
