"""Messages as JSON, in the shape of Kafka's own JsonConverter classes.

Kafka's field names, bytes and uuids in base64, tagged fields that equal their default left out.
Records are their raw bytes in base64; Kafka prints only their size. For tools and tests: it walks
the schema field by field, and no hot path comes here.
"""

from __future__ import annotations

import base64
import re
from math import isfinite, isnan

from ottla.protocol.schema import (
    ABSENT,
    PRIMITIVES,
    TYPE_CHECKING,
    Field,
    Schema,
    check_version,
    default_of,
    empty,
    schema_of,
)
from ottla.protocol.wire import ProtocolError

if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

_RANGES = {
    "Int8": (-(2**7), 2**7 - 1),
    "Int16": (-(2**15), 2**15 - 1),
    "Int32": (-(2**31), 2**31 - 1),
    "Int64": (-(2**63), 2**63 - 1),
    "Uint16": (0, 2**16 - 1),
    "Uint32": (0, 2**32 - 1),
}
_BASE64 = re.compile(
    r"([\x00-\x20]*[A-Za-z0-9+/]{4})*"
    r"([\x00-\x20]*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=))?[\x00-\x20]*"
)
_URL_SAFE = re.compile(r"[A-Za-z0-9_-]{22}(==)?")


def to_json(message: Any, version: int) -> dict[str, Any]:
    """The JSON of one message, as Kafka's converter for it writes it."""
    schema = schema_of(type(message))
    check_version(schema, version)
    return _struct_to_json(schema, message, version, schema.name)


def from_json(cls: type[T], version: int, json: Any) -> T:
    """The message that a JSON of Kafka's shape describes. Unknown members are ignored."""
    schema = schema_of(cls)
    check_version(schema, version)
    made: T = _struct_from_json(schema, json, version, schema.name)
    return made


def _struct_to_json(schema: Schema, value: Any, version: int, path: str) -> dict[str, Any]:
    result = {}
    for field in schema.fields:
        content = getattr(value, field.name)
        inner = f"{path}.{field.name}"
        if not field.exists_in(version):
            if not field.ignorable and content != default_of(schema, field):
                raise ProtocolError(f"version {version} cannot carry this field", inner)
        elif field.tag is None or content != default_of(schema, field):
            if field.default is ABSENT and content == empty(schema.part(field)):
                continue
            result[field.json_name] = _to_json(schema, field, content, version, inner)
    return result


def _to_json(schema: Schema, field: Field, value: Any, version: int, path: str) -> Any:
    if value is None:
        if not field.nullable_in(version):
            raise ProtocolError("null, which is not allowed here", path)
        return None
    if not field.array:
        return _element_to_json(schema, field, value, version, path)
    return [
        _element_to_json(schema, field, element, version, f"{path}[{index}]")
        for index, element in enumerate(value)
    ]


def _element_to_json(schema: Schema, field: Field, value: Any, version: int, path: str) -> Any:
    if field.kind not in PRIMITIVES:
        return _struct_to_json(schema.part(field), value, version, path)
    if field.kind == "Uuid":
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    if field.kind in ("Bytes", "Records"):
        return base64.b64encode(value).decode()
    if field.kind == "Float64" and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _struct_from_json(schema: Schema, json: Any, version: int, path: str) -> Any:
    if not isinstance(json, dict):
        raise ProtocolError(f"an object is expected, not {_name(json)}", path)
    values = {}
    for field in schema.fields:
        inner = f"{path}.{field.name}"
        if field.json_name in json:
            # Of another version too, as Kafka does: what that cannot carry is refused when written.
            values[field.name] = _from_json(schema, field, json[field.json_name], version, inner)
        elif field.exists_in(version) and field.tag is None:
            raise ProtocolError(f"the member {field.json_name} is missing", path)
        else:
            values[field.name] = default_of(schema, field)
    return schema.cls(**values)


def _from_json(schema: Schema, field: Field, json: Any, version: int, path: str) -> Any:
    if json is None:
        if not field.nullable_in(version):
            raise ProtocolError("null, which is not allowed here", path)
        return None
    if not field.array:
        return _element_from_json(schema, field, json, version, path)
    if not isinstance(json, list):
        raise ProtocolError(f"an array is expected, not {_name(json)}", path)
    return [
        _element_from_json(schema, field, element, version, f"{path}[{index}]")
        for index, element in enumerate(json)
    ]


def _element_from_json(schema: Schema, field: Field, json: Any, version: int, path: str) -> Any:
    kind = field.kind
    if kind not in PRIMITIVES:
        return _struct_from_json(schema.part(field), json, version, path)
    if kind in _RANGES:
        return _integer(json, *_RANGES[kind], path)
    if kind in ("Bool", "Float64"):
        if not isinstance(json, bool if kind == "Bool" else float):
            raise ProtocolError(f"{kind} is expected, not {_name(json)}", path)
        return json
    if not isinstance(json, str):
        raise ProtocolError(f"{kind} is expected, not {_name(json)}", path)
    if kind == "Uuid":
        return _uuid(json, path)
    return json if kind == "String" else _base64(json, path)


def _integer(json: Any, least: int, most: int, path: str) -> int:
    if not isinstance(json, int) or isinstance(json, bool):
        raise ProtocolError(f"an integer is expected, not {_name(json)}", path)
    if not least <= json <= most:
        # It may have thousands of digits, which Python does not even print.
        raise ProtocolError(f"an integer is not within {least} and {most}", path)
    return json


def _uuid(json: str, path: str) -> bytes:
    if not _URL_SAFE.fullmatch(json):
        raise ProtocolError("a uuid is 22 characters of URL-safe base64", path)
    return base64.urlsafe_b64decode(json[:22] + "==")


def _base64(json: str, path: str) -> bytes:
    # As Kafka's JSON library has it: white space may stand between groups of four characters, and
    # the last group is filled up where that is needed, and only there.
    if not _BASE64.fullmatch(json):
        raise ProtocolError("not base64", path)
    return base64.b64decode(json)


def _name(json: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return names.get(type(json), "null" if json is None else "a number")
