"""The command `ottla`, as somebody who types it meets it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ottla.__main__ import main

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def test_version_prints_the_version_that_is_packaged(capsys: pytest.CaptureFixture[str]) -> None:
    packaged = tomllib.loads(PYPROJECT.read_text())["project"]["version"]
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"ottla {packaged}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "version" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["sevre"], ["version", "more"]], ids=" ".join)
def test_a_wrong_command_line_ends_with_code_2_and_says_why(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "usage: ottla" in printed.err


def test_python_m_ottla_is_the_same_command() -> None:
    command = [sys.executable, "-m", "ottla", "version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("ottla ")


def test_importing_the_command_loads_no_part_of_the_broker() -> None:
    program = (
        "import sys; import ottla.__main__; "
        "print([m for m in sys.modules if m == 'argparse' or m.startswith('ottla.') "
        "and m != 'ottla.__main__'])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == "[]"
