"""Work that is done whenever twice as many steps are done."""

from whygrad.probe.doubling import Doubling


def test_it_is_due_at_powers_of_two():
    doubling = Doubling()
    assert [number for number in range(40) if doubling.is_due(number)] == [0, 1, 2, 4, 8, 16, 32]


def test_a_power_that_was_passed_over_is_made_up_for():
    doubling = Doubling()
    assert [number for number in (3, 5, 70, 100, 129) if doubling.is_due(number)] == [3, 5, 70, 129]
