"""A broker's log: one event is one line, whatever a client has called itself."""

import logging
from collections.abc import Iterator

import pytest

from ottla.broker.log_lines import set_up


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    root, asyncio = logging.getLogger(), logging.getLogger("asyncio")
    before = root.handlers[:], root.level, asyncio.level
    yield
    root.handlers[:], level, asyncio_level = before
    root.setLevel(level)
    asyncio.setLevel(asyncio_level)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Without their times."""
    return [line.split(" ", 1)[1] for line in capsys.readouterr().err.split("\n")[:-1]]


@pytest.mark.parametrize(
    ("client_id", "shown"),
    [
        ("a", "a"),
        ("é 日本", "é 日本"),
        ("a\nERROR forged", "a\\nERROR forged"),
        ("a\r\x1b[2K\x85\u2028b", "a\\r\\x1b[2K\\x85\\u2028b"),
        ("\0", "\\x00"),
        ("\ud800", "\\ud800"),
    ],
)
def test_nobody_can_forge_a_line(
    client_id: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up("info")
    logging.getLogger("ottla.broker.server").info("request.failed client_id=%s", client_id)
    assert lines(capsys) == [f"INFO broker.server request.failed client_id={shown}"]


def test_a_traceback_is_part_of_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up("error")
    try:
        raise ZeroDivisionError("why")
    except ZeroDivisionError:
        logging.getLogger("ottla.x").exception("request.failed")
    (line,) = lines(capsys)
    assert line.startswith("ERROR x request.failed traceback='Traceback")
    assert "ZeroDivisionError: why" in line


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("info", 3), ("warn", 2), ("error", 1)])
def test_only_what_is_asked_for_is_told(
    level: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(level)
    logger = logging.getLogger("ottla.y")
    for tell in (logger.debug, logger.info, logger.warning, logger.error):
        tell("event")
    assert len(lines(capsys)) == count
