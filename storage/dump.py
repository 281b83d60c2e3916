"""`ottla dump PATH...`: prints what segments, indexes, snapshots and checkpoints hold.

Goes through the paths and tells files by their names; dump_rows.py knows what they hold. It may
meet any file: from a broken one it prints what is whole, then a line that says where it breaks and
why. Nothing makes it loop, trace back, or take memory without bounds.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice

from ottla.storage.dump_print import JsonPrinter, Printer
from ottla.storage.dump_rows import Source, rows
from ottla.storage.errors import StorageError
from ottla.storage.files import Files
from ottla.storage.format import Fields, FormatError
from ottla.storage.format_names import parse_directory_name, parse_file_name

# DIR/NODE/TOPIC-PARTITION/FILE and one more: a link may lead round in a circle.
DEPTH_MAX = 4

Printers = Printer | JsonPrinter


def run(
    paths: Sequence[str],
    *,
    with_records: bool = False,
    limit: int | None = None,
    as_json: bool = False,
) -> int:
    """The command: prints to stdout, complains to stderr, and returns the exit code."""
    from ottla.storage.disk_files import DiskFiles

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    printer: Printers = JsonPrinter(sys.stdout) if as_json else Printer(sys.stdout, sys.stderr)
    try:
        with closing(DiskFiles()) as files:
            dump(paths, files, printer, with_records=with_records, limit=limit)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough (`| head`). Closed, or Python would complain when it ends.
        with suppress(BrokenPipeError):
            sys.stdout.close()
    except KeyboardInterrupt:
        return 130
    return 1 if printer.has_complained else 0


def dump(
    paths: Sequence[str],
    files: Files,
    printer: Printers,
    *,
    with_records: bool = False,
    limit: int | None = None,
) -> None:
    """Print every file that the paths name and, of directories, those that they hold."""
    for named in paths:
        for path in _files_below(named, files, printer):
            fields = _told_by_name(path)
            try:
                size = files.size(path)
                printer.file(path, fields, size)
                if "kind" in fields:
                    _dump_file(path, fields, files, printer, with_records, limit)
                elif path == named:
                    printer.complain(path, None, "Kafka has no file of such a name")
            except BrokenPipeError:
                raise
            except (StorageError, OSError) as error:
                printer.complain(path, None, _reason(error))
            except RecursionError:
                printer.complain(path, None, "nested too deeply")


def _files_below(path: str, files: Files, printer: Printers, depth: int = 0) -> Iterator[str]:
    try:
        names = files.list(path) if files.is_directory(path) else None
    except (StorageError, OSError) as error:
        printer.complain(path, None, _reason(error))
        return
    if names is None:
        yield path
    elif depth == DEPTH_MAX:
        printer.complain(path, None, "a log directory is not as deep as this")
    else:
        for name in names:
            yield from _files_below(f"{path.rstrip('/')}/{name}", files, printer, depth + 1)


def _told_by_name(path: str) -> Fields:
    """What the names of a file and of its directory say of it."""
    place, name = os.path.split(os.path.abspath(path))
    fields = parse_file_name(name) or {}
    if fields and (directory := parse_directory_name(os.path.basename(place))):
        fields |= {"topic": directory["topic"], "partition": directory["partition"]}
        fields["state"] = fields["state"] or directory["state"]
    return fields


def _dump_file(
    path: str,
    fields: Fields,
    files: Files,
    printer: Printers,
    with_records: bool,
    limit: int | None,
) -> None:
    with closing(files.open(path, read_only=True)) as file:
        source = Source(
            kind=fields["kind"],
            offset=fields.get("offset", 0),
            topic=fields.get("topic"),
            read=file.read,
            size=file.size,
        )
        try:
            for row in islice(rows(source, with_records=with_records), limit):
                if row["kind"] == "error":
                    printer.complain(path, row["position"], row["reason"])
                else:
                    printer.row(path, row)
        except FormatError as error:
            printer.complain(path, error.position, error.reason)


def _reason(error: StorageError | OSError) -> str:
    if isinstance(error, StorageError):
        return error.reason
    return error.strerror or str(error)
