"""Compiles the reader of (message, version): straight-line Python, one function for a message.

Neighbouring fields of fixed size are read by one Struct, together with the length that follows
them. There are three flavours. The *fast* one reads small messages from bytes; it checks what it
must to stay safe, and lets slices past the end come out short (what is read after them tells). The
*large* one does not copy what it reads from, and charges memory, estimated from above. When they
refuse, the *exact* one reads again: it checks each field, knows where it stands, and counts what
values really cost. So errors are precise, and good requests do not pay for them.
"""

from __future__ import annotations

from struct import Struct, iter_unpack, unpack_from
from struct import error as StructError

from ottla.protocol import memory
from ottla.protocol.reading import (
    charge,
    charge_tags,
    read_length,
    read_string_length,
    read_tag_count,
    skip_tag,
    skip_tags,
)
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

    Reader = Callable[[Buffer], Any]

FAST, LARGE, EXACT = "fast", "large", "exact"

# In a message of up to this size no count can be dangerous, but for the densest of arrays. What has
# records is copied only where it is smaller still; a view of records is a larger object, too.
FAST_MAX = 65536
FAST_WITH_RECORDS_MAX = 16384

_REFUSALS = (StructError, IndexError, UnicodeDecodeError, ProtocolError)
# Readers of arrays of up to 15 numbers, by their format.
_SHORT = {code: tuple(Struct(f">{n}{code}").unpack_from for n in range(16)) for code in "bhiqHId?"}


def reader_of(schema: Schema, version: int) -> Reader:
    """A function that reads one message from the start of a buffer."""
    check_version(schema, version)
    return _Compiler(schema, version, FAST).function()


def source(schema: Schema, version: int) -> str:
    check_version(schema, version)
    return _Compiler(schema, version, FAST).source.text()


def large_reader_of(schema: Schema, version: int) -> Reader:
    """A function that reads one message from the start of any buffer, of any size."""
    check_version(schema, version)
    return _Compiler(schema, version, LARGE).function()


def read_exact(schema: Schema, version: int, buf: Buffer) -> tuple[Any, int]:
    """Read one message and say how many bytes it took, or where the bytes are wrong."""
    known = schema.exact_readers.get(version)
    if known is None:
        check_version(schema, version)
        compiler = _Compiler(schema, version, EXACT)
        known = schema.exact_readers[version] = (compiler.function(), compiler.source)
    reader, made = known
    try:
        found: tuple[Any, int] = reader(buf)
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


class _Compiler:
    """Walks a schema once and writes the reader's source.

    The position is the variable `pos` and what `ahead` counts: bytes of known size that were read
    since `pos` was last changed.
    """

    def __init__(self, schema: Schema, version: int, flavour: str) -> None:
        self.schema = schema
        self.version = version
        self.flexible = schema.is_flexible(version)
        self.flavour = flavour
        self.exact = flavour == EXACT
        self.source = Source("read", "buf")
        # Fields of fixed size that wait to be read by one Struct: (format, where it goes).
        self.waiting: list[tuple[str, str]] = []
        self.ahead = 0
        # Whether a slice was taken that may have come out short, and nothing was read since.
        self.loose = False
        self.source.names.update(
            new=object.__new__, unpack_from=unpack_from, ProtocolError=ProtocolError
        )
        self.body()

    def function(self) -> Reader:
        return self.source.function()

    def read_large(self, buf: Buffer) -> Any:
        """The function that is compiled finds this in its globals until it is first needed."""
        reader = large_reader_of(self.schema, self.version)
        self.source.names["read_large"] = reader
        return reader(buf)

    def use(self, function: Callable[..., Any], name: str = "") -> str:
        name = name or function.__name__.lstrip("_")
        self.source.names[name] = function
        return name

    def body(self) -> None:
        line, names = self.source.line, self.source.names
        schema, version = self.schema, self.version
        line("end = len(buf)")
        if self.exact:
            line(f"left = {self.use(memory.exact_allowance)}(end)")
            line("known = {}")
            self.content_of_message()
            line("return message, pos")
            return
        names["read_exact"] = lambda buf: read_exact(schema, version, buf)[0]
        if self.flavour == FAST:
            names["read_large"] = self.read_large
            line(f"if end > {FAST_WITH_RECORDS_MAX if schema.has_records else FAST_MAX}:")
            line("    return read_large(buf)")
            line("if type(buf) is memoryview: buf = buf.tobytes()")
            line("elif type(buf) is not bytes: buf = bytes(buf)")
        if self.flavour == LARGE:
            line(f"left = {self.use(memory.large_allowance)}(end)")
        elif self.has_charged_arrays(schema):
            line(f"left = {memory.SMALL_BYTES}")
        with self.source.block("try:"):
            self.content_of_message()
            line(f"if {self.here()} <= end: return message" if self.loose else "return message")
        with self.source.block(f"except {self.source.name_for('refusals', _REFUSALS)}:"):
            # What was read goes before all is read again, or both would be held at once.
            held = [name for name in self.source.variables if name.startswith(("x", "items"))]
            line(" = ".join([*held, "message = None"]))
        line("return read_exact(buf)")

    def content_of_message(self) -> None:
        self.source.line("pos = 0")
        if self.schema.has_records:
            self.source.line("view = memoryview(buf)")
        self.struct(self.schema, "message")
        self.flush()

    def has_charged_arrays(self, schema: Schema) -> bool:
        """Whether a small message can become much larger by the count of an array alone."""
        return any(
            field.exists_in(self.version)
            and (
                (field.array and self.is_charged(schema, field))
                or (field.kind not in PRIMITIVES and self.has_charged_arrays(schema.part(field)))
            )
            for field in schema.fields
        )

    def is_dense(self, schema: Schema, field: Field) -> bool:
        least = memory.least_size(schema, field, self.version, flexible=self.flexible)
        cost = memory.element_bytes(schema, field, self.version, exact=False)
        has_records = self.schema.has_records
        factor = memory.SMALLER_FACTOR if has_records else memory.SMALL_FACTOR
        return cost > least * factor

    def is_charged(self, schema: Schema, field: Field) -> bool:
        # Slices of uuids do not fail where the bytes end; all other elements do.
        return self.flavour != FAST or field.kind == "Uuid" or self.is_dense(schema, field)

    # the position

    def here(self, further: int = 0) -> str:
        distance = self.ahead + further
        if distance == 0:
            return "pos"
        return f"pos {'+' if distance > 0 else '-'} {abs(distance)}"

    def settle(self) -> None:
        """Bring `pos` up to date."""
        if self.ahead:
            self.source.line(f"pos += {self.ahead}")
            self.ahead = 0

    def unsettled(self) -> str:
        """What follows an assignment to `pos` that took it here: the same distance as before."""
        return f"; pos -= {self.ahead}" if self.ahead else ""

    # structs and fields

    def struct(self, schema: Schema, target: str) -> None:
        line = self.source.line
        line(f"{target} = new({self.source.name_for('C', schema.cls)})")
        self.defaults(schema, target)
        for field in schema.fields:
            if field.tag is None and field.exists_in(self.version):
                with self.source.at(f".{field.name}"):
                    self.field(schema, field, f"{target}.{field.name}")
        if self.flexible:
            self.tags(schema, [field for field in schema.fields if field.tag is not None], target)

    def defaults(self, schema: Schema, target: str) -> None:
        """What is not sent, or only perhaps. Fields with the same default share a statement."""
        targets: dict[str, list[str]] = {}
        for field in schema.fields:
            if field.tag is not None or not field.exists_in(self.version):
                value = self.default(schema, field)
                if value == "[]" or field.default is EMPTY:
                    self.source.line(f"{target}.{field.name} = {value}")
                else:
                    targets.setdefault(value, []).append(f"{target}.{field.name}")
        for value, names in targets.items():
            self.source.line(" = ".join([*names, value]))

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
        packed = Struct(">" + codes)
        if codes == "B":
            self.source.line(f"{targets} = buf[{self.here()}]")
        else:
            name = self.source.variable("unpack")
            self.source.names[name] = packed.unpack_from
            comma = "," if len(self.waiting) == 1 else ""
            self.source.line(f"{targets}{comma} = {name}(buf, {self.here()})")
        self.ahead += packed.size
        self.loose = False
        self.waiting.clear()
        if self.exact:
            self.settle()

    # strings, bytes, records

    def sized(self, field: Field, target: str) -> None:
        is_string = field.kind == "String"
        compact = self.flexible and field.compact
        size = self.source.variable("n")
        if compact and self.exact:
            from ottla.protocol import exact

            self.source.line(f"{size}, pos = {self.use(exact.read_length)}(buf, pos)")
        else:
            self.fixed("B" if compact else "h" if is_string else "i", size)
            self.flush()
        if compact and not self.exact:
            self.compact_content(field, target, size)
        else:
            self.plain_content(field, target, size)

    def plain_content(self, field: Field, target: str, size: str) -> None:
        """What follows a length of which negative means null."""
        line = self.source.line
        if not field.nullable_in(self.version):
            line(f"if {size} < 0: raise ProtocolError('null, which is not allowed here')")
            self.content(field, target, size)
            return
        with self.source.block(f"if {size} < 0:"):
            line(f"{target} = None")
        with self.source.block("else:"):
            self.content(field, target, size)

    def compact_content(self, field: Field, target: str, size: str) -> None:
        """What follows a compact length in one byte, one more than it says and zero for null.

        `pos` advances by that length, so that it ends up one byte further than `ahead` has it.
        """
        line = self.source.line
        if not field.nullable_in(self.version):
            reader = self.use(read_string_length if field.kind == "String" else read_length)
            long = f"{size}, pos = {reader}(buf, {self.here(-1)}){self.unsettled()}"
            line(f"if not 0 < {size} < 128: {long}")
            self.content(field, target, size, further=-1)
        else:
            self.long_length(field, size)
            with self.source.block(f"if {size}:"):
                self.content(field, target, size, further=-1)
            with self.source.block("else:"):
                line("pos += 1")
                line(f"{target} = None")
        self.ahead -= 1

    def long_length(self, field: Field, size: str) -> None:
        """A compact length whose first byte says that there is more: mostly one byte more."""
        line, more = self.source.line, self.source.variable("more")
        is_string = field.kind == "String" and not field.array
        reader = self.use(read_string_length if is_string else read_length)
        with self.source.block(f"if {size} > 127:"):
            line(f"{more} = buf[{self.here()}]")
            line(f"if {more} < 128: {size} += ({more} << 7) - 128; pos += 1")
            line(f"else: {size}, pos = {reader}(buf, {self.here(-1)}){self.unsettled()}")

    def content(self, field: Field, target: str, size: str, further: int = 0) -> None:
        line = self.source.line
        if self.exact:
            from ottla.protocol import exact

            check = exact.check_string if field.kind == "String" else exact.check_length
            line(f"{self.use(check)}({size}, pos, end)")
        line(f"start = {self.here()}")
        line(f"pos += {size}")
        self.loose = True
        piece = f"buf[start:{self.here(further)}]"
        if field.kind == "Records":
            line(f"{target} = view[start:{self.here(further)}]")
        elif self.exact and field.kind == "String":
            line(f"{target}, left = {self.use(exact.read_text)}({piece}, left, known)")
        elif self.exact:
            line(f"{target}, left = {self.use(exact.read_bytes)}({piece}, left)")
        elif self.flavour == LARGE:
            kind = f"str({piece}, 'utf-8')" if field.kind == "String" else f"bytes({piece})"
            line(f"{target} = {kind}")
        else:
            line(f"{target} = {piece}{'.decode()' if field.kind == 'String' else ''}")

    def nullable_struct(self, schema: Schema, field: Field, target: str) -> None:
        sign = self.source.variable("n")
        self.fixed("b", sign)
        self.flush()
        self.settle()
        with self.source.block(f"if {sign} < 0:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            self.branch_struct(schema, field, target)

    def branch_struct(self, schema: Schema, field: Field, target: str) -> None:
        inner = self.source.variable("x")
        self.struct(schema.part(field), inner)
        self.flush()
        self.settle()
        self.source.line(f"{target} = {inner}")

    # arrays

    def array(self, schema: Schema, field: Field, target: str) -> None:
        line = self.source.line
        count, empty_count = self.count(field)
        is_often_empty = field.nullable_in(self.version)
        if not is_often_empty:
            self.settle()
        ahead = self.ahead
        with self.source.block(f"if {count} > {empty_count}:"):
            self.settle()
            is_counted = field.kind in SIZES or self.is_charged(schema, field)
            if empty_count and is_counted:
                line(f"{count} -= 1")
            self.check_count(schema, field, count)
            if field.kind in SIZES:
                self.numbers(field.kind, target, count)
            else:
                counts = f"1, {count}" if empty_count and not is_counted else count
                self.elements(schema, field, target, counts)
            if ahead:
                line(f"pos -= {ahead}")
        self.ahead = ahead
        line(f"elif {count} == {empty_count}: {target} = []")
        if field.nullable_in(self.version):
            line(f"else: {target} = None")
        else:
            line("else: raise ProtocolError('null, which is not allowed here')")

    def count(self, field: Field) -> tuple[str, int]:
        """Read the count of an array: its name, and what it is for an empty one; less is null."""
        line, count = self.source.line, self.source.variable("n")
        if not (self.flexible and field.compact):
            self.fixed("i", count)
            self.flush()
        elif self.exact:
            from ottla.protocol import exact

            line(f"{count}, pos = {self.use(exact.read_length)}(buf, pos)")
        else:
            self.fixed("B", count)
            self.flush()
            self.long_length(field, count)
            return count, 1
        return count, 0

    def elements(self, schema: Schema, field: Field, target: str, counts: str) -> None:
        line = self.source.line
        items, index = self.source.variable("items"), self.source.variable("i")
        loose = self.loose
        line(f"{items} = []")
        with (
            self.source.block(f"for {index} in range({counts}):"),
            self.source.at(f"[{{{index}}}]"),
        ):
            self.element(schema, field, items)
            self.settle()
        self.loose |= loose
        line(f"{target} = {items}")

    def check_count(self, schema: Schema, field: Field, count: str) -> None:
        """Refuse a count that the bytes or the memory left cannot justify.

        A loop over a small message ends by itself where the bytes end: only dense arrays need it.
        """
        line = self.source.line
        least = memory.least_size(schema, field, self.version, flexible=self.flexible)
        cost = memory.element_bytes(schema, field, self.version, exact=self.exact)
        if self.exact:
            from ottla.protocol.exact import check_array

            line(f"left -= {count} * {cost}")
            line(f"{self.use(check_array)}({count}, {least}, pos, end, left)")
        elif self.is_charged(schema, field):
            line(f"left -= {count} * {cost}")
            line(
                f"if left < 0 or {count} * {least} > end - pos: raise ProtocolError('an odd count')"
            )

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
                f"{target} = [{piece if self.flavour == FAST else f'bytes({piece})'} "
                f"for at in range(pos, pos + {count} * 16, 16)]"
            )
            self.loose = True
        elif self.exact:
            self.source.names["iter_unpack"] = iter_unpack
            line(f"part = buf[pos:pos + {count} * {size}]")
            line(f"{target} = [value for value, in iter_unpack('>{code}', part)]")
        else:
            short = self.source.name_for("short", _SHORT[code])
            line(f"if {count} < 16: {target} = [*{short}[{count}](buf, pos)]")
            line(f"else: {target} = [*unpack_from(f'>{{{count}}}{code}', buf, pos)]")
        line(f"pos += {count} * {size}")

    # tagged fields

    def tags(self, schema: Schema, tagged: list[Field], target: str) -> None:
        line = self.source.line
        count = self.source.variable("t")
        self.fixed("B", count)
        self.flush()
        ahead = self.ahead
        if not tagged:
            left, skip = "left", self.use(skip_tags)
            if self.flavour == FAST and not self.has_charged_arrays(self.schema):
                left = str(memory.SMALL_BYTES)
            result = "pos, left" if left == "left" else "pos, _"
            call = f"{result} = {skip}({count}, buf, {self.here()}, end, {left})"
            line(f"if {count}: {call}{self.unsettled()}")
            return
        with self.source.block(f"if {count}:"):
            self.settle()
            if self.flavour == FAST and not self.has_charged_arrays(self.schema):
                line(f"left = {memory.SMALL_BYTES}")
            self.known_tags(schema, tagged, target, count)
            if ahead:
                line(f"pos -= {ahead}")
        self.ahead = ahead

    def known_tags(self, schema: Schema, tagged: list[Field], target: str, count: str) -> None:
        line = self.source.line
        tag, size = self.source.variable("tag"), self.source.variable("size")
        counter = self.use(read_tag_count)
        line(f"if {count} > 127: {count}, pos = {counter}(buf, pos - 1)")
        extra, charge = f"{count} - {len(tagged)}", self.use(charge_tags)
        line(f"if {count} > {len(tagged)}: left = {charge}({extra}, left)")
        loose = self.loose
        with self.source.block(f"for _ in range({count}):"):
            line(f"{tag}, pos = {self.use(read_uvarint)}(buf, pos)")
            word = "if"
            for field in tagged:
                with self.source.block(f"{word} {tag} == {field.tag}:"):
                    self.tagged(schema, field, target, size)
                    loose |= self.loose
                word = "elif"
            with self.source.block("else:"):
                line(f"pos = {self.use(skip_tag)}(buf, pos, end)")
        self.loose = loose

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
                line(f"left = {self.use(charge)}({cost}, left)")
            if field.kind not in PRIMITIVES and not field.array:
                self.tagged_struct(schema, field, f"{target}.{field.name}")
            else:
                self.field(schema, field, f"{target}.{field.name}")
                self.flush()
                self.settle()

    def tagged_struct(self, schema: Schema, field: Field, target: str) -> None:
        """In a tagged field null is 0 and a struct follows 1, as unsigned varints."""
        line = self.source.line
        if not field.nullable_in(self.version):
            self.branch_struct(schema, field, target)
            return
        sign = self.source.variable("n")
        line(f"{sign}, pos = {self.use(read_uvarint)}(buf, pos)")
        with self.source.block(f"if not 0 < {sign} <= 0x7FFF_FFFF:"):
            line(f"{target} = None")
        with self.source.block("else:"):
            self.branch_struct(schema, field, target)
