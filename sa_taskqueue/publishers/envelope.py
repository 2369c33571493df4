"""How a message is packed for a protocol: the library's own headers, and CloudEvents in the mode that was chosen."""

from __future__ import annotations

import re
from typing import NamedTuple

from sa_taskqueue import events
from sa_taskqueue.publishers.address import Options
from sa_taskqueue.publishers.base import Message

MODES = ("binary", "structured", "off")

_OWN = "sa-taskqueue-"
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f]")


class Envelope(NamedTuple):
    """What goes to the broker."""

    headers: dict[str, str]
    """Without the content type."""
    content_type: str
    body: bytes


class Packing(NamedTuple):
    """One protocol's way with headers, and the mode of CloudEvents."""

    mode: str
    prefix: str = "ce-"
    percent_encoded: bool = False

    @classmethod
    def of(cls, options: Options, prefix: str = "ce-", *, percent_encoded: bool = False) -> Packing:
        return cls(options.choice("cloudevents", MODES, "binary"), prefix, percent_encoded)

    def pack(self, message: Message) -> Envelope:
        """The message as it is sent; the user's headers cannot stand in for those of the library."""
        content_type, body = events.JSON, message.payload
        if self.mode == "binary":
            headers = events.binary(message, prefix=self.prefix, ascii_only=self.percent_encoded)
            content_type = headers.pop(events.CONTENT_TYPE)
        else:
            headers = {name: self._text(value) for name, value in message.headers.items()}
            if self.mode == "structured":
                content_type, body = events.STRUCTURED, events.structured(message)
        headers = {name: value for name, value in headers.items() if name.lower() != events.CONTENT_TYPE}
        return Envelope({**headers, **self._own(message)}, content_type, body)

    def unsendable(self, message: Message) -> str | None:
        """Why the message's own headers cannot be sent where a line holds one of them; None if they can."""
        for name, value in message.headers.items():
            if _UNSENDABLE.search(name + value) or not name.isascii() or set(name) & set(": ") or not name:
                return f"the header {name!a} holds what a header of this protocol cannot"
        return None

    def _own(self, message: Message) -> dict[str, str]:
        own = {f"{_OWN}id": str(message.id), f"{_OWN}epoch": str(message.epoch)}
        if message.key is not None:
            own[f"{_OWN}key"] = self._text(message.key)
        if message.seq is not None:
            own[f"{_OWN}seq"] = str(message.seq)
        return own

    def _text(self, value: str) -> str:
        return events.percent(value) if self.percent_encoded else value
