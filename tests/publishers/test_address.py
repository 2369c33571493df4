from __future__ import annotations

from typing import Any

import pytest

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.publishers.address import Address


def test_several_hosts_a_user_and_options() -> None:
    address = Address("kafka://sales%40x:p%2Fw@one:9092,two:9092/base?a=1&linger.ms=5", {"a": 2})
    assert (address.scheme, address.hosts, address.path) == ("kafka", "one:9092,two:9092", "/base")
    assert (address.user, address.password) == ("sales@x", "p/w")
    assert address.options.dotted() == {"linger.ms": "5"}
    assert address.options.whole("a", 0, lowest=0) == 2


def test_the_plain_url_keeps_the_password_and_loses_the_options() -> None:
    assert Address("amqps://u:p%2Fw@host/v%2F1?x=1").plain() == "amqps://u:p%2Fw@host/v%2F1"
    assert Address("valkey://:pw@host/0").plain("redis") == "redis://:pw@host/0"
    assert Address("nats://host").plain() == "nats://host"


@pytest.mark.parametrize("password", ["s3cret-pw", "p/w@x:y", "a b", "ü'\"\\", "p%w"])
def test_no_password_or_secret_is_shown(password: str) -> None:
    from urllib.parse import quote

    options: dict[str, Any] = {"secret": "whsec_abc", "client": {"api_key": "key-123", "sasl.password": "deep-456"}}
    address = Address(f"amqp://user:{quote(password, safe='')}@host/x?token=tok-789", options)
    for shown in (repr(address), address.shown, repr(address.options)):
        assert not any(secret in shown for secret in (password, quote(password, safe=""), "whsec_abc", "tok-789"))
    said = f"{password} {quote(password, safe='')} {password!r} whsec_abc key-123 deep-456 tok-789"
    hidden = address.hide(ValueError(said))
    assert not any(part in hidden for part in (password, "whsec", "123", "456", "789"))


def test_an_error_without_a_text_shows_its_kind() -> None:
    assert Address("x://h").hide(TimeoutError()) == "TimeoutError"


@pytest.mark.parametrize(
    ("take", "options"),
    [
        (lambda options: options.whole("n", 1, lowest=1), {"n": "0"}),
        (lambda options: options.whole("n", 1, lowest=1), {"n": "many"}),
        (lambda options: options.seconds("n", 1), {"n": "-1"}),
        (lambda options: options.seconds("n", 1), {"n": "nan"}),
        (lambda options: options.yes("n", default=True), {"n": "maybe"}),
        (lambda options: options.choice("n", ("a", "b"), "a"), {"n": "c"}),
        (lambda options: options.mapping("n"), {"n": "c"}),
        (lambda options: options.finish("other"), {"n": "c"}),
    ],
)
def test_a_wrong_option_is_named(take: Any, options: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting, match="n"):
        take(Address("x://host", options).options)
