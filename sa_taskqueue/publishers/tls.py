"""TLS from the options of a URL: the broker's certificate is always verified."""

from __future__ import annotations

import ssl

from sa_taskqueue.publishers.address import Options

NAMES = "cafile, certfile, keyfile"


def tls_context(options: Options) -> ssl.SSLContext:
    """``cafile`` verifies the server instead of the system's authorities; ``certfile``, ``keyfile`` name the client."""
    cafile, certfile, keyfile = (options.text_or_none(name) for name in ("cafile", "certfile", "keyfile"))
    context = ssl.create_default_context(cafile=cafile)
    if certfile is not None:
        context.load_cert_chain(certfile, keyfile)
    return context
