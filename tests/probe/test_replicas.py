"""Which backward passes DistributedDataParallel averages, told from the order of calls, passes and steps."""

import weakref

import pytest
from torch import nn

from whygrad.probe.modules import unwrapped
from whygrad.probe.replicas import TrackedReplica

CALL, LOCAL_CALL, PAST, BACKWARD, STEP = "call", "local call", "past it", "backward", "step"


def after(*happenings):
    module = nn.Linear(1, 1)
    entry = TrackedReplica(0, weakref.ref(module), [], 2, False, False, None)
    for happening in happenings:
        if happening == PAST:
            entry.outside_since = True
        elif happening == BACKWARD:
            entry.note_backward(None)
        elif happening == STEP:
            entry.note_step()
        else:
            entry.note_call(None, averages=happening == CALL)
    return entry.fact(compiled=False)


@pytest.mark.parametrize(
    ("happenings", "why"),
    [
        ((CALL, BACKWARD, STEP), ""),
        ((CALL, CALL, BACKWARD, STEP), ""),
        ((CALL, PAST, BACKWARD, STEP), ""),
        ((LOCAL_CALL, BACKWARD, CALL, BACKWARD, STEP), ""),
        ((CALL, BACKWARD, LOCAL_CALL, BACKWARD, STEP), "no-sync"),
        ((CALL, CALL, BACKWARD, BACKWARD, STEP), "repeated"),
        ((PAST, BACKWARD, STEP), "outside"),
        ((BACKWARD, STEP), "outside"),
        ((CALL, BACKWARD, PAST, BACKWARD, STEP), "outside"),
        ((CALL, BACKWARD, STEP, BACKWARD, STEP), "outside"),
    ],
)
def test_why_a_step_was_made_on_this_ranks_own_gradients(happenings, why):
    replica = after(*happenings)

    assert replica.local_why == why
    assert replica.local_steps == bool(why)
    assert replica.steps == happenings.count(STEP)
    assert replica.backwards == happenings.count(BACKWARD)


def test_a_step_without_new_gradients_is_none_of_its_steps():
    assert after(CALL, BACKWARD, STEP, STEP).steps == 1


def test_where_calls_of_the_wrapper_cannot_be_seen_nothing_is_claimed():
    module = nn.Linear(1, 1)
    entry = TrackedReplica(0, weakref.ref(module), [], 2, False, False, None)
    entry.note_backward(None)
    entry.note_step()

    replica = entry.fact(compiled=True)

    assert (replica.local_steps, replica.local_why, replica.first_local_step) == (0, "unknown", None)


def test_a_wrapped_model_without_a_truth_value_is_unwrapped():
    class OptimizedModule(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self._orig_mod = inner

        def __len__(self):
            raise TypeError

    class DistributedDataParallel(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.module = inner

    net = nn.Linear(2, 2)

    assert unwrapped(DistributedDataParallel(OptimizedModule(net))) is net
