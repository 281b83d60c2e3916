"""The command `ottla`, also `python -m ottla`.

Knows which commands there are and which module carries each out; does none of their work.
Imports only what the command at hand needs: the time until a broker serves starts here.
"""

import sys
from collections.abc import Sequence

SUMMARY = "A Kafka-compatible broker. It does not serve yet: so far there is its protocol."


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line and return the exit code."""
    # argparse costs more than everything else that is imported up to here.
    import argparse

    parser = argparse.ArgumentParser(prog="ottla", description=SUMMARY)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("version", help="print the version of Ottla that is installed")
    parser.parse_args(arguments)
    print(f"ottla {installed_version()}")
    return 0


def installed_version() -> str:
    """The version that the installed package has, as pip knows it."""
    from importlib.metadata import version

    return version("ottla")


if __name__ == "__main__":
    sys.exit(main())
