"""Compiles the reader of (message, version): straight-line Python, one function for a message.

Neighbouring fields of fixed size are read by one Struct, together with the length that follows
them. There are two flavours. The *fast* one checks what it must to stay safe, lets slices past the
end come out short (the position tells in the end) and estimates memory from above. When it refuses,
the *exact* one reads the same bytes again: it checks each field, knows where it stands, and counts
what the values really cost. So errors are precise, and good requests do not pay for them.
"""

from __future__ import annotations

from struct import Struct, iter_unpack, unpack_from
from struct import error as StructError

from ottla.protocol import memory
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
from ottla.protocol.source import FORMATS, SIZES, Source, failed_at
from ottla.protocol.wire import Buffer, ProtocolError, read_uvarint

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Reader = Callable[[Buffer, int, int], tuple[Any, int]]

# Requests with records up to this size are copied before they are read: slices of bytes become
# strings in half the time that slices of a memoryview take.
COPIED_MAX = 16384
STRING_SIZE_MAX = 32767

_REFUSALS = (StructError, IndexError, UnicodeDecodeError, ProtocolError)
# Readers of arrays of up to 15 numbers, by their format.
_SHORT = {
    code: tuple(Struct(f">{count}{code}").unpack_from for count in range(16)) for code in "bhiqHId?"
}


def read(schema: Schema, version: int, data: Buffer) -> tuple[Any, int]:
    """Read one message from the start of `data`."""
    size = len(data)
    if type(data) is bytes or size <= COPIED_MAX or not schema.has_records:
        data = bytes(data)
        reader = schema.readers.get(version) or _reader(schema, version)
    else:
        reader = _view_reader(schema, version)
    try:
        found = reader(data, size, memory.fast_allowance(size))
        if found[1] <= size:
            return found
        del found
    except _REFUSALS:
        pass
    return _read_exact(schema, version, data)


def source(schema: Schema, version: int) -> str:
    check_version(schema, version)
    return _Compiler(schema, version).source.text()


def _reader(schema: Schema, version: int) -> Reader:
    check_version(schema, version)
    reader: Reader = _Compiler(schema, version).source.function()
    schema.readers[version] = reader
    return reader


def _view_reader(schema: Schema, version: int) -> Reader:
    found = schema.view_readers.get(version)
    if found is None:
        check_version(schema, version)
        found = _Compiler(schema, version, view=True).source.function()
        schema.view_readers[version] = found
    return found


def _read_exact(schema: Schema, version: int, data: Buffer) -> tuple[Any, int]:
    known = schema.exact_readers.get(version)
    if known is None:
        made = _Compiler(schema, version, view=True, exact=True).source
        known = schema.exact_readers[version] = (made.function(), made)
    reader, made = known
    size = len(data)
    try:
        found: tuple[Any, int] = reader(data, size, memory.exact_allowance(size))
        return found
    except (StructError, IndexError) as exception:
        refusal = ProtocolError("the bytes end here", _path(schema, made, exception))
    except ProtocolError as exception:
        refusal = ProtocolError(exception.reason, _path(schema, made, exception))
    # Raised out here it does not hold the reader's frame, and with it all that was read so far.
    raise refusal


def _path(schema: Schema, made: Source, exception: Exception) -> str:
    inner = failed_at(made, exception)
    return f"{schema.name}.{inner}" if inner else schema.name


def _read_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """A compact length of two bytes or more; what is odd about it is the exact reader's matter."""
    value, pos = read_uvarint(buf, pos)
    if not 0 < value <= 0x7FFF_FFFF:
        raise ProtocolError("an odd length")
    return value, pos


def _read_string_length(buf: Buffer, pos: int) -> tuple[int, int]:
    value, pos = _read_length(buf, pos)
    if value > STRING_SIZE_MAX + 1:
        raise ProtocolError("a long string")
    return value, pos


def _read_exact_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """A compact length less one, as Kafka's 32-bit arithmetic has it: negative is null."""
    value, pos = read_uvarint(buf, pos)
    return (value - 1 if value <= 0x8000_0000 else -1), pos


def _check_length(length: int, pos: int, end: int) -> None:
    if length > end - pos:
        raise ProtocolError(f"{length} bytes announced, {end - pos} left")


def _check_string(length: int, pos: int, end: int) -> None:
    if length > STRING_SIZE_MAX:
        raise ProtocolError(f"a string of {length} bytes; {STRING_SIZE_MAX} are allowed")
    _check_length(length, pos, end)


def _check_array(count: int, least: int, pos: int, end: int, left: int) -> None:
    if count < 0:
        raise ProtocolError("null, which is not allowed here")
    if count * least > end - pos:
        raise ProtocolError(f"{count} elements announced, {end - pos} bytes left")
    if left < 0:
        raise ProtocolError(f"{count} elements would take too much memory")


def _read_bytes(raw: Buffer, left: int) -> tuple[bytes, int]:
    left -= memory.BYTES_BYTES + len(raw)
    if left < 0:
        raise ProtocolError("the bytes would take too much memory")
    return bytes(raw), left


def _read_text(raw: Buffer, left: int, known: dict[bytes, str]) -> tuple[str, int]:
    """Decode as Java does, charge what it costs; the shortest strings are kept only once."""
    raw = bytes(raw)
    text = known.get(raw)
    if text is not None:
        return text, left
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = decode_as_java(raw)
    if text.isascii():
        left -= memory.ASCII_BYTES + len(text)
    else:
        left -= memory.TEXT_BYTES + 4 * len(text)
    if len(raw) <= 3 and len(known) < 4096:
        left -= memory.KNOWN_TEXT_BYTES
        known[raw] = text
    if left < 0:
        raise ProtocolError("the strings would take too much memory")
    return text, left


def decode_as_java(raw: bytes) -> str:
    """UTF-8 with U+FFFD for what is not; an encoded surrogate becomes one of them, as in Java."""
    import re

    # Python sees three faults, or two where the third byte is missing, and Java one.
    return re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]?", b"\xff", raw).decode("utf-8", "replace")


def _skip_tag(buf: Buffer, pos: int, end: int) -> int:
    """Skip the size and the bytes of an unknown tagged field."""
    size, pos = read_uvarint(buf, pos)
    _check_length(size, pos, end)
    return pos + size


def skip_tags(count: int, buf: Buffer, pos: int, end: int, left: int) -> tuple[int, int]:
    """Skip all tagged fields of a struct that knows none."""
    if count > 127:
        count, pos = _read_tag_count(buf, pos - 1)
    left = _charge_tags(count, left)
    for _ in range(count):
        _, pos = read_uvarint(buf, pos)
        pos = _skip_tag(buf, pos, end)
    return pos, left


def _charge_tags(count: int, left: int) -> int:
    """Charge tagged fields that are not kept: unknown ones, and those that come again."""
    left -= count * memory.UNKNOWN_TAG_BYTES
    if left < 0:
        raise ProtocolError(f"{count} unknown tagged fields are too many")
    return left


def _charge(cost: int, left: int) -> int:
    if left < cost:
        raise ProtocolError("this would take too much memory")
    return left - cost


def _read_tag_count(buf: Buffer, pos: int) -> tuple[int, int]:
    count, pos = read_uvarint(buf, pos)
    # Kafka counts with 32 bits: a count with the top bit set is negative, so there are none.
    return (count if count <= 0x7FFF_FFFF else 0), pos


class _Compiler:
    """Walks a schema once and writes the reader's source."""

    def __init__(
        self, schema: Schema, version: int, *, view: bool = False, exact: bool = False
    ) -> None:
        self.version = version
        self.flexible = schema.is_flexible(version)
        self.view = view
        self.exact = exact
        self.source = source = Source("read", "buf, end, left")
        # Fields of fixed size that wait to be read by one Struct: (format, where it goes).
        self.waiting: list[tuple[str, str]] = []
        source.names.update(
            new=object.__new__, unpack_from=unpack_from, ProtocolError=ProtocolError
        )
        source.line("pos = 0")
        if schema.has_records:
            source.line("view = memoryview(buf)")
        if exact:
            source.line("known = {}")
        self.struct(schema, "message")
        self.flush()
        source.line("return message, pos")

    def use(self, function: Callable[..., Any]) -> str:
        name = function.__name__.lstrip("_")
        self.source.names[name] = function
        return name

    def struct(self, schema: Schema, target: str) -> None:
        line = self.source.line
        line(f"{target} = new({self.source.name_for('C', schema.cls)})")
        tagged = []
        for field in schema.fields:
            if field.tag is not None:
                tagged.append(field)
            if field.tag is not None or not field.exists_in(self.version):
                line(f"{target}.{field.name} = {self.default(schema, field)}")
        for field in schema.fields:
            if field.tag is None and field.exists_in(self.version):
                with self.source.at(f".{field.name}"):
                    self.field(schema, field, f"{target}.{field.name}")
        if self.flexible:
            self.tags(schema, tagged, target)

    def default(self, schema: Schema, field: Field) -> str:
        value = field.default
        if value is EMPTY:
            return f"{self.use(empty)}({self.source.name_for('S', schema.part(field))})"
        if value is ABSENT:
            return "None"
        if isinstance(value, bytes) and value:
            return self.source.name_for("D", value)
        return repr(value)

    def field(self, schema: Schema, field: Field, target: str) -> None:
        if field.array:
            self.array(schema, field, target)
        elif field.kind in FORMATS:
            self.fixed(FORMATS[field.kind], target)
        elif field.kind in PRIMITIVES:
            self.sized(field, target)
        elif field.nullable_in(self.version):
            self.nullable_struct(schema, field, target)
        else:
            inner = self.source.variable("x")
            self.struct(schema.part(field), inner)
            self.source.line(f"{target} = {inner}")

    def fixed(self, code: str, target: str) -> None:
        self.waiting.append((code, target))
        if self.exact:
            self.flush()

    def flush(self) -> None:
        """Read all that waits."""
        if not self.waiting:
            return
        codes = "".join(code for code, _ in self.waiting)
        targets = ", ".join(target for _, target in self.waiting)
        if codes == "B":
            self.source.line(f"{targets} = buf[pos]")
            self.source.line("pos += 1")
        else:
            packed = Struct(">" + codes)
            name = self.source.variable("unpack")
            self.source.names[name] = packed.unpack_from
            comma = "," if len(self.waiting) == 1 else ""
            self.source.line(f"{targets}{comma} = {name}(buf, pos)")
            self.source.line(f"pos += {packed.size}")
        self.waiting.clear()

    def length(self, field: Field, code: str) -> str:
        """Read the length or count before a field; afterwards negative means null."""
        line = self.source.line
        name = self.source.variable("n")
        if not (self.flexible and field.compact):
            self.fixed(code, name)
            self.flush()
        elif self.exact:
            line(f"{name}, pos = {self.use(_read_exact_length)}(buf, pos)")
        else:
            self.fixed("B", name)
            self.flush()
            is_string = field.kind == "String" and not field.array
            reader = self.use(_read_string_length if is_string else _read_length)
            line(f"if {name} > 127: {name}, pos = {reader}(buf, pos - 1)")
            line(f"{name} -= 1")
        return name

    def sized(self, field: Field, target: str) -> None:
        """A string, bytes or records."""
        line, is_string = self.source.line, field.kind == "String"
        size = self.length(field, "h" if is_string else "i")
        if field.nullable_in(self.version):
            with self.source.block(f"if {size} < 0:"):
                line(f"{target} = None")
            with self.source.block("else:"):
                self.content(field, target, size)
        else:
            line(f"if {size} < 0: raise ProtocolError('null, which is not allowed here')")
            self.content(field, target, size)

    def content(self, field: Field, target: str, size: str) -> None:
        line = self.source.line
        if self.exact:
            check = self.use(_check_string if field.kind == "String" else _check_length)
            line(f"{check}({size}, pos, end)")
        line("start = pos")
        line(f"pos += {size}")
        if field.kind == "Records":
            line(f"{target} = view[start:pos]")
        elif field.kind == "Bytes":
            if self.exact:
                line(f"{target}, left = {self.use(_read_bytes)}(buf[start:pos], left)")
            else:
                line(f"{target} = {'bytes(buf[start:pos])' if self.view else 'buf[start:pos]'}")
        elif self.exact:
            line(f"{target}, left = {self.use(_read_text)}(buf[start:pos], left, known)")
        elif self.view:
            line(f"{target} = str(buf[start:pos], 'utf-8')")
        else:
            line(f"{target} = buf[start:pos].decode()")

    def nullable_struct(self, schema: Schema, field: Field, target: str) -> None:
        sign = self.source.variable("n")
        self.fixed("b", sign)
        self.flush()
        with self.source.block(f"if {sign} < 0:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            inner = self.source.variable("x")
            self.struct(schema.part(field), inner)
            self.flush()
            self.source.line(f"{target} = {inner}")

    def array(self, schema: Schema, field: Field, target: str) -> None:
        line = self.source.line
        count = self.length(field, "i")
        if not field.nullable_in(self.version):
            self.elements(schema, field, target, count)
            return
        with self.source.block(f"if {count} < 0:"):
            line(f"{target} = None")
        with self.source.block("else:"):
            self.elements(schema, field, target, count)

    def elements(self, schema: Schema, field: Field, target: str, count: str) -> None:
        line, version = self.source.line, self.version
        least = memory.least_size(schema, field, version, flexible=self.flexible)
        cost = memory.element_bytes(schema, field, version, exact=self.exact)
        line(f"left -= {count} * {cost}")
        if self.exact:
            line(f"{self.use(_check_array)}({count}, {least}, pos, end, left)")
        else:
            line(
                f"if left < 0 or {count} < 0 or {count} * {least} > end - pos: "
                "raise ProtocolError('an odd count')"
            )
        if field.kind in SIZES:
            self.numbers(field.kind, target, count)
            return
        items, index = self.source.variable("items"), self.source.variable("i")
        line(f"{items} = []")
        with (
            self.source.block(f"for {index} in range({count}):"),
            self.source.at(f"[{{{index}}}]"),
        ):
            self.element(schema, field, items)
        line(f"{target} = {items}")

    def element(self, schema: Schema, field: Field, items: str) -> None:
        item = self.source.variable("x")
        if field.kind in PRIMITIVES:
            # An element of an array is never null, even where the array may be.
            self.sized(Field(kind=field.kind, compact=field.compact), item)
        else:
            self.struct(schema.part(field), item)
            self.flush()
        self.source.line(f"{items}.append({item})")

    def numbers(self, kind: str, target: str, count: str) -> None:
        """An array whose elements all have one size: no loop of ours."""
        line, size, code = self.source.line, SIZES[kind], FORMATS[kind]
        if kind == "Uuid":
            piece = "buf[at:at + 16]"
            line(
                f"{target} = [{f'bytes({piece})' if self.view else piece} "
                f"for at in range(pos, pos + {count} * 16, 16)]"
            )
        elif self.exact:
            self.source.names["iter_unpack"] = iter_unpack
            line(f"part = buf[pos:pos + {count} * {size}]")
            line(f"{target} = [value for value, in iter_unpack('>{code}', part)]")
        else:
            short = self.source.name_for("short", _SHORT[code])
            line(f"if {count} < 16: {target} = [*{short}[{count}](buf, pos)]")
            line(f"else: {target} = [*unpack_from(f'>{{{count}}}{code}', buf, pos)]")
        line(f"pos += {count} * {size}")

    def tags(self, schema: Schema, tagged: list[Field], target: str) -> None:
        line = self.source.line
        count = self.source.variable("t")
        self.fixed("B", count)
        if not tagged:
            self.flush()
            skip = self.use(skip_tags)
            line(f"if {count}: pos, left = {skip}({count}, buf, pos, end, left)")
            return
        self.flush()
        tag, size = self.source.variable("tag"), self.source.variable("size")
        with self.source.block(f"if {count}:"):
            counter = self.use(_read_tag_count)
            line(f"if {count} > 127: {count}, pos = {counter}(buf, pos - 1)")
            extra, charge = f"{count} - {len(tagged)}", self.use(_charge_tags)
            line(f"if {count} > {len(tagged)}: left = {charge}({extra}, left)")
            with self.source.block(f"for _ in range({count}):"):
                line(f"{tag}, pos = {self.use(read_uvarint)}(buf, pos)")
                word = "if"
                for field in tagged:
                    with self.source.block(f"{word} {tag} == {field.tag}:"):
                        self.tagged(schema, field, target, size)
                    word = "elif"
                with self.source.block("else:"):
                    line(f"pos = {self.use(_skip_tag)}(buf, pos, end)")

    def tagged(self, schema: Schema, field: Field, target: str, size: str) -> None:
        line = self.source.line
        with self.source.at(f".{field.name}"):
            if not field.exists_in(self.version):
                line(f"raise ProtocolError('tag {field.tag} is not valid in this version')")
                return
            # Kafka reads the size of a known tag and goes by the field itself.
            line(f"{size}, pos = {self.use(read_uvarint)}(buf, pos)")
            cost = memory.tagged_bytes(schema, field, self.version, exact=self.exact)
            if cost:
                line(f"left = {self.use(_charge)}({cost}, left)")
            if field.kind not in PRIMITIVES and not field.array:
                self.tagged_struct(schema, field, f"{target}.{field.name}")
            else:
                self.field(schema, field, f"{target}.{field.name}")
            self.flush()

    def tagged_struct(self, schema: Schema, field: Field, target: str) -> None:
        """In a tagged field null is 0 and a struct follows 1, as unsigned varints."""
        line = self.source.line
        inner = self.source.variable("x")
        if not field.nullable_in(self.version):
            self.struct(schema.part(field), inner)
            self.flush()
            line(f"{target} = {inner}")
            return
        sign = self.source.variable("n")
        line(f"{sign}, pos = {self.use(read_uvarint)}(buf, pos)")
        with self.source.block(f"if not 0 < {sign} <= 0x7FFF_FFFF:"):
            line(f"{target} = None")
        with self.source.block("else:"):
            self.struct(schema.part(field), inner)
            self.flush()
            line(f"{target} = {inner}")
