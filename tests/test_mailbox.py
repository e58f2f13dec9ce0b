"""The newest item wins, and none disappears uncounted."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.mailbox import Mailbox


def test_clearing_forgets_the_item_and_the_count():
    mailbox = Mailbox()
    mailbox.put("a")
    mailbox.put("b")
    mailbox.clear()
    assert mailbox.take() is None
    mailbox.put("c")
    assert mailbox.take() == ("c", 0)


@given(st.lists(st.one_of(st.integers(), st.just("take"))))
def test_every_item_is_taken_dropped_or_waiting_and_order_is_kept(actions):
    mailbox = Mailbox()
    put = []
    taken = []
    dropped = 0
    waiting = False
    for action in actions:
        if isinstance(action, int):
            assert mailbox.put(action) is not waiting
            put.append(action)
            waiting = True
        elif waiting:
            delivery = mailbox.take()
            assert delivery[0] == put[-1]
            taken.append(delivery[0])
            dropped += delivery[1]
            waiting = False
        else:
            assert mailbox.take() is None
    rest = mailbox.take()
    if rest is not None:
        taken.append(rest[0])
        dropped += rest[1]
    assert len(put) == len(taken) + dropped


def test_nothing_is_lost_between_two_threads():
    mailbox = Mailbox()
    items, announced = 20_000, threading.Semaphore(0)
    taken = []
    dropped = 0

    def produce():
        for item in range(items):
            if mailbox.put(item):
                announced.release()
        mailbox.put(-1)
        announced.release()

    producer = threading.Thread(target=produce)
    producer.start()
    while not taken or taken[-1] != -1:
        assert announced.acquire(timeout=60)
        delivery = mailbox.take()
        if delivery is not None:
            taken.append(delivery[0])
            dropped += delivery[1]
    producer.join()
    assert len(taken) + dropped == items + 1
    assert taken[:-1] == sorted(taken[:-1])
