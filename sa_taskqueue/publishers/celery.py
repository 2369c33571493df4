"""Celery's own queues, by Celery's own client: the message is a task that a Celery worker runs."""

from __future__ import annotations

from typing import Any

from celery import Celery

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.publishers.base import Message
from sa_taskqueue.publishers.threaded import ThreadedPublisher, arguments


class CeleryPublisher(ThreadedPublisher):
    """The topic is the task's name, the payload its arguments, the message's id the task's id.

    ``celery+amqp://...``, ``celery+redis://...``. Options: ``queue`` (default: as Celery routes the task), ``timeout``;
    ``app``, a Celery app of your own with its routes and serializers; ``client``, settings of Celery.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, options)
        given = self.address.options
        self._queue = given.text_or_none("queue")
        app = given.thing("app")
        if app is not None and not isinstance(app, Celery):
            raise InvalidSetting(setting="app", value=type(app).__name__, allowed="a Celery app, given as a keyword")
        self._app = app
        self._settings = given.mapping("client")
        given.finish("queue, timeout, app, client")
        self._producer: Any = None
        self._connection: Any = None

    def start(self, seconds: float) -> None:
        app = self._app or Celery(set_as_current=False)
        if self._settings:
            app.conf.update(self._settings)
        limits = {"socket_timeout": self.timeout, "socket_connect_timeout": seconds}
        amqp = {"confirm_publish": True, "read_timeout": self.timeout, "write_timeout": self.timeout}
        transport = self.address.scheme.partition("+")[2] or "amqp"
        self._connection = app.connection_for_write(
            url=self.address.plain(transport),
            connect_timeout=seconds,
            transport_options={**app.conf.broker_transport_options, **(amqp if "amqp" in transport else limits)},
        )
        self._connection.connect()
        self._producer = app.amqp.Producer(self._connection, auto_declare=False)
        self._sender = app

    def send_one(self, message: Message) -> None:
        positional, named = arguments(message)
        route: dict[str, Any] = {"queue": self._queue} if self._queue else {}
        self._sender.send_task(
            message.topic,
            args=positional,
            kwargs=named,
            task_id=str(message.id),
            producer=self._producer,
            headers=dict(message.headers) or None,
            retry=False,
            ignore_result=True,
            **route,
        )

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._producer = None
