"""For tests of an adapter or a reservation strategy: `sa_taskqueue.testing.suite` is the conformance suite.

Needs pytest (`pip install "sa-taskqueue[testing]"`), which nothing else of the library imports.
"""

from sa_taskqueue.testing.database import Database
from sa_taskqueue.testing.requirements import Requirements
from sa_taskqueue.testing.trial import Strategy

__all__ = ["Database", "Requirements", "Strategy"]
