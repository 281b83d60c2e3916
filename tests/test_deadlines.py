"""Deadlines that are put off before they come."""

from random import Random

from ottla.coordinator.deadlines import Deadlines


def taken(deadlines: Deadlines, ms: int) -> list[tuple[str, ...]]:
    found = []
    while (key := deadlines.take(ms)) is not None:
        found.append(key)
    return found


def test_what_is_due_comes_in_its_order_and_once() -> None:
    deadlines = Deadlines()
    for name, due_ms in (("late", 30), ("early", 10), ("middle", 20)):
        deadlines.set((name,), due_ms)
    assert deadlines.earliest() == 10
    assert taken(deadlines, 20) == [("early",), ("middle",)]
    assert taken(deadlines, 30) == [("late",)]
    assert deadlines.earliest() is None


def test_the_last_word_counts_whether_later_or_sooner() -> None:
    deadlines = Deadlines()
    deadlines.set(("a",), 10)
    deadlines.set(("a",), 30)
    deadlines.set(("b",), 30)
    deadlines.set(("b",), 5)
    assert taken(deadlines, 29) == [("b",)]
    assert taken(deadlines, 30) == [("a",)]


def test_what_is_dropped_does_not_come() -> None:
    deadlines = Deadlines()
    deadlines.set(("a",), 10)
    deadlines.drop(("a",))
    assert deadlines.earliest() is None
    assert ("a",) not in deadlines


def test_all_can_be_put_off() -> None:
    deadlines = Deadlines()
    deadlines.set(("a",), 10)
    deadlines.put_off_all(100)
    assert taken(deadlines, 109) == []
    assert taken(deadlines, 110) == [("a",)]


def test_random_histories_agree_with_a_plain_dict() -> None:
    random = Random(5)
    for _ in range(200):
        deadlines, model = Deadlines(), dict[tuple[str, ...], int]()
        for _ in range(60):
            key = (str(random.randrange(6)),)
            match random.randrange(3):
                case 0:
                    model[key] = random.randrange(100)
                    deadlines.set(key, model[key])
                case 1:
                    model.pop(key, None)
                    deadlines.drop(key)
                case 2:
                    now_ms = random.randrange(100)
                    due = {key for key, due_ms in model.items() if due_ms <= now_ms}
                    assert set(taken(deadlines, now_ms)) == due
                    for each in due:
                        del model[each]
            assert deadlines.earliest() == min(model.values(), default=None)
