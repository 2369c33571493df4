"""How a worker holds the tasks it took: one strategy per module, all behind `Reservation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from sa_taskqueue.reservation.advisory_lock import AdvisoryLock
from sa_taskqueue.reservation.base import InWork, Reservation
from sa_taskqueue.reservation.lease import Lease
from sa_taskqueue.reservation.reservation_table import ReservationTable
from sa_taskqueue.reservation.row_lock import RowLock

__all__ = ["STRATEGIES", "AdvisoryLock", "InWork", "Lease", "Reservation", "ReservationTable", "RowLock"]

STRATEGIES: Mapping[str, Callable[..., Reservation]] = MappingProxyType(
    {strategy.name: strategy for strategy in (Lease, RowLock, AdvisoryLock, ReservationTable)}
)
"""What makes each strategy, by the word of `--reservation`. The default is first; the others take `count_crashes`."""
