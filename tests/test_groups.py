"""Classic groups: joining, rounds, sessions, static members, and what the log keeps of them."""

from typing import Any

import pytest

from ottla.coordinator.classic_group import State
from ottla.coordinator.groups import GroupSettings
from ottla.protocol.errors import ErrorCode
from tests.group_rig import PROTOCOLS, Asked, Rig, left

NO_DELAY = GroupSettings(initial_rebalance_delay_ms=0)


@pytest.fixture
def rig() -> Rig:
    return Rig(NO_DELAY)


def state(rig: Rig, group: str = "g") -> State:
    return rig.groups.by_id[group].state


# --- joining ------------------------------------------------------------------------------


def test_a_new_dynamic_member_is_told_its_id_first(rig: Rig) -> None:
    asked = rig.join()
    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED
    assert asked.response.member_id.startswith("client-")
    assert rig.join(asked.response.member_id).error is ErrorCode.NONE


def test_an_old_client_joins_at_once(rig: Rig) -> None:
    assert rig.join(version=3).error is ErrorCode.NONE


REFUSED = [
    ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
    ({"session_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
    ({"session_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
    ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
]


@pytest.mark.parametrize(("how", "code"), REFUSED)
def test_a_join_that_cannot_be_is_refused(rig: Rig, how: dict[str, Any], code: ErrorCode) -> None:
    assert rig.join(**how).error is code


def test_the_leader_alone_learns_of_all_members(rig: Rig) -> None:
    first, asked = rig.member()
    second, waiting = rig.member()
    assert not waiting.is_answered
    again = rig.join(first)
    assert waiting.response.leader == first
    assert [each.member_id for each in again.response.members] == [first, second]
    assert waiting.response.members == []
    assert again.response.generation_id == asked.response.generation_id + 1


def test_most_votes_among_what_all_have_choose_the_protocol(rig: Rig) -> None:
    rig = Rig(GroupSettings(initial_rebalance_delay_ms=100))
    members = [
        rig.member(protocols=(("a", b"1"), ("b", b"2"))),
        rig.member(protocols=(("b", b"3"), ("a", b"4"))),
        rig.member(protocols=(("c", b"5"), ("b", b"6"), ("a", b"7"))),
    ]
    rig.after(1_000)
    assert {asked.response.protocol_name for _, asked in members} == {"b"}


def test_who_has_nothing_in_common_with_the_others_is_refused(rig: Rig) -> None:
    rig.stable(1)
    assert rig.join(protocols=(("other", b""),)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert rig.join(protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_first_round_waits_for_others_and_longer_while_they_come() -> None:
    rig = Rig(GroupSettings(initial_rebalance_delay_ms=3_000))
    _, first = rig.member()
    rig.after(2_000)
    _, second = rig.member()
    rig.after(2_000)
    assert not first.is_answered
    rig.after(2_000)
    assert first.is_answered
    assert second.response.generation_id == first.response.generation_id == 1


def test_a_group_that_is_full_takes_nobody_more() -> None:
    rig = Rig(GroupSettings(initial_rebalance_delay_ms=0, max_size=2))
    rig.stable(1)
    second = rig.join()
    assert second.error is ErrorCode.MEMBER_ID_REQUIRED
    first = next(iter(rig.groups.by_id["g"].members))
    waiting = rig.join(second.response.member_id)
    rig.join(first)
    assert waiting.error is ErrorCode.NONE
    assert rig.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED


# --- rounds -------------------------------------------------------------------------------


def test_members_get_what_the_leader_has_assigned(rig: Rig) -> None:
    members = rig.stable(1)
    assert state(rig) is State.STABLE
    assert rig.groups.by_id["g"].members[members[0]].assignment == b"0"


def test_whom_the_leader_forgets_gets_an_empty_assignment(rig: Rig) -> None:
    first, _ = rig.member()
    _, waiting = rig.member()
    leader = rig.join(first)
    late = rig.sync(waiting.response)
    assert not late.is_answered
    rig.sync(leader.response, {first: b"all"})
    assert late.response.assignment == b""


def test_who_asks_again_in_a_stable_group_gets_its_assignment(rig: Rig) -> None:
    first, joined = rig.member()
    rig.sync(joined.response, {first: b"x"})
    assert rig.sync(joined.response).response.assignment == b"x"


def test_a_new_member_makes_all_join_again(rig: Rig) -> None:
    (first,) = rig.stable(1)
    _, waiting = rig.member()
    assert state(rig) is State.PREPARING_REBALANCE
    assert rig.heartbeat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not waiting.is_answered
    rig.join(first)
    assert waiting.is_answered


def test_who_does_not_join_again_in_time_is_out(rig: Rig) -> None:
    (first,) = rig.stable(1, rebalance_ms=5_000)
    second, waiting = rig.member(rebalance_ms=5_000)
    rig.after(5_000)
    assert waiting.response.leader == second
    assert list(rig.groups.by_id["g"].members) == [second]
    assert rig.heartbeat(first, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_never_syncs_is_out_after_the_rebalance_timeout(rig: Rig) -> None:
    first, _ = rig.member(rebalance_ms=5_000, session_ms=100_000)
    second, waiting = rig.member(rebalance_ms=5_000, session_ms=100_000)
    leader = rig.join(first, rebalance_ms=5_000, session_ms=100_000)
    rig.sync(leader.response, {first: b"a", second: b"b"})
    assert waiting.is_answered
    rig.after(5_000)
    assert list(rig.groups.by_id["g"].members) == [first]
    assert state(rig) is State.PREPARING_REBALANCE


def test_a_follower_that_rejoins_unchanged_makes_no_round(rig: Rig) -> None:
    first, _ = rig.member()
    second, waiting = rig.member()
    leader = rig.join(first)
    rig.synced([(first, leader), (second, waiting)])
    again = rig.join(second)
    assert again.response.generation_id == waiting.response.generation_id
    assert state(rig) is State.STABLE


def test_a_leader_that_rejoins_makes_a_round(rig: Rig) -> None:
    (first,) = rig.stable(1)
    assert rig.join(first).response.generation_id == 2


def test_a_member_that_lost_its_answer_gets_it_again_before_it_syncs(rig: Rig) -> None:
    first, joined = rig.member()
    again = rig.join(first)
    assert again.response.generation_id == joined.response.generation_id
    assert [each.member_id for each in again.response.members] == [first]


SYNC_ERRORS = [
    ({"generation": 7}, ErrorCode.ILLEGAL_GENERATION),
    ({"group": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
    ({"instance": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
]


@pytest.mark.parametrize(("how", "code"), SYNC_ERRORS)
def test_a_sync_that_does_not_fit_is_refused(
    rig: Rig, how: dict[str, Any], code: ErrorCode
) -> None:
    _, joined = rig.member()
    assert rig.sync(joined.response, **how).error is code


def test_those_who_wait_for_an_assignment_hear_of_the_next_round(rig: Rig) -> None:
    first, _ = rig.member()
    _, waiting = rig.member()
    rig.join(first)
    synced = rig.sync(waiting.response)
    rig.member()
    assert synced.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_assignment_that_no_record_can_hold_is_refused() -> None:
    rig = Rig(GroupSettings(initial_rebalance_delay_ms=0, record_bytes_max=1000))
    first, joined = rig.member()
    asked = rig.sync(joined.response, {first: bytes(2000)})
    assert asked.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert state(rig) is State.PREPARING_REBALANCE


# --- sessions -----------------------------------------------------------------------------


def test_a_member_that_misses_its_session_is_removed(rig: Rig) -> None:
    (first,) = rig.stable(1, session_ms=10_000)
    rig.after(9_000)
    assert rig.heartbeat(first, 1) is ErrorCode.NONE
    rig.after(9_999)
    assert state(rig) is State.STABLE
    rig.after(1)
    assert state(rig) is State.EMPTY
    assert rig.groups.by_id["g"].generation == 2


def test_an_id_that_was_given_away_expires(rig: Rig) -> None:
    member_id = rig.join(session_ms=6_000).response.member_id
    rig.after(6_000)
    assert rig.join(member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_for_others_does_not_expire(rig: Rig) -> None:
    rig.stable(1, session_ms=100_000, rebalance_ms=50_000)
    _, waiting = rig.member(session_ms=6_000, rebalance_ms=50_000)
    rig.after(49_000)
    assert not waiting.is_answered
    rig.after(1_000)
    assert waiting.error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("generation", "code"),
    [(1, ErrorCode.NONE), (0, ErrorCode.ILLEGAL_GENERATION), (2, ErrorCode.ILLEGAL_GENERATION)],
)
def test_heartbeats_name_the_generation(rig: Rig, generation: int, code: ErrorCode) -> None:
    (first,) = rig.stable(1)
    assert rig.heartbeat(first, generation) is code


def test_a_member_may_beat_before_it_has_synced(rig: Rig) -> None:
    first, _ = rig.member()
    assert state(rig) is State.COMPLETING_REBALANCE
    assert rig.heartbeat(first, 1) is ErrorCode.NONE


def test_a_pause_of_ours_ends_no_session(rig: Rig) -> None:
    (first,) = rig.stable(1, session_ms=10_000)
    rig.groups.deadlines.put_off_all(60_000)
    rig.after(60_000)
    assert rig.heartbeat(first, 1) is ErrorCode.NONE


# --- leaving ------------------------------------------------------------------------------


def test_the_last_to_leave_empties_the_group(rig: Rig) -> None:
    (first,) = rig.stable(1)
    asked = rig.leave(left(first), left("nobody"))
    codes = [ErrorCode(each.error_code) for each in asked.response.members]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert state(rig) is State.EMPTY


def test_who_leaves_while_it_waits_is_told(rig: Rig) -> None:
    rig.stable(1)
    second, waiting = rig.member()
    rig.leave(left(second))
    assert waiting.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_old_clients_leave_alone(rig: Rig) -> None:
    (first,) = rig.stable(1)
    asked = Asked()
    from ottla.protocol.messages.groups import LeaveGroupRequest

    request = LeaveGroupRequest(group_id="g", member_id=first, members=[])
    rig.carry_out(rig.groups.leave(request, 1, rig.now, asked))
    assert asked.error is ErrorCode.NONE
    assert state(rig) is State.EMPTY


# --- static members -----------------------------------------------------------------------


def test_a_static_member_comes_back_without_a_round(rig: Rig) -> None:
    first = rig.join(instance="i")
    rig.sync(first.response, {first.response.member_id: b"mine"}, instance="i")
    again = rig.join(instance="i")
    assert again.response.generation_id == 1
    assert again.response.member_id != first.response.member_id
    assert again.response.skip_assignment
    assert rig.sync(again.response, instance="i").response.assignment == b"mine"
    assert rig.sync(first.response, instance="i").error is ErrorCode.FENCED_INSTANCE_ID


def test_an_old_client_is_not_told_that_it_leads(rig: Rig) -> None:
    rig = Rig(NO_DELAY, version=8)
    first = rig.join(instance="i")
    rig.sync(first.response, {first.response.member_id: b"mine"}, instance="i")
    again = rig.join(instance="i")
    assert again.response.leader == first.response.member_id
    assert again.response.members == []


def test_a_static_member_with_another_protocol_makes_a_round(rig: Rig) -> None:
    first = rig.join(instance="i")
    rig.sync(first.response, {first.response.member_id: b""}, instance="i")
    again = rig.join(instance="i", protocols=(("roundrobin", b"new"),))
    assert again.response.generation_id == 2


def test_an_heir_of_a_member_that_waits_fences_it(rig: Rig) -> None:
    rig.stable(1)
    first = rig.join(instance="i")
    assert not first.is_answered
    rig.join(instance="i")
    assert first.error is ErrorCode.FENCED_INSTANCE_ID


def test_static_members_outlive_a_round_that_they_miss(rig: Rig) -> None:
    first = rig.join(instance="i", rebalance_ms=5_000, session_ms=60_000)
    member_id = first.response.member_id
    rig.sync(first.response, {member_id: b""}, instance="i")
    _, waiting = rig.member(rebalance_ms=5_000)
    rig.after(5_000)
    assert waiting.is_answered
    assert member_id in rig.groups.by_id["g"].members


def test_an_administrator_removes_a_static_member_by_its_instance(rig: Rig) -> None:
    first = rig.join(instance="i")
    rig.sync(first.response, {first.response.member_id: b""}, instance="i")
    asked = rig.leave(left("", "i"), left("", "nobody"))
    codes = [ErrorCode(each.error_code) for each in asked.response.members]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]


# --- the log ------------------------------------------------------------------------------


def test_another_node_goes_on_with_the_group(rig: Rig) -> None:
    first, _ = rig.member()
    second, waiting = rig.member()
    leader = rig.join(first)
    rig.synced([(first, leader), (second, waiting)])
    other = rig.reloaded()
    group = other.groups.by_id["g"]
    assert (group.state, group.generation, group.leader) == (State.STABLE, 2, first)
    assert group.members[second].assignment == b"1"
    assert other.heartbeat(second, 2) is ErrorCode.NONE
    other.after(10_000)
    assert other.groups.by_id["g"].state is State.PREPARING_REBALANCE or not group.members


def test_members_that_do_not_come_back_after_a_failover_go(rig: Rig) -> None:
    rig.stable(1, session_ms=10_000)
    other = rig.reloaded()
    other.after(10_000)
    assert other.groups.by_id["g"].state is State.EMPTY


def test_a_round_that_was_not_synced_is_forgotten(rig: Rig) -> None:
    (first,) = rig.stable(1)
    rig.join(first)
    other = rig.reloaded()
    assert other.groups.by_id["g"].generation == 1


def test_a_group_that_shrank_in_the_configuration_begins_a_round(rig: Rig) -> None:
    first, _ = rig.member()
    second, waiting = rig.member()
    rig.synced([(first, rig.join(first)), (second, waiting)])
    rig.settings = GroupSettings(initial_rebalance_delay_ms=0, max_size=1)
    assert rig.reloaded().groups.by_id["g"].state is State.PREPARING_REBALANCE


def test_every_request_is_answered_once_the_group_settles(rig: Rig) -> None:
    """Members come at once, and all of them get an answer."""
    asked = [rig.member()[1] for _ in range(5)]
    for member in list(rig.groups.by_id["g"].members):
        rig.join(member)
    rig.after(60_000)
    assert all(each.is_answered for each in asked)
    assert PROTOCOLS[0][0] == rig.groups.by_id["g"].protocol or not rig.groups.by_id["g"].members
