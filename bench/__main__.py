"""`python -m bench [--check] [section ...]`: run the sections and print their tables.

With --check the exit code is 1 if a goal is missed. A section is a module of this package with
`run`, which returns tables; it is imported only if it is asked for.
"""

import argparse
import os
import platform
import sys
from importlib import import_module

SECTIONS = {
    "codecs": "read and write the hottest messages, in microseconds",
    "batches": "read and patch the header of a record batch, in microseconds",
    "storage": "append, read and look up beside bare system calls; open and recover",
    "broker": "serve beside Apache Kafka: the same clients, in turns",
    "openings": "open 1,000 partitions and recover 1 GiB, beside Apache Kafka (needs Java)",
    "startup": "import and read the first request, in milliseconds",
}


def main(arguments_given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--check", action="store_true", help="fail if a goal is missed")
    arguments = parser.parse_args(arguments_given)
    if unknown := [name for name in arguments.sections if name not in SECTIONS]:
        parser.error(f"no section {unknown[0]!r}: there are {', '.join(SECTIONS)}")
    print(machine())
    missed = []
    for name in arguments.sections or SECTIONS:
        print(f"\n{name}: {SECTIONS[name]}\n")
        for table in import_module(f"bench.{name}").run():
            print(table, flush=True)
            missed += table.missed()
    print(f"\nmissed goals: {len(missed) or 'none'}", *missed, sep="\n  ")
    return 1 if missed and arguments.check else 0


def machine() -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, {python}"


if __name__ == "__main__":
    sys.exit(main())
