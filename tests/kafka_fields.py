"""Writes tests/data/kafka-4.3.1-fields.txt: what each field of Kafka's messages is, one a line.

    python -m tests.kafka_fields FOLDER > tests/data/kafka-4.3.1-fields.txt

FOLDER holds Kafka's own schemas (*.json), as they stand in its jars. Only needed for a new Kafka.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

Span = tuple[int, int]
LAST = 32767


def parse(text: str) -> dict[str, Any]:
    """One of Kafka's schema files: JSON with comments."""
    found: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return found


def span(text: str) -> Span:
    """`3`, `3+` or `3-5`; an empty span for `none`."""
    if text == "none":
        return (1, 0)
    first, _, last = text.partition("-")
    if first.endswith("+"):
        return (int(first[:-1]), LAST)
    return (int(first), int(last or first))


def meet(one: Span, other: Span) -> Span:
    return (max(one[0], other[0]), min(one[1], other[1]))


def lines_of(schema: dict[str, Any]) -> list[str]:
    """A message, its fields below it, indented by how deep they stand."""
    versions = span(schema["validVersions"])
    flexible = meet(versions, span(schema.get("flexibleVersions", "none")))
    shared = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    head = f"{schema['name']} {versions[0]}-{versions[1]}"
    if "apiKey" in schema:
        head += f" key={schema['apiKey']}"
    if flexible[0] <= flexible[1]:
        head += f" flexible={flexible[0]}"
    return [head, *field_lines(schema["fields"], versions, shared, " ")]


def field_lines(
    fields: list[dict[str, Any]], around: Span, shared: dict[str, Any], indent: str
) -> list[str]:
    lines = []
    for field in fields:
        versions = meet(around, span(field.get("versions") or field["taggedVersions"]))
        if versions[0] > versions[1]:
            continue
        lines.append(indent + field_line(field, versions, around))
        kind = field["type"].removeprefix("[]")
        inner = field.get("fields") or shared.get(kind)
        if inner:
            lines += field_lines(inner, versions, shared, indent + " ")
    return lines


def field_line(field: dict[str, Any], versions: Span, around: Span) -> str:
    name, kind = field["name"], field["type"]
    parts = [name[:1].lower() + name[1:], re.sub(r"^(\[\])?[A-Z]\w*", r"\1struct", kind)]
    parts.append(f"{versions[0]}-{versions[1]}")
    nullable = meet(versions, span(field.get("nullableVersions", "none")))
    if nullable[0] <= nullable[1]:
        parts.append(f"null={nullable[0]}")
    if "tag" in field:
        tagged = meet(versions, span(field["taggedVersions"]))
        if tagged != versions:
            raise ValueError(f"{name} is tagged in some of its versions only")
        parts.append(f"tag={field['tag']}")
    parts.append(f"default={default(field)}")
    if versions != around and field.get("ignorable"):
        parts.append("ignorable")
    if field.get("flexibleVersions") == "none":
        parts.append("never-compact")
    return " ".join(parts)


def default(field: dict[str, Any]) -> str:
    """The default as JSON; Kafka takes a null that is no string for no default."""
    kind, given = field["type"], field.get("default")
    if given == "null":
        return "null"
    if kind.startswith("[]"):
        return "[]"
    if kind[0].isupper():
        return "{}"
    if kind in ("string", "bytes", "records", "uuid"):
        return json.dumps(given or "")
    if kind == "bool":
        return str(given or False).lower()
    if kind == "float64":
        return str(float(given or 0))
    return str(int(str(given or 0), 0))


def main(folder: str) -> None:
    found = {}
    for path in Path(folder).rglob("*.json"):
        schema = parse(path.read_text())
        if schema["validVersions"] != "none":
            found[schema["name"]] = lines_of(schema)
    for name in sorted(found):
        print("\n".join(found[name]))


if __name__ == "__main__":
    main(sys.argv[1])
