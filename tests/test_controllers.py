"""Between the controller and its log: when a decision is told, and what must not be survived."""

from asyncio import gather, wait
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.topics import CreateTopicsRequest
from ottla.storage.memory_operations import Fault
from tests.controller_rig import creatable
from tests.node_rig import Node, disk_with, tell

SLOW_S = 0.5


def asked(*names: str, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[creatable(name, 1, 1) for name in names],
        timeout_ms=30_000,
        validate_only=validate_only,
    )


async def create(node: Node, *names: str, validate_only: bool = False) -> list[str]:
    response = await node.ask(asked(*names, validate_only=validate_only), 7)
    return [ErrorCode(topic.error_code).name for topic in response.topics]


def slow_syncs(kind: str, path: str) -> float:
    return SLOW_S if kind == "sync" else 0.0


def test_an_answer_that_rests_on_another_s_decision_waits_for_its_commit() -> None:
    """`exists already` is told when it does, and not when that was only decided."""
    files = disk_with(["data"], delay_s=slow_syncs)

    async def story(node: Node) -> None:
        loop = node.broker.world.loop
        first = loop.create_task(create(node, "a"))
        second = loop.create_task(create(node, "a"))
        done, _ = await wait([first, second], timeout=SLOW_S / 2)
        assert not done
        assert (await first, await second) == (["NONE"], ["TOPIC_ALREADY_EXISTS"])
        assert node.broker.node.partition("a", 0).is_leader

    tell(story, files=files)


def test_decisions_that_come_together_share_a_flush() -> None:
    files = disk_with(["data"], delay_s=slow_syncs)

    async def story(node: Node) -> None:
        loop = node.broker.world.loop
        before_s = loop.time()
        await gather(*(create(node, f"t{number}") for number in range(20)))
        assert loop.time() - before_s < 3 * SLOW_S

    tell(story, files=files)


def test_what_is_only_validated_changes_nothing() -> None:
    async def story(node: Node) -> None:
        end_offset = node.broker.quorum.log_end_offset
        assert await create(node, "a", validate_only=True) == ["NONE"]
        assert node.broker.quorum.log_end_offset == end_offset

    tell(story)


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.INVALID_REQUEST), ZeroDivisionError()])
def test_a_decision_that_the_log_has_and_the_controller_not_is_no_refusal(error: Exception) -> None:
    async def story(node: Node) -> None:
        controller: Any = node.broker.controllers.controller

        def fail(*_: object, **__: object) -> None:
            raise error

        controller.replay = fail
        with pytest.raises((RuntimeError, ZeroDivisionError)):
            await create(node, "a")
        assert node.broker.is_changing

    tell(story, stops=False)


def test_what_is_committed_and_cannot_be_applied_ends_the_process() -> None:
    async def story(node: Node) -> None:
        async def fail(*_: object) -> None:
            raise ZeroDivisionError

        served: Any = node.broker.node
        served.apply = fail
        task = node.broker.world.loop.create_task(create(node, "a"))
        done, _ = await wait([task], timeout=5)
        assert not done

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        tell(story, stops=False)


def test_a_full_disk_refuses_a_decision_and_takes_the_next_one() -> None:
    files = disk_with(["data"])

    async def story(node: Node) -> None:
        files.fail(lambda each: each.kind == "write", Fault.ENOSPC, times=1)
        assert await create(node, "a") == ["KAFKA_STORAGE_ERROR"]
        assert await create(node, "a") == ["NONE"]

    tell(story, files=files)


def test_without_a_controller_nothing_is_decided() -> None:
    async def story(node: Node) -> None:
        node.broker.controllers.controller = None
        assert await create(node, "a") == ["NOT_CONTROLLER"]

    tell(story, stops=False)
