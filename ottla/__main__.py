"""The command `ottla`, also `python -m ottla`.

Knows which commands there are and which module carries each out; does none of their work.
Imports only what the command at hand needs: the time until a broker serves starts here.
"""

import sys
from collections.abc import Sequence

SUMMARY = "A Kafka-compatible broker. It does not serve yet; it looks into the files of one."


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line and return the exit code."""
    # argparse costs more than everything else that is imported up to here.
    import argparse

    parser = argparse.ArgumentParser(prog="ottla", description=SUMMARY)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("version", help="print the version of Ottla that is installed")
    dump = commands.add_parser(
        "dump", help="print what segments, indexes, snapshots and checkpoints of a log hold"
    )
    dump.add_argument("paths", nargs="+", metavar="PATH", help="a file or a directory")
    dump.add_argument("--records", action="store_true", help="print the records of batches too")
    dump.add_argument("--limit", type=count, metavar="N", help="print the first N rows of a file")
    dump.add_argument("--json", action="store_true", help="print one JSON object a line")
    options = parser.parse_args(arguments)
    if options.command == "dump":
        from ottla.storage.dump import run

        return run(
            options.paths,
            with_records=options.records,
            limit=options.limit,
            as_json=options.json,
        )
    print(f"ottla {installed_version()}")
    return 0


def count(text: str) -> int:
    """A number of things, as an option gives it; argparse turns the error into a complaint."""
    if not text.isascii() or not text.isdigit():
        raise ValueError(text)
    return min(int(text), sys.maxsize)


def installed_version() -> str:
    """The version that the installed package has, as pip knows it."""
    from importlib.metadata import version

    return version("ottla")


if __name__ == "__main__":
    sys.exit(main())
