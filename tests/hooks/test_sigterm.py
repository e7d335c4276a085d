"""Airflow's handler of SIGTERM comes back, however connections are closed."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from airflow_hive_opt.provider.sigterm import on_sigterm


@pytest.fixture
def airflows_handler():
    """Airflow's handler of SIGTERM, and how often it was called."""
    called = []
    before = signal.signal(signal.SIGTERM, lambda *_: called.append(True))
    yield signal.getsignal(signal.SIGTERM), called
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_airflows_handler_is_back_in_whichever_order_connections_close(airflows_handler, order):
    handler, called = airflows_handler
    stopped = []
    blocks = [on_sigterm(lambda at=at: stopped.append(at)) for at in (0, 1)]
    for block in blocks:
        block.__enter__()
    os.kill(os.getpid(), signal.SIGTERM)
    blocks[order[0]].__exit__(None, None, None)
    os.kill(os.getpid(), signal.SIGTERM)
    blocks[order[1]].__exit__(None, None, None)
    assert stopped == [0, 1, order[1]]
    assert called == [True, True]
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_connection_may_be_closed_in_another_thread(airflows_handler):
    handler, called = airflows_handler
    stopped, failures = [], []
    block = on_sigterm(lambda: stopped.append(True))
    block.__enter__()

    def close():
        try:
            block.__exit__(None, None, None)
        except ValueError as error:
            failures.append(error)

    closing = threading.Thread(target=close)
    closing.start()
    closing.join()
    assert failures == []
    os.kill(os.getpid(), signal.SIGTERM)
    assert (stopped, called) == ([], [True])
    with on_sigterm(lambda: None):
        pass
    assert signal.getsignal(signal.SIGTERM) is handler
