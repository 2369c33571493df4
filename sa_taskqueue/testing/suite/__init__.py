"""The conformance suite: `from sa_taskqueue.testing.suite import *` in a test module, and a fixture `database`.

Each test is named by the rule it holds. Those with the fixture `db` run once for each database, those with `trial`
for each strategy on it. docs/how-to/adapters.md shows the few lines that it takes.
"""

from sa_taskqueue.testing.suite.claiming import *  # noqa: F403  a test module takes all tests
from sa_taskqueue.testing.suite.clock import *  # noqa: F403
from sa_taskqueue.testing.suite.effects import *  # noqa: F403
from sa_taskqueue.testing.suite.fencing import *  # noqa: F403
from sa_taskqueue.testing.suite.operating import *  # noqa: F403
from sa_taskqueue.testing.suite.outcomes import *  # noqa: F403
from sa_taskqueue.testing.suite.ranges import *  # noqa: F403
from sa_taskqueue.testing.suite.sharing import *  # noqa: F403
from sa_taskqueue.testing.suite.storing import *  # noqa: F403
from sa_taskqueue.testing.suite.unique_keys import *  # noqa: F403
from sa_taskqueue.testing.suite.unknown import *  # noqa: F403
from sa_taskqueue.testing.suite.values import *  # noqa: F403
