"""Ctrl-C is not lost, whoever swallows it first."""

import signal
import threading

import pytest

from unmask.lab.ray.driver import noted_interrupts


@pytest.fixture(autouse=True)
def heeded():
    """SIGINT as Python has it, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_somebody_swallowed_is_raised_at_the_next_check():
    with noted_interrupts() as interrupts:
        interrupts.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_somebody_else_stays():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with noted_interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            interrupts.check()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_thread_of_its_own_leaves_the_handler_alone():
    handlers = []

    def work():
        with noted_interrupts() as interrupts:
            interrupts.check()
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]
