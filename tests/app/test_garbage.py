"""Cyclic garbage with QObjects in it is destroyed on the GUI thread."""

from __future__ import annotations

import gc
import threading

from PySide6.QtCore import QObject

from app.garbage import collected_here


class Cycle(QObject):
    """Holds itself, so that only the collector can find it."""

    def __init__(self, destroyed_on: list[threading.Thread]) -> None:
        super().__init__()
        self.itself = self
        self.destroyed_on = destroyed_on

    def __del__(self) -> None:
        self.destroyed_on.append(threading.current_thread())


def test_a_worker_that_allocates_destroys_no_qobject(qapp):
    destroyed_on: list[threading.Thread] = []

    with collected_here():
        Cycle(destroyed_on)
        worker = threading.Thread(target=lambda: [[] for _ in range(100_000)])
        worker.start()
        worker.join()
        before_leaving = list(destroyed_on)

    assert before_leaving == []
    assert destroyed_on == [threading.current_thread()]


def test_the_event_loop_collects_what_is_due(qtbot):
    destroyed_on: list[threading.Thread] = []

    with collected_here():
        Cycle(destroyed_on)
        # Twice as many: what earlier tests left may go meanwhile, and is counted off.
        kept = [[] for _ in range(2 * gc.get_threshold()[0])]
        qtbot.waitUntil(lambda: bool(destroyed_on))

    assert kept
    assert destroyed_on == [threading.current_thread()]


def test_pythons_own_collector_is_back_afterwards(qapp):
    with collected_here():
        during = gc.isenabled()

    assert not during
    assert gc.isenabled()
