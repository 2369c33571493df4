from sa_taskqueue.testing.suite import *  # noqa: F403
