"""What threads have read is taken in its order, and nothing is read once nobody wants it."""

import sys

from anabranch import Batch, Insert
from anabranch.engines.embedded.inbox import Ended, Inbox
from anabranch.engines.embedded.stopping import Stop

FIRST, SECOND = ([Insert({"reading": start}, start, start + 1)] for start in (1, 2))


def inbox_of(room: int) -> Inbox:
    inbox = Inbox({"east": [Batch.of(FIRST), Batch.of(SECOND)]}, room)
    inbox.open()
    return inbox


def test_what_an_input_has_brought_is_taken_after_it_is_dismissed():
    inbox = inbox_of(room=3)
    inbox.threads["east"].join()
    inbox.dismiss("east")
    *brought, (_, end) = [inbox.take() for _ in range(3)]
    assert [list(batch.elements()) for _, batch in brought] == [FIRST, SECOND]
    assert end == Ended()


def test_who_waits_for_room_has_ended_once_an_inbox_is_closed():
    inbox = inbox_of(room=1)
    with inbox.changed:
        inbox.changed.wait_for(lambda: inbox.arrived)
    inbox.close()
    assert not inbox.threads["east"].is_alive()


def test_a_stop_that_a_signal_asks_for_just_before_the_wait_ends_it():
    stop = Stop()
    inbox = Inbox({"east": []}, 1, stop)

    def handler(frame, event, _):
        """As the handler of a signal, between two lines of the thread that takes."""
        if event == "return" and frame.f_code is Stop.asked.__code__:
            sys.setprofile(None)
            stop.ask()

    sys.setprofile(handler)
    try:
        assert inbox.take() is None
    finally:
        sys.setprofile(None)
