"""TCPStore: keys and values that processes share, kept by one of them.

It is how processes find each other, and the board on which they say what they are doing (monitor.py). A connection
carries questions and answers in turn, each as its length and JSON; what is stored is bytes. The process that keeps
the store answers each connection on a thread of its own.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .errors import DistNetworkError, DistStoreError

__all__ = ["TCPStore"]

_LENGTH = struct.Struct("!I")
#: A command of a server: what is asked, and the connection's own notes, to the answer.
Answer = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def receive_exactly(connection: socket.socket, view: memoryview) -> None:
    """Fill `view` from the connection; ConnectionError if it ends before."""
    while len(view):
        got = connection.recv_into(view)
        if got == 0:
            raise ConnectionResetError("the connection has ended")
        view = view[got:]


def send_message(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send a message."""
    text = json.dumps(message).encode()
    connection.sendall(_LENGTH.pack(len(text)) + text)


def receive_message(connection: socket.socket) -> dict[str, Any]:
    """Wait for a message; ConnectionError if the connection ends."""
    head = bytearray(_LENGTH.size)
    receive_exactly(connection, memoryview(head))
    text = bytearray(_LENGTH.unpack(head)[0])
    receive_exactly(connection, memoryview(text))
    return json.loads(text)


def connect(host: str, port: int, until: float) -> socket.socket:
    """A connection to somebody who may be about to listen; `until` is on the monotonic clock."""
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=max(0.1, until - time.monotonic()))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(None)
            return connection
        except OSError as error:
            if time.monotonic() > until:
                raise DistNetworkError(f"The client socket has failed to connect to {host}:{port} ({error})") from error
            time.sleep(0.02)


class Server:
    """Listens, and answers each connection on a thread of its own."""

    def __init__(self, host: str, port: int, answer: Answer, ended: Callable[[dict[str, Any]], None] | None = None):
        self._answer, self._ended = answer, ended
        self._listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listening.bind((host, port))
        except OSError as error:
            self._listening.close()
            raise DistNetworkError(
                f"The server socket has failed to listen on {host or '*'}:{port} ({error})"
            ) from error
        self._listening.listen(1024)
        self.port: int = self._listening.getsockname()[1]
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="retrograd store", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:  # closed
                return
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="retrograd store", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        notes: dict[str, Any] = {}
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                send_message(connection, self._answer(receive_message(connection), notes))
        except OSError:
            pass
        finally:
            self._open.discard(connection)
            connection.close()
            if self._ended is not None:
                self._ended(notes)

    def close(self) -> None:
        """Stop listening and end all connections."""
        _shut(self._listening)
        for connection in list(self._open):
            _shut(connection)


def _shut(connection: socket.socket) -> None:
    """End a connection that another thread may be waiting on: closing it alone would not wake that one."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()


class TCPStore:
    """Keys and values that processes share; the one with `is_master` keeps them.

    >>> from retrograd.distributed import TCPStore
    >>> store = TCPStore("127.0.0.1", 0, is_master=True)
    >>> store.set("answer", "42"); store.get("answer")
    b'42'
    >>> store.add("count", 2), store.add("count", 3)
    (2, 5)
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
    ) -> None:
        self._numbers_: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._server = Server("127.0.0.1" if _is_local(host_name) else "", port, self._reply) if is_master else None
        self.host = host_name
        self.port: int = self._server.port if self._server is not None else port
        self.timeout: timedelta = timeout
        self._asking = threading.Lock()
        self._connection = connect(host_name, self.port, time.monotonic() + timeout.total_seconds())
        if world_size is not None and wait_for_workers:
            self.add("retrograd/workers", 1)
            self._until(lambda: self.add("retrograd/workers", 0) >= world_size, timeout, "all workers")

    def _until(self, there: Callable[[], bool], timeout: timedelta, what: str) -> None:
        until = time.monotonic() + timeout.total_seconds()
        while not there():
            if time.monotonic() > until:
                raise DistStoreError(f"wait timeout after {timeout.total_seconds() * 1000:.0f}ms, for {what}")
            time.sleep(0.01)

    # -------------------------------------------------------------------------------------- in the process that keeps
    # it

    def _reply(self, asked: dict[str, Any], notes: dict[str, Any]) -> dict[str, Any]:
        key, value = asked.get("key", ""), asked.get("value", "").encode("latin-1")
        with self._changed:
            match asked["do"]:
                case "set":
                    self._numbers_[key] = value
                case "add":
                    self._numbers_[key] = str(int(self._numbers_.get(key, b"0")) + int(value)).encode()
                case "compare_set":
                    if self._numbers_.get(key, b"") == asked["expected"].encode("latin-1"):
                        self._numbers_[key] = value
                case "get":
                    self._changed.wait_for(lambda: key in self._numbers_, asked["seconds"])
                case "delete":
                    return {"value": "1" if self._numbers_.pop(key, None) is not None else "0"}
                case "number":
                    return {"value": str(len(self._numbers_))}
            self._changed.notify_all()
            found = self._numbers_.get(key)
        return {} if found is None else {"value": found.decode("latin-1")}

    # ------------------------------------------------------------------------------------------------- in every process

    def _ask(self, do: str, key: str = "", value: bytes = b"", **more: Any) -> bytes | None:
        with self._asking:
            try:
                send_message(self._connection, {"do": do, "key": key, "value": value.decode("latin-1"), **more})
                answer = receive_message(self._connection)
            except OSError as error:
                raise DistNetworkError(f"the store at {self.host}:{self.port} has gone ({error})") from error
        return answer["value"].encode("latin-1") if "value" in answer else None

    def set(self, key: str, value: str | bytes) -> None:
        """Store a value."""
        self._ask("set", key, _bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key, which is waited for."""
        value = self._ask("get", key, seconds=self.timeout.total_seconds())
        if value is None:
            raise DistStoreError(f"wait timeout after {self.timeout.total_seconds() * 1000:.0f}ms, keys: /{key}")
        return value

    def add(self, key: str, amount: int) -> int:
        """Add to a number; the sum."""
        return int(self._ask("add", key, str(amount).encode()) or b"0")

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Store a value if another stands there now; what then stands there."""
        found = self._ask("compare_set", key, _bytes(desired_value), expected=_bytes(expected_value).decode("latin-1"))
        return _bytes(expected_value) if found is None else found

    def check(self, keys: list[str]) -> bool:
        """Are all of these there?"""
        return all(self._ask("look", key) is not None for key in keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all of these are there."""
        self._until(lambda: self.check(keys), self.timeout if timeout is None else timeout, f"keys: {', '.join(keys)}")

    def delete_key(self, key: str) -> bool:
        """Remove a key; was it there?"""
        return self._ask("delete", key) == b"1"

    def num_keys(self) -> int:
        """How many keys there are."""
        return int(self._ask("number") or b"0")

    def set_timeout(self, timeout: timedelta) -> None:
        """How long `get` and `wait` wait."""
        self.timeout = timeout

    def close(self) -> None:
        """End it: in the process that keeps the store, for all."""
        _shut(self._connection)
        if self._server is not None:
            self._server.close()


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _is_local(host: str) -> bool:
    return host in ("localhost", "127.0.0.1")
