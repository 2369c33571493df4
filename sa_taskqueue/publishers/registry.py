"""Which publisher serves a URL; how third parties add theirs (entry points ``sa_taskqueue.publishers``)."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from sa_taskqueue.exceptions import InvalidSetting, MissingExtra, UnknownPublisher
from sa_taskqueue.publishers.base import Publisher
from sa_taskqueue.publishers.callable import CallablePublisher

GROUP = "sa_taskqueue.publishers"

PublisherFactory = Callable[..., Publisher]
"""Called with the URL and the options; connects only in ``open``."""

#: By scheme, or by what stands before its "+": module and class, loaded at the first use, and the extra it needs.
OWN: dict[str, tuple[str, str, str]] = {
    "kafka": ("kafka", "KafkaPublisher", "kafka"),
    "amqp": ("rabbitmq", "RabbitMQPublisher", "rabbitmq"),
    "amqps": ("rabbitmq", "RabbitMQPublisher", "rabbitmq"),
    "nats": ("nats", "NATSPublisher", "nats"),
    "tls": ("nats", "NATSPublisher", "nats"),
    "redis": ("redis", "RedisPublisher", "redis"),
    "rediss": ("redis", "RedisPublisher", "redis"),
    "valkey": ("redis", "RedisPublisher", "redis"),
    "valkeys": ("redis", "RedisPublisher", "redis"),
    "http": ("webhook", "WebhookPublisher", "webhook"),
    "https": ("webhook", "WebhookPublisher", "webhook"),
    "celery": ("celery", "CeleryPublisher", "celery"),
    "dramatiq": ("dramatiq", "DramatiqPublisher", "dramatiq"),
}


def publisher_for(to: str | Publisher | Callable[..., Any], **options: Any) -> Publisher:
    """The publisher for a URL, not opened yet; a function is wrapped, a publisher passed on.

    ``options`` go before those in the URL's query. UnknownPublisher lists the schemes that are known; MissingExtra
    says what to install.
    """
    if isinstance(to, str):
        scheme = to.partition("://")[0].lower()
        return _factory(scheme if "://" in to else to[:0])(to, **options)
    if isinstance(to, Publisher):
        if options:
            raise InvalidSetting(setting="options", value=", ".join(options), allowed="given to the publisher itself")
        return to
    return CallablePublisher(to, **options)


def _factory(scheme: str) -> PublisherFactory:
    registered = _registered()
    for name in (scheme, scheme.partition("+")[0]):
        if name in registered:
            return registered[name]
        if name in OWN:
            return _own(name)
    known = ", ".join(sorted(f"{name}://" for name in {*registered, *OWN}))
    raise UnknownPublisher(scheme=f"{scheme}://", known=known)


def _own(scheme: str) -> PublisherFactory:
    module, name, extra = OWN[scheme]
    try:
        found: PublisherFactory = getattr(importlib.import_module(f"sa_taskqueue.publishers.{module}"), name)
    except ImportError as error:
        raise MissingExtra(feature=f"A publisher for {scheme}://", extra=extra, reason=error) from error
    return found


@functools.cache
def _registered() -> dict[str, PublisherFactory]:
    """What other distributions registered; loaded once per process."""
    return {point.name.lower(): point.load() for point in entry_points(group=GROUP)}
