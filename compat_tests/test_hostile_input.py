"""What is odd, lying or broken is read or refused as Apache Kafka reads or refuses it."""

from compat_tests.differences import Differences
from compat_tests.hostile import hostile_bytes, hostile_json
from compat_tests.oracle import Oracle
from tests.answers import REFUSED, kafkas, read_or_refused, written_or_refused


def test_hostile_bytes_are_read_or_refused_as_in_kafka(oracle: Oracle) -> None:
    cases = hostile_bytes()
    questions = [{"op": "decode", **case._asdict()} for case in cases]
    differences = Differences()
    for case, answer in zip(cases, oracle.ask_all(questions), strict=True):
        ours = read_or_refused((case.message, case.version), bytes.fromhex(case.hex))
        differences.expect(ours, kafkas(answer), case.name, case, answer)
    differences.must_be_none()


def test_hostile_json_is_written_or_refused_as_in_kafka(oracle: Oracle) -> None:
    cases = hostile_json()
    questions = [{"op": "encode", **case._asdict()} for case in cases]
    differences = Differences()
    for case, answer in zip(cases, oracle.ask_all(questions), strict=True):
        ours = written_or_refused((case.message, case.version), case.json)
        differences.expect(ours, answer.get("hex", REFUSED), case.name, case, answer)
    differences.must_be_none()
