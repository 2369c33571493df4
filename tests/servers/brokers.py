"""The message brokers of the tests, by name."""

from __future__ import annotations

from tests.servers.broker import Broker
from tests.servers.kafka import KafkaBroker
from tests.servers.nats import NATSBroker
from tests.servers.rabbitmq import RabbitMQBroker
from tests.servers.valkey import ValkeyBroker

BROKERS: dict[str, Broker] = {
    broker.name: broker for broker in (ValkeyBroker(), NATSBroker(), KafkaBroker(), RabbitMQBroker())
}

__all__ = ["BROKERS"]
