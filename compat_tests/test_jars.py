"""The cache of jars and compiled programs: whole or absent, made once however many ask."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat_tests import jars


def test_the_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OTTLA_CACHE", str(tmp_path))
    assert jars.cache_directory() == tmp_path


def test_a_directory_is_filled_once_however_many_ask(tmp_path: Path) -> None:
    filled: list[Path] = []

    def fill(to: Path) -> None:
        filled.append(to)
        (to / "a.jar").write_bytes(b"jar")

    def ask(_: int) -> bytes:
        return (jars.filled_once(tmp_path / "kafka", fill) / "a.jar").read_bytes()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(32))) == [b"jar"] * 32
    assert len(filled) == 1


def test_a_failed_download_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    def fail(to: Path) -> None:
        (to / "half.jar").write_bytes(b"ja")
        raise RuntimeError("mvn ended with 1")

    with pytest.raises(RuntimeError, match="mvn ended with 1"):
        jars.filled_once(tmp_path / "kafka", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    jars.filled_once(tmp_path / "kafka", lambda to: None)
    assert (tmp_path / "kafka").is_dir()
