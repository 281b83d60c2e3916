"""The language in which messages are declared, and the two doors to their bytes.

A message is one dataclass for all its versions; each field says in which versions it exists. The
annotation names Kafka's type (`String | None`, `list[Int32]`), so it is parsed here as text and
never evaluated. The codec of (message, version) is Python source, compiled when first used by
`decoder` and `encoder`; `generated_source` shows it to whoever debugs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from ottla.protocol.wire import Buffer, ProtocolError

# Importing typing costs as much as decoding ten thousand small requests; type checkers read this
# name as true, the interpreter never does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, dataclass_transform

    from ottla.protocol.decoder import Reader
    from ottla.protocol.encoder import Writer
    from ottla.protocol.source import Source

    T = TypeVar("T")
else:

    def dataclass_transform(**_):
        return lambda decorator: decorator


Bool = bool
Int8 = int
Int16 = int
Int32 = int
Int64 = int
Uint16 = int
Uint32 = int
Float64 = float
String = str
Uuid = bytes
Bytes = bytes
Records = bytes | bytearray | memoryview

INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
ZERO = bytes(16)


class _Mark:
    """A default that is not a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


REQUIRED: Any = _Mark("REQUIRED")
# A struct or list of defaults, made anew for each message.
EMPTY: Any = _Mark("EMPTY")
# None stands for a tagged struct that was not sent. On the wire it is never null.
ABSENT: Any = _Mark("ABSENT")
# Of an argument that was not given: a list or struct is made for it.
_MADE: Any = _Mark("MADE")


@dataclass(slots=True, kw_only=True, eq=False)
class Field:
    """One field of a message or part: its type, and the versions in which it exists."""

    name: str = ""
    kind: str = ""  # a primitive type's name, or the name of a part
    array: bool = False
    nullable: bool = False
    default: Any = REQUIRED
    first: int = 0
    until: int = 32767
    tag: int | None = None
    null_since: int = 0
    ignorable: bool = False
    compact: bool = True

    def exists_in(self, version: int) -> bool:
        return self.first <= version <= self.until

    def nullable_in(self, version: int) -> bool:
        return self.nullable and self.null_since <= version and self.default is not ABSENT

    @property
    def json_name(self) -> str:
        """Kafka's name as its JSON has it: only the first letter is lowered."""
        head, *rest = self.name.split("_")
        camel = head + "".join(word[:1].upper() + word[1:] for word in rest)
        return camel[:1].lower() + camel[1:]


def since(
    first: int = 0,
    *,
    until: int = 32767,
    default: Any = REQUIRED,
    tag: int | None = None,
    null_since: int = 0,
    ignorable: bool = False,
    compact: bool = True,
) -> Any:
    """Declare a field that does not exist in all versions of its message, or is tagged.

    `ignorable`: encoding a value other than the default for a version without the field drops it;
    otherwise that is an error. `null_since`: the first version in which null may be sent.
    `compact=False`: the length keeps its old form in flexible versions.
    """
    return Field(
        first=first,
        until=until,
        default=default,
        tag=tag,
        null_since=null_since,
        ignorable=ignorable,
        compact=compact,
    )


class _Codecs(dict[int, "Any"]):
    """Readers or writers of one message by version, compiled when first asked for."""

    __slots__ = ("compile",)

    def __init__(self, compile: Callable[[int], Any]) -> None:
        self.compile = compile

    def __missing__(self, version: int) -> Any:
        made = self[version] = self.compile(version)
        return made


@dataclass(slots=True, eq=False)
class Schema:
    """What is known of a message or part, and the codecs compiled so far."""

    cls: type
    fields: list[Field]
    key: int | None = None
    versions: tuple[int, int] = (0, 32767)
    flexible: int | None = None
    # By version: what decode and encode call, and the flavours behind it (see decoder.py).
    readers: dict[int, Reader] = dataclass_field(default_factory=dict)
    exact_readers: dict[int, tuple[Reader, Source]] = dataclass_field(default_factory=dict)
    writers: dict[int, Writer] = dataclass_field(default_factory=dict)
    exact_writers: dict[int, tuple[Writer, Source]] = dataclass_field(default_factory=dict)
    _has_records: bool | None = None

    @property
    def name(self) -> str:
        return self.cls.__name__

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible

    @property
    def has_records(self) -> bool:
        """Whether record batches stand in it: such messages are large, and must not be copied."""
        if self._has_records is None:
            self._has_records = any(
                field.kind == "Records"
                or (field.kind not in PRIMITIVES and self.part(field).has_records)
                for field in self.fields
            )
        return self._has_records

    def part(self, field: Field) -> Schema:
        """The schema of the part that a field holds."""
        found: Schema = getattr(sys.modules[self.cls.__module__], field.kind).__schema__
        return found


_NUMBERS = ("Int8", "Int16", "Int32", "Int64", "Uint16", "Uint32", "Float64")
PRIMITIVES = frozenset((*_NUMBERS, "Bool", "String", "Uuid", "Bytes", "Records"))


def schema_of(cls: type) -> Schema:
    found: Schema = cls.__schema__  # type: ignore[attr-defined]
    return found


@dataclass_transform(kw_only_default=True, field_specifiers=(since,))
def part(cls: type[T]) -> type[T]:
    """Declare a struct that stands inside a message."""
    return _declare(cls)


@dataclass_transform(kw_only_default=True, field_specifiers=(since,))
def message(
    *, versions: tuple[int, int], flexible: int | None = None, key: int | None = None
) -> Callable[[type[T]], type[T]]:
    """Declare a request, a response, a header or a record, for all its versions."""

    def declare(cls: type[T]) -> type[T]:
        made = _declare(cls)
        schema = schema_of(made)
        schema.key = key
        schema.versions = versions
        schema.flexible = flexible
        schema.readers = _Codecs(lambda version: _compile_reader(schema, version))
        schema.writers = _Codecs(lambda version: _compile_writer(schema, version))
        # On the class as well, where decode and encode find them with one look less.
        codecs: Any = made
        codecs.__readers__ = schema.readers
        codecs.__writers__ = schema.writers
        return made

    return declare


def _declare(cls: type[T]) -> type[T]:
    fields = []
    for name, annotation in cls.__annotations__.items():
        declared = cls.__dict__.get(name, REQUIRED)
        spec = declared if isinstance(declared, Field) else Field(default=declared)
        spec.name = name
        spec.nullable = annotation.endswith(" | None")
        kind = annotation.removesuffix(" | None")
        spec.array = kind.startswith("list[")
        spec.kind = kind[5:-1] if spec.array else kind
        fields.append(spec)
    made = _with_slots(cls, fields)
    made.__schema__ = Schema(made, fields)
    return made  # type: ignore[no-any-return]


def _with_slots(cls: type, fields: list[Field]) -> Any:
    """What `dataclass(slots=True, kw_only=True)` makes, in a quarter of its time: a start loads
    hundreds of these classes."""
    names = {field.name: None for field in fields}
    given: dict[str, Any] = {"_MADE": _MADE}
    parameters, lines = [], []
    for field in fields:
        name, value = field.name, field.name
        if field.default is REQUIRED:
            parameters.append(name)
        elif field.default is EMPTY:
            given[f"_new_{name}"] = _maker(cls.__module__, field.kind)
            parameters.append(f"{name}=_MADE")
            value = f"_new_{name}() if {name} is _MADE else {name}"
        elif isinstance(field.default, list):
            parameters.append(f"{name}=_MADE")
            value = f"[] if {name} is _MADE else {name}"
        else:
            given[f"_is_{name}"] = None if field.default is ABSENT else field.default
            parameters.append(f"{name}=_is_{name}")
        lines.append(f"\n self.{name} = {value}")
    head = ", ".join(["self", "*", *parameters] if parameters else ["self"])
    exec(f"def __init__({head}):{''.join(lines) or ' pass'}", given)
    kept = {name: value for name, value in cls.__dict__.items() if name not in names}
    for name in ("__dict__", "__weakref__"):
        kept.pop(name, None)
    kept.update(
        __slots__=tuple(names),
        __match_args__=(),
        __dataclass_fields__=_DataclassFields(fields),
        __init__=given["__init__"],
        __eq__=_equal,
        __hash__=None,
        __repr__=_represent,
    )
    return type(cls)(cls.__name__, cls.__bases__, kept)


def _maker(module: str, kind: str) -> Callable[[], Any]:
    return lambda: empty(schema_of(getattr(sys.modules[module], kind)))


class _DataclassFields:
    """For `dataclasses.fields` and `replace`, made when somebody asks."""

    __slots__ = ("_fields",)

    def __init__(self, fields: list[Field]) -> None:
        self._fields = fields

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        from dataclasses import make_dataclass

        names = [(field.name, "object") for field in self._fields]
        made: Any = make_dataclass(owner.__name__, names)
        found: dict[str, Any] = made.__dataclass_fields__
        return found


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)


def _represent(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__name__}({values})"


_ZEROS: dict[str, Any] = {
    "Bool": False,
    "Float64": 0.0,
    "String": "",
    "Uuid": ZERO,
    "Bytes": b"",
    "Records": b"",
}


def default_of(schema: Schema, field: Field) -> Any:
    """What a field holds when it was not sent."""
    if field.default is ABSENT:
        return None
    if field.default is EMPTY:
        return empty(schema.part(field))
    if isinstance(field.default, list):
        return []
    if field.default is not REQUIRED:
        return field.default
    if field.array:
        return []
    return _ZEROS.get(field.kind, 0) if field.kind in PRIMITIVES else empty(schema.part(field))


def empty(schema: Schema) -> Any:
    """A struct of defaults; a field that declares none has Kafka's: zero, empty or false."""
    return schema.cls(**{field.name: default_of(schema, field) for field in schema.fields})


def check_version(schema: Schema, version: int) -> None:
    first, last = schema.versions
    if not first <= version <= last:
        raise ProtocolError(f"version {version} is not one of {first}-{last}", schema.name)


def _compile_reader(schema: Schema, version: int) -> Reader:
    from ottla.protocol.decoder import reader_of

    return reader_of(schema, version)


def _compile_writer(schema: Schema, version: int) -> Writer:
    from ottla.protocol.encoder import writer_of

    return writer_of(schema, version)


def decode(cls: type[T], version: int, data: Buffer) -> T:
    """Read one message. Bytes after its end are ignored, as Kafka ignores them."""
    return cls.__readers__[version](data)  # type: ignore[attr-defined,no-any-return]


def decode_prefix(cls: type[T], version: int, data: Buffer) -> tuple[T, int]:
    """Read one message and say how many bytes it took. For tools: it is the slower way."""
    from ottla.protocol.decoder import read_exact

    return read_exact(schema_of(cls), version, data)


def reader(cls: type[T], version: int) -> Callable[[Buffer], T]:
    """What `decode` calls, for whoever reads many messages of one version."""
    return schema_of(cls).readers[version]


def writer(cls: type[T], version: int) -> Callable[[T], bytes | list[Buffer]]:
    """What `encode` calls; a message that may hold record batches is written as chunks."""
    return schema_of(cls).writers[version]


def encode(message: Any, version: int) -> bytes:
    """The bytes of one message, in one piece."""
    found: bytes | list[Buffer] = message.__writers__[version](message)
    return found if isinstance(found, bytes) else b"".join(found)


def encode_chunks(message: Any, version: int) -> list[Buffer]:
    """The bytes of one message; large records are not copied, but stay chunks of their own."""
    found: bytes | list[Buffer] = message.__writers__[version](message)
    return [found] if isinstance(found, bytes) else found


def generated_source(cls: type, version: int) -> str:
    """The source of the codec of one version, reader and writer, as the interpreter runs it."""
    from ottla.protocol import decoder, encoder

    schema = schema_of(cls)
    return decoder.source(schema, version) + "\n\n" + encoder.source(schema, version)
