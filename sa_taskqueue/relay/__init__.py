"""Carries the messages of an outbox to brokers: leased, in order for each key, marked when the broker confirmed."""

from sa_taskqueue.relay.relay import Relay

__all__ = ["Relay"]
