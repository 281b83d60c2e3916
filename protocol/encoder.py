"""Compiles the writer of (message, version): straight-line Python, one function for a message.

A message is written as pieces that are joined in the end. Neighbouring fields of fixed size are
packed by one Struct, together with the length that follows them. As with readers there are two
flavours: the *fast* one, and where that fails the *exact* one, which writes field by field and so
can tell where a value cannot be written. Large records are not copied: they stay chunks of their
own, so a message that has them becomes a list.
"""

from __future__ import annotations

from struct import Struct, pack
from struct import error as StructError

from ottla.protocol.reading import STRING_SIZE_MAX
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

    # A message with records is written as chunks.
    Writer = Callable[[Any], bytes | list[Buffer]]

# Records from this size on are sent from where they are.
UNCOPIED_MIN = 4096

# What a value of a wrong type may cause; a string that is no UTF-8 is a ValueError, too.
_FAILURES = (
    StructError,
    AttributeError,
    TypeError,
    ValueError,
    OverflowError,
    IndexError,
    ProtocolError,
)
# Packers of up to 15 numbers, by their format.
_SHORT = {code: tuple(Struct(f">{n}{code}").pack for n in range(16)) for code in "bhiqHId"}


def _counted_packers(before: str, code: str) -> tuple[Callable[..., bytes], ...]:
    """Packers of a compact count and numbers, by that count: it is one more than it says."""
    return tuple(Struct(f">{before}B{max(n - 1, 0)}{code}").pack for n in range(16))


_COUNTED = {code: _counted_packers("", code) for code in "bhiqHId"}
# Compact lengths and counts that fit into one byte.
_ONE_BYTE = tuple(bytes([number]) for number in range(128))


def writer_of(schema: Schema, version: int) -> Writer:
    """A function that writes one message."""
    check_version(schema, version)
    return _Compiler(schema, version).source.function()


def source(schema: Schema, version: int) -> str:
    check_version(schema, version)
    return _Compiler(schema, version).source.text()


def write_exact(schema: Schema, version: int, message: Any) -> bytes | list[Buffer]:
    """Write field by field, and say where a value cannot be written."""
    known = schema.exact_writers.get(version)
    if known is None:
        made = _Compiler(schema, version, exact=True).source
        known = schema.exact_writers[version] = (made.function(), made)
    writer, made = known
    try:
        return writer(message)
    except _FAILURES as exception:
        inner = failed_at(made, exception)
        path = f"{schema.name}.{inner}" if inner else schema.name
        reason = exception.reason if isinstance(exception, ProtocolError) else str(exception)
        refusal = ProtocolError(reason, path)
    # Raised out here it does not hold the writer's frame, and with it the message.
    raise refusal


def _gather(pieces: list[Buffer]) -> list[Buffer]:
    """Join what stands between large records; they are left where they are."""
    chunks: list[Buffer] = []
    start = 0
    for number, piece in enumerate(pieces):
        if len(piece) >= UNCOPIED_MIN:
            chunks += (b"".join(pieces[start:number]), memoryview(piece))
            start = number + 1
    chunks.append(b"".join(pieces[start:]))
    return chunks


def _uvarint(value: int) -> bytes:
    out = bytearray()
    write_uvarint(out, value)
    return bytes(out)


def _string_size(value: int) -> bytes:
    """A compact length of two bytes or more."""
    if value > STRING_SIZE_MAX + 1:
        raise ProtocolError(f"a string of {value - 1} bytes; {STRING_SIZE_MAX} are allowed")
    return _uvarint(value)


def _check_present(value: Any) -> Any:
    if value is None:
        raise ProtocolError("null, which is not allowed here")
    return value


def _check_buffer(value: Any) -> memoryview:
    return memoryview(value).cast("B")


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
        self.source = source = Source("write", "message")
        # Fields of fixed size that wait to be packed by one Struct: (format, expression).
        self.waiting: list[tuple[str, str]] = []
        # Expressions of pieces that wait to be put; until `is_begun` there is no list of them.
        self.ready: list[str] = []
        self.pieces = "pieces"
        self.is_begun = False
        # Whether `pieces` is a bytearray, not a list: better for many small pieces.
        self.is_flat = False
        source.names.update(pack=pack, ProtocolError=ProtocolError, one=_ONE_BYTE)
        if exact:
            self.body(schema)
            return
        source.names["write_exact"] = lambda message: write_exact(schema, version, message)
        with source.block("try:"):
            self.body(schema)
        with source.block(f"except {source.name_for('failures', _FAILURES)}:"):
            # Left at once, so that the failure's frames go before the message is written again.
            source.line("pieces = None")
        source.line("return write_exact(message)")

    def body(self, schema: Schema) -> None:
        line = self.source.line
        self.has_records = schema.has_records
        if self.has_records:
            line("large = False")
        self.struct(schema, "message")
        joined = self.joined()
        if self.has_records:
            line(f"return {self.use(_gather)}(pieces) if large else [{joined}]")
        else:
            line(f"return {joined}")

    def use(self, function: Callable[..., Any]) -> str:
        name = function.__name__.lstrip("_")
        self.source.names[name] = function
        return name

    # pieces

    def wait(self, code: str, expression: str) -> None:
        self.waiting.append((code, expression))
        if self.exact:
            self.put()

    def pack_waiting(self) -> None:
        if self.waiting:
            self.ready.append(self.packed(self.waiting))
            self.waiting = []

    def packed(self, waiting: list[tuple[str, str]]) -> str:
        """An expression for fixed fields in one piece; a pad byte packs as zero without a value."""
        if all(code == "x" for code, _ in waiting):
            return repr(bytes(len(waiting)))
        name = self.source.variable("pack")
        self.source.names[name] = Struct(">" + "".join(code for code, _ in waiting)).pack
        values = ", ".join(expression for code, expression in waiting if code != "x")
        return f"{name}({values})"

    def put(self) -> None:
        """Put what is ready among the pieces; a statement, where an expression would not do."""
        self.pack_waiting()
        ready, self.ready = self.ready, []
        if self.is_flat:
            for piece in ready:
                self.source.line(f"{self.pieces} += {piece}")
        elif not self.is_begun:
            self.is_begun = True
            self.source.line(f"{self.pieces} = [{', '.join(ready)}]")
        elif len(ready) == 1:
            self.source.line(f"{self.pieces}.append({ready[0]})")
        elif ready:
            self.source.line(f"{self.pieces} += ({', '.join(ready)})")

    def joined(self) -> str:
        """All pieces as one expression. Where nothing branched there never was a list of them."""
        self.pack_waiting()
        if self.is_begun:
            self.put()
            return f"b''.join({self.pieces})"
        ready, self.ready = self.ready, []
        if len(ready) == 1:
            return ready[0]
        return f"b''.join(({', '.join(ready)}))" if ready else "b''"

    # structs and fields

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

    # strings, bytes, records

    def sized(self, field: Field, attribute: str) -> None:
        """`size` is the length as it is sent: compact ones are one more than they say."""
        line = self.source.line
        raw, size = self.source.variable("raw"), self.source.variable("n")
        compact = self.flexible and field.compact
        if field.nullable_in(self.version):
            line(f"{raw} = {attribute}")
            with self.source.block(f"if {raw} is None:"):
                line(f"{raw} = b''")
                line(f"{size} = {0 if compact else -1}")
            with self.source.block("else:"):
                self.content(field, raw, raw, size)
        else:
            if self.exact:
                line(f"{self.use(_check_present)}({attribute})")
            self.content(field, attribute, raw, size)
        if not compact:
            self.wait("h" if field.kind == "String" else "i", size)
            self.pack_waiting()
        else:
            self.compact_length(size, _string_size if field.kind == "String" else _uvarint)
        self.ready.append(raw)
        if field.kind == "Records":
            line(f"if {size} >= {UNCOPIED_MIN + int(compact)}: large = True")
        if self.exact:
            self.put()

    def content(self, field: Field, attribute: str, raw: str, size: str) -> None:
        line = self.source.line
        more = " + 1" if self.flexible and field.compact else ""
        if field.kind == "String":
            # Java writes a lone surrogate as a question mark.
            errors = "'utf-8', 'replace'" if self.exact else ""
            line(f"{raw} = {attribute}.encode({errors})")
            if self.exact:
                line(f"{self.use(_check_string)}({raw})")
        elif self.exact:
            line(f"{raw} = {self.use(_check_buffer)}({attribute})")
        elif raw != attribute:
            line(f"{raw} = {attribute}")
        line(f"{size} = len({raw}){more}")

    def compact_length(self, size: str, long: Callable[[int], bytes]) -> None:
        """A length or count; in one byte it is packed together with what waits."""
        waiting, self.waiting = self.waiting, []
        name = self.use(long)
        if not waiting:
            self.ready.append(f"one[{size}] if {size} < 128 else {name}({size})")
            return
        short = self.packed([*waiting, ("B", size)])
        middle = ""
        if long is _uvarint:
            two = [("B", f"{size} & 127 | 128"), ("B", f"{size} >> 7")]
            middle = f"{self.packed([*waiting, *two])} if {size} < 16384 else "
        self.ready.append(
            f"{short} if {size} < 128 else {middle}{self.packed(waiting)} + {name}({size})"
        )

    def inner_struct(self, schema: Schema, field: Field, attribute: str) -> None:
        line = self.source.line
        value = self.source.variable("x")
        line(f"{value} = {attribute}")
        if not field.nullable_in(self.version):
            self.struct(schema.part(field), value)
            return
        self.put()
        with self.source.block(f"if {value} is None:"):
            self.wait("b", "-1")
            self.put()
        with self.source.block("else:"):
            self.wait("b", "1")
            self.struct(schema.part(field), value)
            self.put()

    # arrays

    def array(self, schema: Schema, field: Field, attribute: str) -> None:
        line = self.source.line
        items, count = self.source.variable("items"), self.source.variable("n")
        line(f"{items} = {attribute}")
        compact = self.flexible and field.compact
        length = f"{count} = len({items}){' + 1' if compact else ''}"
        if field.nullable_in(self.version):
            with self.source.block(f"if {items} is None:"):
                line(f"{items} = ()")
                line(f"{count} = {0 if compact else -1}")
            with self.source.block("else:"):
                line(length)
        else:
            if self.exact:
                line(f"{self.use(_check_present)}({items})")
            line(length)
        numbers = FORMATS.get(field.kind) in tuple("bhiqHId")
        if numbers and compact and not self.exact:
            self.counted_numbers(FORMATS[field.kind], items, count)
            return
        if compact:
            self.compact_length(count, _uvarint)
        else:
            self.wait("i", count)
        if numbers:
            self.numbers(FORMATS[field.kind], items)
        else:
            self.elements(schema, field, items)

    def counted_numbers(self, code: str, items: str, count: str) -> None:
        """What waits, a compact count and the numbers as one piece."""
        waiting, self.waiting = self.waiting, []
        before = "".join(each for each, _ in waiting)
        values = "".join(f"{expression}, " for each, expression in waiting if each != "x")
        packers = _counted_packers(before, code) if waiting else _COUNTED[code]
        short = self.source.name_for("short", packers)
        nothing = "" if waiting else f"one[1] if {count} == 1 else "
        self.ready.append(
            f"{nothing}{short}[{count}]({values}{count}, *{items}) if {count} < 16 "
            f"else {f'{self.packed(waiting)} + ' if waiting else ''}"
            f"{self.use(_uvarint)}({count}) + pack(f'>{{{count} - 1}}{code}', *{items})"
        )

    def numbers(self, code: str, items: str) -> None:
        if self.exact:
            index = self.source.variable("i")
            self.put()
            with (
                self.source.block(f"for {index}, value in enumerate({items}):"),
                self.source.at(f"[{{{index}}}]"),
            ):
                self.wait(code, "value")
            return
        self.pack_waiting()
        short, total = self.source.name_for("short", _SHORT[code]), f"len({items})"
        self.ready.append(
            f"{short}[{total}](*{items}) if {total} < 16 else pack(f'>{{{total}}}{code}', *{items})"
        )

    def elements(self, schema: Schema, field: Field, items: str) -> None:
        has_records = field.kind not in PRIMITIVES and schema.part(field).has_records
        if self.exact or has_records or (self.is_begun and not field.nullable_in(self.version)):
            self.put()
            self.loop(schema, field, items)
            return
        # Joined aside where there are elements: what has none stays one expression.
        self.pack_waiting()
        ready, self.ready = self.ready, []
        outer = self.pieces, self.is_begun, self.is_flat
        self.pieces = self.source.variable("aside")
        line = self.source.line
        with self.source.block(f"if {items}:"):
            line(f"{self.pieces} = bytearray()")
            self.is_begun = self.is_flat = True
            self.loop(schema, field, items)
        line(f"else: {self.pieces} = b''")
        self.ready = [*ready, self.pieces]
        self.pieces, self.is_begun, self.is_flat = outer

    def loop(self, schema: Schema, field: Field, items: str) -> None:
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
            self.put()

    # tagged fields

    def tags(self, schema: Schema, tagged: list[Field], value: str) -> None:
        """Tagged fields, in the order of their tags; one that equals its default is not written."""
        line = self.source.line
        if not tagged:
            self.wait("x", "")
            return
        count, section = self.source.variable("t"), self.source.variable("tags")
        nothing = " or ".join(
            self.differs(schema, field, f"{value}.{field.name}") for field in tagged
        )
        with self.source.block(f"if {nothing}:"):
            self.tag_section(schema, tagged, value, count=count, section=section)
        line(f"else: {section} = one[0]")
        self.pack_waiting()
        self.ready.append(section)
        if self.exact:
            self.put()

    def tag_section(
        self, schema: Schema, tagged: list[Field], value: str, *, count: str, section: str
    ) -> None:
        """Count the tagged fields, then write them, aside."""
        line = self.source.line
        outer = self.pieces, self.is_begun, self.is_flat, self.ready, self.waiting
        self.pieces, self.is_begun, self.is_flat, self.ready, self.waiting = (
            section,
            True,
            False,
            [],
            [],
        )
        line(f"{count} = 0")
        line(f"{section} = []")
        for field in tagged:
            with (
                self.source.block(f"if {self.written(schema, field, value)}:"),
                self.source.at(f".{field.name}"),
            ):
                line(f"{count} += 1")
                self.tagged(schema, field, f"{value}.{field.name}")
        line(f"{section} = b''.join(({self.use(_uvarint)}({count}), *{section}))")
        self.pieces, self.is_begun, self.is_flat, self.ready, self.waiting = outer

    def written(self, schema: Schema, field: Field, value: str) -> str:
        attribute = f"{value}.{field.name}"
        if field.default is not ABSENT:
            return self.differs(schema, field, attribute)
        default_name = self.source.name_for("D", empty(schema.part(field)))
        return f"{attribute} is not None and {attribute} != {default_name}"

    def tagged(self, schema: Schema, field: Field, attribute: str) -> None:
        """One tagged field: it is written aside first, since its size stands before it."""
        outer, begun = self.pieces, self.is_begun
        self.pieces, self.is_begun = self.source.variable("aside"), False
        if field.kind in PRIMITIVES or field.array:
            self.field(schema, field, attribute)
        elif field.nullable_in(self.version):
            self.nullable_tagged_struct(schema, field, attribute)
        else:
            self.struct(schema.part(field), attribute)
        aside = self.pieces
        self.source.line(f"{aside} = {self.joined()}")
        self.pieces, self.is_begun = outer, begun
        self.ready = [f"one[{field.tag}]", f"{self.use(_uvarint)}(len({aside}))", aside]
        self.put()

    def nullable_tagged_struct(self, schema: Schema, field: Field, attribute: str) -> None:
        """In a tagged field null is 0 and a struct follows 1, as unsigned varints."""
        self.put()
        with self.source.block(f"if {attribute} is None:"):
            self.ready = ["one[0]"]
            self.put()
        with self.source.block("else:"):
            self.ready = ["one[1]"]
            self.struct(schema.part(field), attribute)
            self.put()
