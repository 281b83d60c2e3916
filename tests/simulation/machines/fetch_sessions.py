"""Fetch sessions under random clients: some follow the rules, some ask for what is not theirs.

Checked: a session that was told of a partition is told of each change of it, and of nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, cast

from ottla.broker.fetch_sessions import FetchSession, FetchSessions, Watched
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from ottla.replication.partition import Partition
from ottla.storage.clock import Now

STEPS = 120
Add = Callable[..., None]


class Broken(AssertionError):
    """A session forgot a change, or told of none."""


class Source:
    """Stands for a partition: it has watchers."""

    def __init__(self) -> None:
        self.watchers: dict[Watched, None] = {}


class Client:
    def __init__(self, number: int, *, is_follower: bool) -> None:
        self.number = number
        self.is_follower = is_follower
        self.id = 0
        self.epoch = 0
        self.holds: dict[tuple[str, int], None] = {}
        self.due: dict[tuple[str, int], None] = {}


def play(seed: int, add: Add) -> None:
    Sessions(seed, add).run()


class Sessions:
    def __init__(self, seed: int, add: Add) -> None:
        self._random = random = Random(f"sessions {seed}")
        self._add = add
        self._now_ms = 0
        self._sources = {
            (f"t{topic}", index): Source()
            for topic in range(random.randint(1, 4))
            for index in range(random.randint(1, 5))
        }
        self._sessions = FetchSessions(random.randint(0, 4), random=random)
        self._clients = [
            Client(number, is_follower=random.random() < 0.3)
            for number in range(random.randint(1, 6))
        ]

    def run(self) -> None:
        for _ in range(STEPS):
            self._now_ms += self._random.choice((1, 50, 5_000, 130_000))
            if self._random.random() < 0.5:
                self._change()
            else:
                self._fetch(self._random.choice(self._clients))
            self._add(self._now_ms, len(self._sessions))

    def _change(self) -> None:
        key = self._random.choice(list(self._sources))
        self._add("changed", key, len(self._sources[key].watchers))
        for watched in list(self._sources[key].watchers):
            watched.mark()
        for client in self._clients:
            if client.id and key in client.holds:
                client.due[key] = None

    def _fetch(self, client: Client) -> None:
        asked = self._some()
        forgotten = [key for key in client.holds if self._random.random() < 0.1]
        if not client.id or self._random.random() < 0.05:
            client.id = client.epoch = 0
            forgotten = []
        epoch = client.epoch if self._random.random() < 0.97 else client.epoch + 3
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=client.id,
            session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(
                            partition=index,
                            fetch_offset=self._random.randrange(100),
                            partition_max_bytes=100,
                        )
                    ],
                )
                for topic, index in asked
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic=topic, partitions=[index]) for topic, index in forgotten
            ],
        )
        now = Now(self._now_ms, self._now_ms)
        try:
            session = self._sessions.begin(
                request, uses_topic_ids=False, is_follower=client.is_follower, now=now
            )
        except KafkaError as error:
            self._add("refused", client.number, error.code.name)
            client.id = client.epoch = 0
            return
        self._answer(client, session, asked, forgotten, now)

    def _some(self) -> list[tuple[str, int]]:
        keys = list(self._sources)
        return self._random.sample(keys, self._random.randint(0, len(keys)))

    def _answer(
        self,
        client: Client,
        session: FetchSession,
        asked: list[tuple[str, int]],
        forgotten: list[tuple[str, int]],
        now: Now,
    ) -> None:
        is_new = not client.id
        if is_new:
            client.holds.clear()
            client.due.clear()
        client.holds |= dict.fromkeys(asked)
        client.due |= dict.fromkeys(asked)
        for key in forgotten:
            client.holds.pop(key)
            client.due.pop(key, None)
        if not client.holds:
            # The session ends; what was asked for along with that is still answered.
            client.due = dict.fromkeys(asked)
        looked_at: list[Any] = []
        for watched in session.take_marked():
            key = (watched.topic or "", watched.index)
            watched.watch(cast(Partition, self._sources[key]))
            looked_at.append((key, watched.fetch_offset))
            if self._random.random() < 0.3:
                session.move_to_end(watched)
        self._add("looked at", client.number, looked_at)
        if sorted(key for key, _ in looked_at) != sorted(client.due):
            raise Broken(f"{looked_at}, but {list(client.due)} changed")
        client.due.clear()
        if is_new and session.wants_to_be_kept:
            self._sessions.keep(session, now)
        client.id, client.epoch = (session.id, session.epoch) if session.id else (0, 0)
        self._add("session", client.number, client.id, client.epoch)
