"""The command `ottla`, also `python -m ottla`.

Knows which commands there are and which module carries each out; does none of their work.
Imports only what the command at hand needs: the time until a broker serves starts here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SUMMARY = "A Kafka-compatible broker, and a look into its files."
SERVE = """\
Serves Kafka's clients until SIGTERM or SIGINT. When it is ready, one line goes to stdout:
  ready bootstrap=HOST:PORT nodes=1 data=DIR
CONFIG is YAML, or a server.properties of Kafka; names are Kafka's, our own begin with "ottla.".
Later counts: defaults, CONFIG, --set, --listen and --data."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line and return the exit code."""
    # argparse costs more than everything else that is imported up to here.
    import argparse

    parser = argparse.ArgumentParser(prog="ottla", description=SUMMARY)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("version", help="print the version of Ottla that is installed")
    _add_serve(commands)
    dump = commands.add_parser(
        "dump", help="print what segments, indexes, snapshots and checkpoints of a log hold"
    )
    dump.add_argument("paths", nargs="+", metavar="PATH", help="a file or a directory")
    dump.add_argument("--records", action="store_true", help="print the records of batches too")
    dump.add_argument("--limit", type=count, metavar="N", help="print the first N rows of a file")
    dump.add_argument("--json", action="store_true", help="print one JSON object a line")
    options = parser.parse_args(arguments)
    if options.command == "serve":
        from ottla.broker.cli import serve

        return serve(
            options.config,
            listen=options.listen,
            data=options.data,
            is_ephemeral=options.ephemeral,
            nodes=options.nodes,
            settings=options.set,
        )
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


def _add_serve(commands: Any) -> None:
    import argparse

    serve = commands.add_parser(
        "serve",
        help="run a broker",
        description=SERVE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serve.add_argument("config", nargs="?", metavar="CONFIG", help="a YAML or .properties file")
    serve.add_argument("--listen", metavar="HOST:PORT", help="default 127.0.0.1:9092; port 0: any")
    serve.add_argument("--data", metavar="DIR", help="default ./ottla-data")
    serve.add_argument("--ephemeral", action="store_true", help="keep no data after the end")
    serve.add_argument("--nodes", type=count, default=1, metavar="N", help="only 1 so far")
    serve.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="one configuration"
    )


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
