"""How a worker holds the tasks it took: one strategy per module, all behind `Reservation`."""

from sa_taskqueue.reservation.base import Reservation
from sa_taskqueue.reservation.lease import Lease

__all__ = ["Lease", "Reservation"]
