"""What every test of the probe needs."""

import pytest

from whygrad.probe.session import active_session


@pytest.fixture(autouse=True)
def _no_session_is_left():
    yield
    session = active_session()
    if session is not None:
        session.abandon()
        pytest.fail("a session was left active")
