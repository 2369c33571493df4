"""One consumer process: ``python outbox_consumer.py URL BROKER TOPIC``. It runs until it is told to stop.

The shipment, the note of the arrival and the inbox's mark are one commit; only after it the broker is told. So a
message that comes again is known, and one whose commit failed comes again.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from decimal import Decimal

from app import engine_for
from outbox_brokers import consumer_of
from outbox_models import Arrival, Shipment, queue
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import sessionmaker

from sa_taskqueue import TaskSession
from sa_taskqueue.events import Received


def apply(sessions: sessionmaker[TaskSession], messages: list[Received]) -> None:
    with sessions.begin() as session:
        for message in messages:
            session.add(Arrival(message_id=message.id, customer=message.key or "", seq=message.seq or 0))
            # A gap would be told by MessageGap; here it is taken, so that it is seen in the result.
            new = session.first_time(message.id, source=message.source, key=message.key, seq=message.seq, gaps="accept")
            if new:
                session.add(Shipment(line_id=message.data["line_id"], amount=Decimal(message.data["amount"])))
            session.flush()


async def consume(url: str, to: str, topic: str) -> None:
    engine = engine_for(url)
    sessions = sessionmaker(engine, class_=TaskSession, info={"task_queue": queue})
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    consumer = consumer_of(to, topic)
    print(json.dumps({"consumer": topic}), flush=True)
    while not stopping.is_set():
        try:
            messages = await consumer.fetch()
            if messages:
                await asyncio.to_thread(apply, sessions, messages)
                await consumer.confirm()
        except (OperationalError, *consumer.errors) as error:
            # What was not confirmed comes again. On MySQL two consumers that write their first keys may deadlock once.
            print(f"consumer {topic}: {type(error).__name__}: {error}; connecting again", file=sys.stderr, flush=True)
            await consumer.close()
            await asyncio.sleep(0.5)
    await consumer.close()
    engine.dispose()


if __name__ == "__main__":
    asyncio.run(consume(sys.argv[1], sys.argv[2], sys.argv[3]))
