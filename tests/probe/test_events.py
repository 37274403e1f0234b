"""Events are counted by kind, subject and line."""

from tests.probe.watched import watched
from whygrad.probe.events import MAX_EVENTS, EventLog
from whygrad.probe.source import UserCode


def test_what_happens_again_at_the_same_line_is_counted():
    log = EventLog()
    for step in (3, 5):
        log.note("clip", step, None, "model", limit=step)

    (event,) = log.facts()

    assert (event.first_step, event.last_step, event.count, event.detail) == (3, 5, 2, {"limit": 3})


def test_two_calls_on_one_line_are_one_event():
    log = EventLog()
    user = UserCode(__file__)
    first, second = user.capture(0), user.capture(0)
    assert first != second
    log.note("backward", 1, first)
    log.note("backward", 2, second)

    (event,) = log.facts()

    assert (event.first_step, event.last_step, event.count) == (1, 2, 2)


def test_other_subjects_and_kinds_are_other_events():
    log = EventLog()
    log.note("clip", 0, None, "a")
    log.note("clip", 0, None, "b")
    log.note("scale", 0, None, "a")

    assert [(e.kind, e.subject) for e in log.facts()] == [("clip", "a"), ("clip", "b"), ("scale", "a")]


def test_a_program_that_makes_new_lines_for_ever_does_not_fill_the_memory():
    log = EventLog()
    for number in range(MAX_EVENTS + 10):
        log.note("clip", 0, None, str(number))

    assert sum(1 for _ in log.facts()) == MAX_EVENTS


def test_both_backward_passes_of_one_line_are_counted_in_the_run_file(tmp_path):
    import torch

    w = torch.ones(2, requires_grad=True)

    def program():
        for _ in range(2):
            _ = [w.sum().backward(), w.sum().backward()]

    (event,) = watched(tmp_path, program).events_of("backward")

    assert event.count == 4
