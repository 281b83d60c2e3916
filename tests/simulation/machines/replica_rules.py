"""The rules of one partition's leader, under random registrations and followers' fetches.

Checked: within an epoch the high watermark does not pass what an in-sync replica has.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ottla.protocol.errors import KafkaError
from ottla.replication.metadata_topics import PartitionRegistration
from ottla.replication.replica_rules import ReplicaRules, Role
from ottla.storage.clock import Now

STEPS = 150
Add = Callable[..., None]


class Broken(AssertionError):
    """A watermark where it must not be."""


def play(seed: int, add: Add) -> None:
    random = Random(f"rules {seed}")
    rules = ReplicaRules(min_insync_replicas=random.randint(1, 3))
    replicas = tuple(range(1, random.randint(1, 5) + 1))
    leader_epoch = partition_epoch = end = 0
    for step in range(STEPS):
        now = Now(step * 100, step * 100)
        draw = random.random()
        if draw < 0.1:
            leader_epoch += random.choice((-1, 0, 1, 1))
            partition_epoch += 1
            registration = registered(random, replicas, leader_epoch, partition_epoch)
            if registration.leader == 1:
                add("lead", rules.lead(registration, log_end_offset=end), registration.isr)
            else:
                add("follow", rules.follow(registration))
        elif draw < 0.4:
            end += random.randint(1, 9)
        else:
            try:
                got_on = rules.fetched(
                    random.randint(1, 6),
                    offset=random.randint(0, end),
                    log_start_offset=random.randint(0, 3),
                    leader_end_offset=end,
                    now=now,
                )
            except KafkaError as error:
                add("refused", error.code.name)
            else:
                add("fetched", got_on)
        show(rules, end, add)


def show(rules: ReplicaRules, end: int, add: Add) -> None:
    if rules.role is not Role.LEADER:
        add(rules.role.value)
        return
    high_watermark = rules.high_watermark(end)
    add(rules.leader_epoch, rules.partition_epoch, end, high_watermark, rules.low_watermark(0))
    for replica in rules.isr:
        if replica != rules.leader and high_watermark is not None:
            has = rules.followers[replica].log_end_offset
            if high_watermark > has:
                raise Broken(f"{high_watermark}, and {replica} has {has}")


def registered(
    random: Random, replicas: tuple[int, ...], leader_epoch: int, partition_epoch: int
) -> PartitionRegistration:
    isr = tuple(sorted(random.sample(replicas, random.randint(1, len(replicas)))))
    return PartitionRegistration(
        replicas=replicas,
        directories=tuple(bytes(16) for _ in replicas),
        isr=isr,
        leader=random.choice((1, 1, isr[0])),
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
    )
