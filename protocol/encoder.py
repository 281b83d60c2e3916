"""Compiles the writer of (message, version): straight-line Python, one function for a message.

Neighbouring fields of fixed size are packed by one Struct, together with the length that follows
them. As with readers there are two flavours: the *fast* one, and where that fails the *exact* one,
which writes field by field and so can tell where a value cannot be written. Large records are not
copied: they become chunks of their own.
"""

from __future__ import annotations

from struct import Struct, pack
from struct import error as StructError

from ottla.protocol.schema import (
    ABSENT,
    EMPTY,
    PRIMITIVES,
    TYPE_CHECKING,
    Field,
    Schema,
    check_version,
    empty,
)
from ottla.protocol.source import FORMATS, Source, failed_at
from ottla.protocol.wire import Buffer, ProtocolError, write_uvarint

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Writer = Callable[[Any, bytearray, list[Buffer]], bytearray]

# Records from this size on are sent from where they are.
COPIED_MAX = 4096
STRING_SIZE_MAX = 32767

# What a value of a wrong type may cause; a string that is no UTF-8 is a ValueError, too.
_FAILURES = (StructError, AttributeError, TypeError, ValueError, OverflowError)
# Packers of up to 15 numbers, by their format.
_SHORT = {code: tuple(Struct(f">{n}{code}").pack for n in range(16)) for code in "bhiqHId"}


def write(schema: Schema, message: Any, version: int, out: bytearray) -> list[Buffer]:
    """Append a message to `out`; the answer is what to send, beginning with `out`."""
    writer = schema.writers.get(version) or _writer(schema, version)
    mark = len(out)
    chunks: list[Buffer] = []
    try:
        chunks.append(writer(message, out, chunks))
        return chunks
    except (*_FAILURES, ProtocolError):
        del out[mark:]
        chunks.clear()
    chunks.append(_write_exact(schema, message, version, out, chunks))
    return chunks


def source(schema: Schema, version: int) -> str:
    check_version(schema, version)
    return _Compiler(schema, version).source.text()


def _writer(schema: Schema, version: int) -> Writer:
    check_version(schema, version)
    writer: Writer = _Compiler(schema, version).source.function()
    schema.writers[version] = writer
    return writer


def _write_exact(
    schema: Schema, message: Any, version: int, out: bytearray, chunks: list[Buffer]
) -> bytearray:
    known = schema.exact_writers.get(version)
    if known is None:
        made = _Compiler(schema, version, exact=True).source
        known = schema.exact_writers[version] = (made.function(), made)
    writer, made = known
    mark = len(out)
    try:
        found: bytearray = writer(message, out, chunks)
        return found
    except (*_FAILURES, ProtocolError) as exception:
        # `out` may be the first chunk already, with records behind it; give it back as it was.
        del out[mark:]
        inner = failed_at(made, exception)
        path = f"{schema.name}.{inner}" if inner else schema.name
        reason = exception.reason if isinstance(exception, ProtocolError) else str(exception)
        refusal = ProtocolError(reason, path)
    # Raised out here it does not hold the writer's frame, and with it the message.
    raise refusal


def _check_present(value: Any) -> Any:
    if value is None:
        raise ProtocolError("null, which is not allowed here")
    return value


def _check_string(raw: bytes) -> None:
    if len(raw) > STRING_SIZE_MAX:
        raise ProtocolError(f"a string of {len(raw)} bytes; {STRING_SIZE_MAX} are allowed")


def _check_uuid(value: bytes) -> bytes:
    if len(value) != 16:
        raise ProtocolError(f"a uuid of {len(value)} bytes")
    return value


class _Compiler:
    """Walks a schema once and writes the writer's source."""

    def __init__(self, schema: Schema, version: int, *, exact: bool = False) -> None:
        self.version = version
        self.flexible = schema.is_flexible(version)
        self.exact = exact
        self.source = source = Source("write", "message, out, chunks")
        self.out = "out"
        # Fields of fixed size that wait to be packed by one Struct: (format, expression).
        self.waiting: list[tuple[str, str]] = []
        source.names.update(pack=pack, ProtocolError=ProtocolError)
        self.struct(schema, "message")
        self.flush()
        source.line("return out")

    def use(self, function: Callable[..., Any]) -> str:
        name = function.__name__.lstrip("_")
        self.source.names[name] = function
        return name

    def struct(self, schema: Schema, value: str) -> None:
        tagged = []
        for field in schema.fields:
            with self.source.at(f".{field.name}"):
                attribute = f"{value}.{field.name}"
                if not field.exists_in(self.version):
                    self.absent(schema, field, attribute)
                elif field.tag is not None:
                    tagged.append(field)
                else:
                    self.field(schema, field, attribute)
        if self.flexible:
            self.tags(schema, sorted(tagged, key=lambda field: field.tag or 0), value)

    def absent(self, schema: Schema, field: Field, attribute: str) -> None:
        """A value that this version cannot carry is an error, unless the schema lets it go."""
        if not field.ignorable:
            self.source.line(
                f"if {self.differs(schema, field, attribute)}: "
                f"raise ProtocolError('version {self.version} cannot carry this field')"
            )

    def differs(self, schema: Schema, field: Field, attribute: str) -> str:
        default = field.default
        if default is ABSENT or default is None:
            return f"{attribute} is not None"
        if default is EMPTY:
            default_name = self.source.name_for("D", empty(schema.part(field)))
            return f"{attribute} != {default_name}"
        if default == [] and field.array:
            return f"{attribute} or {attribute} is None" if field.nullable else attribute
        if isinstance(default, bytes) and default:
            return f"{attribute} != {self.source.name_for('D', default)}"
        return f"{attribute} != {default!r}"

    def field(self, schema: Schema, field: Field, attribute: str) -> None:
        if field.array:
            self.array(schema, field, attribute)
        elif field.kind in FORMATS:
            self.fixed(field.kind, attribute)
        elif field.kind in PRIMITIVES:
            self.sized(field, attribute)
        else:
            self.inner_struct(schema, field, attribute)

    def fixed(self, kind: str, expression: str) -> None:
        if kind == "Uuid" and self.exact:
            expression = f"{self.use(_check_uuid)}({expression})"
        self.wait(FORMATS[kind], expression)

    def wait(self, code: str, expression: str) -> None:
        self.waiting.append((code, expression))
        if self.exact:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            self.put(self.take())

    def put(self, waiting: list[tuple[str, str]]) -> None:
        self.source.line(self.putting(waiting))

    def putting(self, waiting: list[tuple[str, str]]) -> str:
        """A statement that appends fixed fields; a pad byte packs as zero and has no value."""
        if len(waiting) == 1 and waiting[0][0] in "Bx":
            return f"{self.out}.append({waiting[0][1] or 0})"
        name = self.source.variable("pack")
        self.source.names[name] = Struct(">" + "".join(code for code, _ in waiting)).pack
        values = ", ".join(expression for code, expression in waiting if code != "x")
        return f"{self.out} += {name}({values})"

    def take(self) -> list[tuple[str, str]]:
        """What waits, for a caller that packs it together with a length, in several branches."""
        taken, self.waiting = self.waiting, []
        return taken

    def length(self, field: Field, size: str, code: str) -> None:
        """Write a length: `size` is an expression, negative for null."""
        if not (self.flexible and field.compact):
            self.wait(code, size)
            self.flush()
            return
        taken, line = self.take(), self.source.line
        line(f"if {size} < 127: {self.putting([*taken, ('B', f'{size} + 1')])}")
        with self.source.block("else:"):
            if taken:
                self.put(taken)
            line(f"{self.use(write_uvarint)}({self.out}, {size} + 1)")

    def sized(self, field: Field, attribute: str) -> None:
        """A string, bytes or records."""
        line = self.source.line
        raw, size = self.source.variable("raw"), self.source.variable("n")
        line(f"{raw} = {attribute}")
        if field.nullable_in(self.version):
            with self.source.block(f"if {raw} is None:"):
                line(f"{raw} = b''")
                line(f"{size} = -1")
            with self.source.block("else:"):
                self.content(field, raw, size)
        else:
            if self.exact:
                line(f"{self.use(_check_present)}({raw})")
            self.content(field, raw, size)
        self.length(field, size, "h" if field.kind == "String" else "i")
        if field.kind == "Records":
            self.records(raw, size)
        else:
            line(f"{self.out} += {raw}")

    def content(self, field: Field, raw: str, size: str) -> None:
        line = self.source.line
        if field.kind == "String":
            # Java writes a lone surrogate as a question mark.
            errors = "'utf-8', 'replace'" if self.exact else ""
            line(f"{raw} = {raw}.encode({errors})")
        line(f"{size} = len({raw})")
        if field.kind == "String":
            if self.exact:
                line(f"{self.use(_check_string)}({raw})")
            elif self.flexible and field.compact:
                line(f"if {size} > {STRING_SIZE_MAX}: raise ProtocolError('a long string')")

    def records(self, raw: str, size: str) -> None:
        line = self.source.line
        line(f"if {size} < {COPIED_MAX}: {self.out} += {raw}")
        with self.source.block("else:"):
            line(f"chunks += ({self.out}, memoryview({raw}))")
            line(f"{self.out} = bytearray()")

    def inner_struct(self, schema: Schema, field: Field, attribute: str) -> None:
        line = self.source.line
        value = self.source.variable("x")
        line(f"{value} = {attribute}")
        if not field.nullable_in(self.version):
            self.struct(schema.part(field), value)
            return
        taken = self.take()
        with self.source.block(f"if {value} is None:"):
            self.put([*taken, ("b", "-1")])
        with self.source.block("else:"):
            self.waiting = [*taken, ("b", "1")]
            self.struct(schema.part(field), value)
            self.flush()

    def array(self, schema: Schema, field: Field, attribute: str) -> None:
        line = self.source.line
        items, count = self.source.variable("items"), self.source.variable("n")
        line(f"{items} = {attribute}")
        if field.nullable_in(self.version):
            with self.source.block(f"if {items} is None:"):
                line(f"{items} = ()")
                line(f"{count} = -1")
            with self.source.block("else:"):
                line(f"{count} = len({items})")
        else:
            if self.exact:
                line(f"{self.use(_check_present)}({items})")
            line(f"{count} = len({items})")
        self.length(field, count, "i")
        if FORMATS.get(field.kind) in tuple("bhiqHId"):
            self.numbers(FORMATS[field.kind], items, count)
        else:
            self.elements(schema, field, items)

    def numbers(self, code: str, items: str, count: str) -> None:
        line = self.source.line
        if self.exact:
            index = self.source.variable("i")
            with (
                self.source.block(f"for {index}, value in enumerate({items}):"),
                self.source.at(f"[{{{index}}}]"),
            ):
                self.put([(code, "value")])
            return
        short = self.source.name_for("short", _SHORT[code])
        line(f"if -1 < {count} < 16: {self.out} += {short}[{count}](*{items})")
        line(f"elif {count} > 0: {self.out} += pack(f'>{{{count}}}{code}', *{items})")

    def elements(self, schema: Schema, field: Field, items: str) -> None:
        item, index = self.source.variable("x"), self.source.variable("i")
        head = f"for {item} in {items}:"
        if self.exact:
            head = f"for {index}, {item} in enumerate({items}):"
        with self.source.block(head), self.source.at(f"[{{{index}}}]"):
            if field.kind not in PRIMITIVES:
                self.struct(schema.part(field), item)
            elif field.kind in FORMATS:
                self.fixed(field.kind, item)
            else:
                self.sized(Field(kind=field.kind, compact=field.compact), item)
            self.flush()

    def tags(self, schema: Schema, tagged: list[Field], value: str) -> None:
        """Tagged fields, in the order of their tags; one that equals its default is not written."""
        line = self.source.line
        if not tagged:
            self.wait("x", "")
            return
        count = self.source.variable("t")
        line(f"{count} = 0")
        for field in tagged:
            line(f"if {self.written(schema, field, value)}: {count} += 1")
        self.wait("B", count)
        self.flush()
        with self.source.block(f"if {count}:"):
            for field in tagged:
                with (
                    self.source.block(f"if {self.written(schema, field, value)}:"),
                    self.source.at(f".{field.name}"),
                ):
                    self.tagged(schema, field, f"{value}.{field.name}")

    def written(self, schema: Schema, field: Field, value: str) -> str:
        attribute = f"{value}.{field.name}"
        if field.default is not ABSENT:
            return self.differs(schema, field, attribute)
        default_name = self.source.name_for("D", empty(schema.part(field)))
        return f"{attribute} is not None and {attribute} != {default_name}"

    def tagged(self, schema: Schema, field: Field, attribute: str) -> None:
        """One tagged field: it is written aside first, since its size stands before it."""
        line, outer = self.source.line, self.out
        self.out = self.source.variable("aside")
        line(f"{self.out} = bytearray()")
        if field.kind in PRIMITIVES or field.array:
            self.field(schema, field, attribute)
            self.flush()
        elif field.nullable_in(self.version):
            self.nullable_tagged_struct(schema, field, attribute)
        else:
            self.struct(schema.part(field), attribute)
            self.flush()
        aside, self.out = self.out, outer
        line(f"{self.out}.append({field.tag})")
        line(f"{self.use(write_uvarint)}({self.out}, len({aside}))")
        line(f"{self.out} += {aside}")

    def nullable_tagged_struct(self, schema: Schema, field: Field, attribute: str) -> None:
        """In a tagged field null is 0 and a struct follows 1, as unsigned varints."""
        with self.source.block(f"if {attribute} is None:"):
            self.source.line(f"{self.out}.append(0)")
        with self.source.block("else:"):
            self.source.line(f"{self.out}.append(1)")
            self.struct(schema.part(field), attribute)
            self.flush()
