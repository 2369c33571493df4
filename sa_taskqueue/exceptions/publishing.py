"""Errors of the way to a broker."""

from __future__ import annotations

from sa_taskqueue.exceptions.base import TaskQueueError
from sa_taskqueue.exceptions.configuration import ConfigurationError


class UnknownPublisher(ConfigurationError):
    """No publisher is known for URLs that begin with {scheme}. Known are {known}. Correct the URL, or install the
    distribution that brings the publisher (entry points sa_taskqueue.publishers).
    """

    code = "unknown_publisher"
    scheme: str
    known: str


class MissingExtra(ConfigurationError):
    """{feature} needs a library that is not installed ({reason}): pip install "sa-taskqueue[{extra}]"."""

    code = "missing_extra"
    feature: str
    extra: str
    reason: str


class BrokerUnavailable(TaskQueueError):
    """The broker {broker} cannot be reached: {reason}. Check host, port, user and password, and that it is running."""

    code = "broker_unavailable"
    broker: str
    reason: str
