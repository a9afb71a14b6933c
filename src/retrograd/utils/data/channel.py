"""Objects from one process to another: what is small through a pipe, tensors through shared memory.

Note [Between processes]
An object is pickled with its arrays' memory beside the pickle (protocol 5).  If all that is small it goes through the
pipe.  If it is large it is copied once, into a file that lies in memory and has no name, and the file's descriptor goes
through the pipe.  The receiver maps it, and its tensors lie in that map: there is no second copy, and the memory
goes with the last of them.  Nothing has a name that could be left behind, whoever dies when; nor does it count against
the size of /dev/shm.

Messages in the pipe are small, so that a sender is not held up for long by a receiver who is busy.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import struct
import tempfile
from multiprocessing import reduction
from typing import Any

from ...core.shared_memory import SharedMap

_SMALL = 32 << 10  # bytes that go through the pipe
_ALIGNMENT = 64
_CAN_SEND_FILES = hasattr(socket, "SCM_RIGHTS")


class ChannelClosed(Exception):
    """The other side is gone."""


class Channel:
    """One end of a pipe between two processes."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def close(self) -> None:
        self.connection.close()

    def fileno(self) -> int:
        return self.connection.fileno()

    def poll(self, timeout: float = 0.0) -> bool:
        """Has the other side sent something, or gone?"""
        try:
            return self.connection.poll(timeout)
        except OSError:
            return True

    def send(self, thing: Any) -> None:
        """Send an object.  What cannot be pickled raises before anything is sent."""
        body = io.BytesIO()
        buffers: list[pickle.PickleBuffer] = []
        # Positions, since this class of pickler takes no names: protocol, fix_imports, buffer_callback.
        reduction.ForkingPickler(body, 5, True, buffers.append).dump(thing)  # type: ignore[arg-type]
        pieces = [body.getbuffer(), *[buffer.raw() for buffer in buffers]]
        sizes = [piece.nbytes for piece in pieces]
        header = struct.pack(f"<?{len(sizes)}Q", sum(sizes) > _SMALL and _CAN_SEND_FILES, *sizes)
        try:
            if header[0]:
                self._send_file(header, pieces, sizes)
            else:
                self.connection.send_bytes(b"".join([struct.pack("<I", len(header)), header, *pieces]))
        except OSError as error:
            raise ChannelClosed from error

    def _send_file(self, header: bytes, pieces: list[memoryview], sizes: list[int]) -> None:
        with _nameless_file() as file:
            places, total = _places(sizes)
            file.truncate(total)
            for place, piece in zip(places, pieces):
                _write_at(file.fileno(), piece, place)
            self.connection.send_bytes(struct.pack("<I", len(header)) + header)
            reduction.send_handle(self.connection, file.fileno(), None)

    def receive(self) -> Any:
        """The next object."""
        try:
            message = self.connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise ChannelClosed from error
        (length,) = struct.unpack_from("<I", message)
        header = message[4 : 4 + length]
        sizes = struct.unpack_from(f"<{(length - 1) // 8}Q", header, 1)
        if header[0]:
            memory = self._receive_file(sizes)
            places, _ = _places(sizes)
        else:
            memory = memoryview(bytearray(message))
            places = [4 + length + sum(sizes[:i]) for i in range(len(sizes))]
        body, *buffers = [memory[place : place + size] for place, size in zip(places, sizes)]
        return pickle.loads(body, buffers=buffers)

    def _receive_file(self, sizes: tuple[int, ...]) -> memoryview:
        try:
            descriptor = reduction.recv_handle(self.connection)
        except (EOFError, OSError, RuntimeError) as error:
            raise ChannelClosed from error
        try:
            return memoryview(SharedMap(descriptor, _places(sizes)[1]))
        finally:
            os.close(descriptor)


def _places(sizes: Any) -> tuple[list[int], int]:
    """Where pieces of these sizes lie in a file, and how long it is."""
    places, position = [], 0
    for size in sizes:
        places.append(position)
        position += -(-size // _ALIGNMENT) * _ALIGNMENT
    return places, max(position, 1)


def _nameless_file() -> Any:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("retrograd"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _write_at(descriptor: int, piece: memoryview, place: int) -> None:
    while piece:
        written = os.pwrite(descriptor, piece, place)
        piece, place = piece[written:], place + written
