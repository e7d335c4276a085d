from collections import Counter

import pytest

from tests.kills.matrix import DEFERRED, Case, groups, rounds, tasks_at_once
from tests.kills.rounds import Result, line_of, next_phase, read_line, table_of

ALL = {"PHASES": "all", "VERBS": "all"}
DRIVER = "cluster-into-driver-kill-commits"


def test_every_case_has_its_rounds():
    found = Counter(case for case, _ in rounds({**ALL, "ROUNDS": "2"}))
    assert set(found.values()) == {2}
    assert len(found) == 364
    assert {case.kind for case in found} == {"cluster", "connect", "deferred"}
    grouped = [case for group in groups({**ALL, "ROUNDS": "2"}) for case, _ in group]
    assert Counter(grouped) == found


def test_a_common_victim_ends_for_rounds_of_one_phase():
    found = list(groups({**ALL, "ROUNDS": "3", "AT_ONCE": "5"}))
    (others,) = [group for group in found if group[0][0].victim != "api-server"]
    assert "api-server" not in {case.victim for case, _ in others}
    found.remove(others)
    assert max(map(len, found)) == 5
    for group in found:
        assert len({(c.kind, c.victim, c.signal, c.phase) for c, _ in group}) == 1


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"VICTIMS": "driver user", "KINDS": "connect"}, {"user"}),
        ({"VICTIMS": "driver", "KINDS": "cluster"}, {"driver"}),
    ],
)
def test_words_choose_the_rounds(variables, expected):
    assert {case.victim for case, _ in rounds(variables)} == expected


def test_cases_choose_the_rounds():
    words = f"{DRIVER}*2 deferred-overwrite-connect-server-term-waits"
    found = [(str(case), number) for case, number in rounds({"CASES": words, "ROUNDS": "9"})]
    server = words.split()[1]
    assert found == [(DRIVER, 1), (server, 1), (DRIVER, 2)]
    assert list(rounds({"CASES": DRIVER.upper()})) == list(rounds({"CASES": f"{DRIVER}*1"}))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("cluster-into*2", r"there is no cluster-into\*2"),
        (f"{DRIVER}*0", "there is no .*0"),
        (f"{DRIVER}*x", "there is no .*x"),
        (f"{DRIVER} {DRIVER}*2", f"{DRIVER} is there twice"),
    ],
)
def test_words_that_are_no_cases_are_errors(words, message):
    with pytest.raises(ValueError, match=f"^CASES: {message}$"):
        list(rounds({"CASES": words}))


@pytest.mark.parametrize(
    ("phase", "is_own", "following"),
    [("runs", True, "waits"), ("runs", False, "commits"), ("waits", False, "commits")],
)
def test_a_statement_still_runs_while_its_task_waits(phase, is_own, following):
    assert next_phase(DEFERRED, phase, is_own) == following
    assert next_phase(DEFERRED, "ended", is_own) is None


def test_a_word_of_no_case_is_an_error():
    with pytest.raises(ValueError, match="VICTIMS: there is no drivers"):
        list(rounds({"VICTIMS": "drivers"}))
    with pytest.raises(ValueError, match="AT_ONCE: 0 tasks"):
        tasks_at_once({"AT_ONCE": "0"})


def test_a_line_keeps_what_the_table_of_results_counts():
    case = Case("cluster", "INTO", "driver", "KILL", "commits")
    results = [
        Result(case, is_done=True, wrote=1),
        Result(case, wrote=2, table={"x/1": (1,)}, is_wrong=True, is_twice=True, log="a\nb"),
        Result(case, late=True, slots=1, orphans=["job 1"], clears=1, seconds_to_stop=2.5),
        Result(case, error="AssertionError()"),
    ]
    lines = [line_of(result) for result in results]
    assert table_of(map(read_line, lines)) == table_of(results)
    assert [read_line(line).is_good for line in lines] == [True, False, False, False]
    assert not any("\n" in line for line in lines)
