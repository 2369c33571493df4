"""The brokers of the tests: each can be started, answers in its own protocol, and is gone after its stop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.servers.base import Unavailable
from tests.servers.broker import Broker
from tests.servers.brokers import BROKERS
from tests.servers.process import free_port
from tests.servers.valkey import ValkeyBroker

Start = Callable[[Broker], contextlib.AbstractContextManager[str]]


@pytest.fixture(params=list(BROKERS))
def broker(request: pytest.FixtureRequest) -> Broker:
    """One of each kind, not the one that other tests share."""
    return type(BROKERS[request.param])()


@pytest.fixture
def started(pytestconfig: pytest.Config) -> Start:
    """Start a broker, or say why it is absent: a failure with --require-all-servers, else a skip."""

    @contextlib.contextmanager
    def started(broker: Broker) -> Iterator[str]:
        try:
            yield broker.start()
        except Unavailable as absent:
            (pytest.fail if pytestconfig.getoption("--require-all-servers") else pytest.skip)(str(absent))
        finally:
            broker.stop()

    return started


@pytest.mark.timeout(240)
def test_a_broker_of_our_own_answers_until_it_is_stopped(broker: Broker, started: Start) -> None:
    with started(broker) as url:
        assert broker.refusal(url) is None
    assert broker.refusal(url) is not None


def test_the_broker_named_in_the_environment_is_taken(started: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(ValkeyBroker()) as url:
        monkeypatch.setenv("SA_TASKQUEUE_TEST_VALKEY_URL", url)
        assert ValkeyBroker().find() == url


def test_a_named_broker_that_does_not_answer_is_not_replaced(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"SA_TASKQUEUE_TEST_{broker.name.upper()}_URL", broker.url(free_port()))
    with pytest.raises(Unavailable, match="does not serve"):
        broker.find()


def test_a_server_of_another_protocol_is_refused(broker: Broker, started: Start) -> None:
    """NATS speaks first, so that only NATS itself takes what it says for an answer."""
    with started(BROKERS["nats"].__class__()) as url:
        assert (broker.refusal(url) is None) == (broker.name == "nats")
