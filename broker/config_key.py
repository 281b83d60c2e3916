"""What one configuration is: its type, its default, and which values it takes.

Knows no configuration by name and no source of values. The texts of refusals are Kafka's own:
people meet them in Kafka's tools.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

Value = Any
"""An int, a float, a bool, a str, a tuple of str, or None where there is no value."""

Row = tuple[str, str, Value, str, str, str] | tuple[str, str, Value, str, str, str, bool]
"""The fields of a `Key`, as the tables hold them."""

READ_ONLY, PER_BROKER, CLUSTER_WIDE = "", "broker", "cluster"

_WHOLE_NUMBERS = {"SHORT": 1 << 15, "INT": 1 << 31, "LONG": 1 << 63}
# Compiled when they are first needed: a start mostly needs none.
_WHOLE_NUMBER = r"[+-]?[0-9]+"
_DOUBLE = (
    r"[+-]?(?:NaN|Infinity"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)
_HOST_AND_PORT = r"(?:.*://)?\[?([0-9a-zA-Z\-._%:]*)\]?:([0-9]+)"
_COMMA = r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*"
_REPLICA = r"[0-9]+:[0-9]+"
_SPACES = "".join(map(chr, range(33)))


class InvalidValue(Exception):
    """A value that a configuration does not take, in Kafka's words."""


class Key(NamedTuple):
    name: str
    type: str
    default: Value
    valid: str
    """Which values are taken: `1..9`, some words, or one of `_NAMED_RULES`."""
    importance: str
    update: str
    """What a running broker may be told: nothing, a value of its own, or one for all brokers."""
    is_internal: bool = False

    @property
    def is_sensitive(self) -> bool:
        return self.type == "PASSWORD"

    def parsed(self, text: str) -> Value:
        """The value that a text stands for, valid."""
        value = self._typed(text)
        if self.valid or self.type == "LIST":
            check_value(self, value)
        return value

    def _typed(self, text: str) -> Value:
        given, text = text, text.strip(_SPACES)
        kind = self.type
        if kind in _WHOLE_NUMBERS:
            bound = _WHOLE_NUMBERS[kind]
            # The length first: Python takes long over very long numbers, and refuses the longest.
            if re.fullmatch(_WHOLE_NUMBER, text) and len(text.lstrip("+-0")) <= 19:
                number = int(text)
                if -bound <= number < bound:
                    return number
            raise self.invalid(given, f"Not a number of type {kind}")
        if kind == "BOOLEAN":
            if text.lower() not in ("true", "false"):
                raise self.invalid(given, "Expected value to be either true or false")
            return text.lower() == "true"
        if kind == "DOUBLE":
            if not re.fullmatch(_DOUBLE, text):
                raise self.invalid(given, "Not a number of type DOUBLE")
            return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
        if kind == "LIST":
            items = re.split(_COMMA, text) if text else []
            # Kafka warns of repeated items, and drops them.
            return tuple(items if self.valid in _LIST_RULES else dict.fromkeys(items))
        if kind == "CLASS" and text != self.default:
            # There are no Java classes here.
            raise self.invalid(given, f"Class {given} could not be found.")
        return text

    def invalid(self, value: Value, reason: str) -> InvalidValue:
        return InvalidValue(f"Invalid value {value} for configuration {self.name}: {reason}")

    def text(self, value: Value) -> str | None:
        """A value as Kafka's answers spell it."""
        return value_text(self.type, value)


def value_text(kind: str, value: Value) -> str | None:
    if value is None:
        return None
    if kind == "BOOLEAN":
        return "true" if value else "false"
    if kind == "PASSWORD":
        return "[hidden]"
    if kind == "LIST":
        return ",".join(value)
    if kind == "DOUBLE":
        return double_text(value)
    return str(value)


def double_text(value: float) -> str:
    """A double as Java prints it."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{power}"


def check_value(key: Key, value: Value) -> None:
    """Raises InvalidValue where the key's rule does not let the value pass."""
    rule = key.valid
    if key.type == "LIST":
        _check_list(key, value)
    elif ".." in rule:
        _check_range(key, value)
    elif rule == "filled":
        if value == "":
            raise key.invalid(value, "String must be non-empty")
    elif rule == "offset reset":
        _check_offset_reset(key, value)
    elif rule.startswith("nocase "):
        words = rule.split(" ")[1:]
        if value.upper() not in words:
            said = ", ".join(words)
            raise key.invalid(value, f"String must be one of (case insensitive): {said}")
    elif rule and rule != "given" and value not in rule.split(" "):
        raise key.invalid(value, "String must be one of: " + rule.replace(" ", ", "))


def _check_range(key: Key, value: Value) -> None:
    bounds, _, beside = key.valid.partition(",")
    low, _, high = bounds.partition("..")
    shown = key.text(value)
    if beside:
        if value != int(beside) and not int(low) <= value <= int(high):
            reason = f"Value must be between {low} and {high} or equal to {beside}"
            raise key.invalid(shown, reason)
        return
    if value < float(low) if "." in low else value < int(low):
        raise key.invalid(shown, f"Value must be at least {low}")
    if high and (value > float(high) if "." in high else value > int(high)):
        raise key.invalid(shown, f"Value must be no more than {high}")


def _check_list(key: Key, items: tuple[str, ...]) -> None:
    rule = key.valid
    if rule in _LIST_RULES:
        _LIST_RULES[rule](key, items)
        return
    words = rule.split(" ") if rule else []
    if not items and words and words[0] == "filled":
        allowed = f"[{', '.join(words[1:])}]" if words[1:] else "any non-empty value"
        raise InvalidValue(
            f"Configuration '{key.name}' must not be empty. Valid values include: {allowed}"
        )
    allowed_words = [word for word in words if word != "filled"]
    for item in items:
        if item == "":
            raise InvalidValue(f"Configuration '{key.name}' values must not be empty.")
        if allowed_words and item not in allowed_words:
            raise key.invalid(item, "String must be one of: " + ", ".join(allowed_words))


def _check_throttled(key: Key, items: tuple[str, ...]) -> None:
    if items == ("*",) or all(not item or re.fullmatch(_REPLICA, item) for item in items):
        return
    raise key.invalid(
        f"[{', '.join(items)}]",
        f"{key.name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    )


def _check_servers(key: Key, items: tuple[str, ...]) -> None:
    for item in items:
        _check_host_and_port(key, item, item, "`{host}:{port}`".replace("`", '"'))


def _check_voters(key: Key, items: tuple[str, ...]) -> None:
    shape = "`{id}@{host}:{port}`."
    for item in items:
        voter, at, address = item.partition("@")
        if not at or not address or "@" in address:
            raise InvalidValue(
                f"Invalid configuration value for {key.name}. Each entry should be in the form "
                f"{shape}"
            )
        if not re.fullmatch(_WHOLE_NUMBER, voter):
            raise InvalidValue(f"Failed to parse voter ID as an integer from {voter}")
        _check_host_and_port(key, address, f"entry {item}", shape)


def _check_host_and_port(key: Key, address: str, shown: str, shape: str) -> None:
    found = re.fullmatch(_HOST_AND_PORT, address)
    if found is None:
        raise InvalidValue(
            f"Failed to parse host name from {shown} for the configuration {key.name}. "
            f"Each entry should be in the form {shape}"
        )


def _pass(key: Key, items: tuple[str, ...]) -> None:
    """Repeated and empty items too."""


_LIST_RULES = {
    "any": _pass,
    "servers": _check_servers,
    "throttled": _check_throttled,
    "voters": _check_voters,
}

_DURATION = (
    r"([+-]?)P(?:([+-]?[0-9]+)D)?(T(?:([+-]?[0-9]+)H)?(?:([+-]?[0-9]+)M)?"
    r"(?:([+-]?[0-9]+(?:[.,][0-9]{0,9})?)S)?)?"
)


def _check_offset_reset(key: Key, value: str) -> None:
    if value in ("latest", "earliest") or _is_duration(value):
        return
    reason = (
        f"Invalid value `{value}` for configuration {key.name}. The value must be either "
        "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )
    raise key.invalid(value, reason)


def _is_duration(value: str) -> bool:
    """Whether it says `by_duration:` and a time that is not negative, as Java spells times."""
    if not value.startswith("by_duration:"):
        return False
    found = re.fullmatch(_DURATION, value.removeprefix("by_duration:"), re.IGNORECASE)
    if not found or found[1] == "-":
        return False
    parts = [part for part in found.group(2, 4, 5, 6) if part]
    has_empty_time = (found[3] or "").upper() == "T"
    return bool(parts) and not has_empty_time and not any(part[0] == "-" for part in parts)
