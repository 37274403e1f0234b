"""SIGTERM waits until the verdict is said, and then does what it would have done."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from whygrad.launch.finish import held_back

SPEAK = """
import os, signal
from whygrad.launch.finish import held_back
with held_back() as received:
    os.kill(os.getpid(), signal.SIGTERM)
    print("spoken", received == [signal.SIGTERM], flush=True)
print("never", flush=True)
"""


def test_what_is_said_is_said_to_the_end_and_the_process_ends_by_the_signal():
    ended = subprocess.run([sys.executable, "-c", SPEAK], capture_output=True, text=True, check=False)

    assert ended.stdout == "spoken True\n"
    assert ended.returncode == -signal.SIGTERM


def test_a_handler_of_the_program_gets_the_signal_afterwards():
    got = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: got.append(number))
    try:
        with held_back() as received:
            os.kill(os.getpid(), signal.SIGTERM)
            assert (received, got) == ([signal.SIGTERM], [])
        assert got == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.filterwarnings("error")
def test_outside_of_the_main_thread_nothing_is_held_back():
    entered = []

    def speak():
        with held_back() as received:
            entered.append(received)

    thread = threading.Thread(target=speak)
    thread.start()
    thread.join()

    assert entered == [[]]
