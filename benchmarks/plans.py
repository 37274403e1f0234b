"""How often each workload is measured: as the length of its step allows, five minutes for each."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done with one workload."""

    rounds: int = 6  # of the plain loop and whygrad
    habit_rounds: int = 3
    turn_s: float = 2.0  # processor time of a turn
    habit_turn_s: float = 1.0
    start_steps: int = 40  # of the default mode, at least
    start_s: float = 60.0  # and at least: the budget has caught up with the dense start by then
    every_steps: int = 24  # of `--every 1`, before it is measured: it looks closely at the first ones
    place_times: int = 6
    memory_steps: int = 4  # the first three are traced
    parts_steps: int = 17  # one of which is looked at closely


_LONG = Plan()
# A hundred short steps are caught up with sooner.
_SHORT = replace(_LONG, start_steps=100, start_s=30.0, every_steps=120)
_PLANS = {
    "tiny MLP 4-8-2": replace(_SHORT, place_times=300, memory_steps=300, parts_steps=3000),
    "MLP 784-512-512-10": replace(_SHORT, place_times=60, memory_steps=60, parts_steps=300),
    "wide 4096x4096": replace(_LONG, place_times=12, parts_steps=34),
}
_QUICK = Plan(
    rounds=2,
    habit_rounds=1,
    turn_s=0.05,
    habit_turn_s=0.05,
    start_steps=5,
    every_steps=5,
    start_s=0.05,
    place_times=2,
    memory_steps=4,
    parts_steps=3,
)


def plan_of(workload: str, *, quick: bool, rounds: int | None) -> Plan:
    """Return the plan of a workload.

    Args:
        workload: Its name.
        quick: Only see that it works.
        rounds: In place of the plan's own.
    """
    plan = _QUICK if quick else _PLANS.get(workload, _LONG)
    return plan if rounds is None else replace(plan, rounds=rounds, habit_rounds=max(1, rounds // 2))
