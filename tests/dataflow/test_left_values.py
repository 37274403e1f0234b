"""Numbers, lists and arrays that left torch are known again: by identity, else by equal digits."""

import weakref

import numpy as np
import pytest

from whygrad.probe.dataflow.values import Values

NODE = object()


@pytest.fixture
def values():
    return Values()


def test_nothing_left_means_nothing_comes_back(values):
    assert not values
    assert not values.find([1.5, 3, np.ones(2)]).unknown


def test_the_same_number_is_known(values):
    number = float("0.123456789")
    values.add(number, NODE)

    assert values.find([number]).exact == [NODE]


def test_an_equal_number_with_many_digits_is_a_guess(values):
    values.add(float("0.123456789"), NODE)

    found = values.find([float("0.1234567890")])

    assert (found.exact, found.guessed, found.unknown) == ([], [NODE], False)


@pytest.mark.parametrize("number", [0.0, 1.0, 0.5, 0.1, -2.25, 0.0001, float("nan"), float("inf")])
def test_an_equal_number_that_is_common_is_no_guess(values, number):
    values.add(number, NODE)

    found = values.find([float(str(number))])

    assert found.guessed == []
    assert found.unknown


def test_small_integers_are_no_identity(values):
    values.add(3, NODE)

    assert values.find([3]).exact == []
    assert values.find([3]).unknown


def test_integers_are_only_suspected_once_one_has_left(values):
    values.add(float("0.123456789"), NODE)
    assert not values.find([7]).unknown

    values.add(7, NODE)
    assert values.find([8]).unknown


def test_rows_and_numbers_of_a_list_are_known(values):
    rows = [[0.123456, 0.654321], [0.111222, 2.0]]
    values.add(rows, NODE)

    assert values.find([rows]).exact == [NODE]
    assert values.find([rows[1]]).exact == [NODE]
    assert values.find([rows[1][1]]).exact == [NODE]


def test_a_long_list_is_not_held(values):
    rows = [float(i) for i in range(5000)]
    values.add(rows, NODE)

    assert values.find([rows]).exact == []
    assert values.find([rows[10]]).exact == [NODE]


def test_arrays_are_known_and_not_held(values):
    array = np.zeros((2, 3), dtype=np.float32)
    values.add(array, NODE)
    assert values.find([array]).exact == [NODE]
    assert values.find([array[1:, ::2].T]).exact == [NODE]

    reference = weakref.ref(array)
    del array

    assert reference() is None


def test_numbers_taken_from_an_array_are_guessed(values):
    values.add(np.array([0.123456, 0.654321], dtype=np.float32), NODE)

    found = values.find([np.float32(0.654321), np.array([[0.123456]], dtype=np.float32)])

    assert found.guessed == [NODE, NODE]


def test_an_id_that_is_used_again_is_not_taken_for_the_array(values):
    for _ in range(50):
        values.add(np.ones(3), NODE)

    assert values.find([np.ones(3) for _ in range(50)]).exact == []
