"""Threads for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable


def run_threads(work: Callable[[int], object], number: int = 8, patience: float = 60) -> None:
    """Run ``work(i)`` on threads that start together; raise what one of them raised."""
    barrier = threading.Barrier(number)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        barrier.wait()
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
