"""One Celery task a call, and a row by the ORM in a transaction of its own: what a team builds first.

``celery -A with_celery worker`` does the calls, ``python with_celery.py CALLS`` sends them. Threads, one for each call in
flight, because they cost the SDK less than greenlets do.
"""

import json
import os
import sys
from pathlib import Path

from celery import Celery
from openai import OpenAI
from sqlalchemy import Text, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

IN_FLIGHT = int(os.environ["PEER_IN_FLIGHT"])

app = Celery("peer", broker=os.environ["PEER_BROKER"])
app.conf.update(task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=2)
client = OpenAI(base_url=os.environ["PEER_BASE_URL"], api_key="none")
engine = create_engine(os.environ["PEER_DATABASE"], pool_size=IN_FLIGHT)
sessions: sessionmaker[Session] = sessionmaker(engine)


class Base(DeclarativeBase):
    """The tables."""


class Verdict(Base):
    """One answer."""

    __tablename__ = "peer_verdicts"

    id: Mapped[int] = mapped_column(primary_key=True)
    prompt: Mapped[str] = mapped_column(Text)
    raw: Mapped[str] = mapped_column(Text)
    score: Mapped[int]


def judge(prompt: str) -> None:
    """One call, and its row."""
    reply = client.chat.completions.create(
        model="judge", messages=[{"role": "user", "content": prompt}], temperature=0
    )
    raw = reply.choices[0].message.content or ""
    with sessions.begin() as session:
        session.add(Verdict(prompt=prompt, raw=raw, score=int(raw)))


judging = app.task(name="judge")(judge)


def main(calls: Path) -> None:
    """Makes the table and sends a task for every prompt."""
    Base.metadata.create_all(engine)
    for line in calls.read_text("utf-8").splitlines():
        judging.delay(json.loads(line)["prompt"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
