"""A broker's URL, its options, and what of them may be shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from sa_taskqueue.exceptions import InvalidSetting

_SECRET = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|credential|(^|[._-])(api|shared|private)?_?key$", re.IGNORECASE
)
_TRUE = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}

HIDDEN = "***"


class Address:
    """A URL taken apart; its repr, and ``shown``, hold no password and no option."""

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        parts = urlsplit(url)
        self.scheme = parts.scheme.lower()
        user, _, self.hosts = parts.netloc.rpartition("@")
        name, _, password = user.partition(":")
        self.user, self.password = unquote(name) or None, unquote(password) or None
        self.path = parts.path
        self.options = Options({**dict(parse_qsl(parts.query, keep_blank_values=True)), **(options or {})})
        self.shown = f"{self.scheme}://{self.hosts}{parts.path}"
        self._secrets = sorted(set(self._find_secrets(password)), key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Address({self.shown})"

    def plain(self, scheme: str | None = None) -> str:
        """The URL with its password, without its options, for the client's own eyes."""
        user = "" if self.user is None and self.password is None else quote(self.user or "", safe="")
        if self.password is not None:
            user += ":" + quote(self.password, safe="")
        return f"{scheme or self.scheme}://{user}{'@' if user else ''}{self.hosts}{self.path}"

    def hide(self, text: object) -> str:
        """The text of an error without any password or secret that this address holds."""
        shown = str(text) or type(text).__name__
        for secret in self._secrets:
            shown = shown.replace(secret, HIDDEN)
        return shown

    def _find_secrets(self, quoted_password: str) -> Iterator[str]:
        if self.password:
            yield quoted_password
        for secret in filter(None, [self.password, *self.options.secrets()]):
            yield from (secret, quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1])


class Options:
    """The options of a URL's query and, before them, those given as keywords; what nobody takes is a mistake."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._left = dict(given)
        self._secrets = tuple(_secrets(given))

    def __repr__(self) -> str:
        return f"Options({', '.join(sorted(self._left))})"

    def secrets(self) -> tuple[str, ...]:
        return self._secrets

    def text(self, name: str, default: str) -> str:
        return str(self._left.pop(name, default))

    def text_or_none(self, name: str) -> str | None:
        value = self._left.pop(name, None)
        return None if value is None else str(value)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        if value not in choices:
            raise InvalidSetting(setting=name, value=value, allowed="one of " + ", ".join(choices))
        return value

    def yes(self, name: str, *, default: bool) -> bool:
        value = self._left.pop(name, default)
        answer = value if isinstance(value, bool) else _TRUE.get(str(value).lower())
        if answer is None:
            raise InvalidSetting(setting=name, value=value, allowed="true or false")
        return answer

    def whole(self, name: str, default: int, *, lowest: int) -> int:
        value = self._left.pop(name, default)
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = lowest - 1
        if number < lowest:
            raise InvalidSetting(setting=name, value=value, allowed=f"a whole number from {lowest}")
        return number

    def seconds(self, name: str, default: float) -> float:
        value = self._left.pop(name, default)
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = 0.0
        if not 0 < number <= 3600:
            raise InvalidSetting(setting=name, value=value, allowed="a number of seconds, above 0 and at most 3600")
        return number

    def mapping(self, name: str) -> dict[str, Any]:
        """Only as a keyword: what goes to the client as it is."""
        value = self._left.pop(name, {})
        if not isinstance(value, Mapping):
            raise InvalidSetting(setting=name, value=type(value).__name__, allowed="a mapping, given as a keyword")
        return dict(value)

    def thing(self, name: str) -> Any:
        """Only as a keyword: an object of the user's."""
        return self._left.pop(name, None)

    def rest(self) -> dict[str, str]:
        """All that nobody took, where it belongs to the URL."""
        left, self._left = self._left, {}
        return {name: str(value) for name, value in left.items()}

    def dotted(self) -> dict[str, Any]:
        """The options with a dot in their name, which are the client's own."""
        return {name: self._left.pop(name) for name in sorted(self._left) if "." in name}

    def finish(self, known: str) -> None:
        """InvalidSetting for an option that nobody took; ``known`` names those there are."""
        for name in sorted(self._left):
            raise InvalidSetting(setting="a publisher's option", value=name, allowed=f"one of {known}")


def _secrets(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and _SECRET.search(str(name)):
            yield value
