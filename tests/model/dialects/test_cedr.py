"""The insert/retraction/CTI dialect of CEDR."""

import pytest
from dialect_streams import Plain, denoted, reads_back_at_every_element, stream
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.dialects import DialectError, cedr
from anabranch.model.dialects.cedr import Cti, Retraction
from anabranch.model.elements import Adjust, Insert, Stable
from anabranch.model.time import FOREVER

P1, P2 = {"P": "P1"}, {"P": "P2"}


def lengthens_what_has_begun(plain: Plain, element) -> bool:
    return isinstance(element, Adjust) and element.end > element.old_end and element.start < plain.frontier


@given(st.randoms(use_true_random=False))
def test_what_is_written_reads_back_up_to_the_first_half_frozen_event_that_grows(random):
    reads_back_at_every_element(cedr, stream(random), lengthens_what_has_begun)


@given(st.randoms(use_true_random=False))
def test_streams_in_which_no_half_frozen_event_grows_are_written_whole(random):
    elements = stream(random, length=60, avoid=lengthens_what_has_begun)
    reads_back_at_every_element(cedr, elements, lengthens_what_has_begun)


@given(st.randoms(use_true_random=False))
def test_every_item_has_its_sync_time_at_or_after_the_last_cti(random):
    last = None
    for item in cedr.write(stream(random, length=60, avoid=lengthens_what_has_begun)):
        if isinstance(item, Cti):
            last = item.time if last is None else max(last, item.time)
        else:
            assert last is None or cedr.sync(item) >= last


def test_the_stream_of_table_1_denotes_the_history_of_table_2():
    table_1 = [
        Insert(P1, 1, FOREVER),
        Cti(1),
        Retraction(P1, 1, FOREVER, 10),
        Retraction(P1, 1, 10, 5),
        Insert(P2, 4, 9),
        Cti(10),
    ]
    expected = denoted([Insert(P1, 1, 5), Insert(P2, 4, 9), Stable(10)])
    assert denoted(cedr.read(table_1)).state() == expected.state()


def test_an_event_that_grows_is_retracted_and_inserted_anew():
    written = list(cedr.write([Insert(P1, 1, 5), Adjust(P1, 1, 5, 9)]))
    assert written == [Insert(P1, 1, 5), Retraction(P1, 1, 5, 1), Insert(P1, 1, 9)]


def test_an_adjust_that_moves_nothing_is_not_written():
    assert list(cedr.write([Insert(P1, 1, 5), Adjust(P1, 1, 5, 5)])) == [Insert(P1, 1, 5)]


def test_a_half_frozen_event_that_grows_is_named_with_the_cti():
    elements = [Insert(P1, 1, 5), Stable(2), Adjust(P1, 1, 5, 9)]
    with pytest.raises(DialectError, match=r"P1'} \[1, 5\) would be lengthened to 9.* last CTI 2"):
        list(cedr.write(elements))


def test_an_earlier_stable_lets_nothing_grow_again():
    with pytest.raises(DialectError, match="last CTI 2"):
        list(cedr.write([Insert(P1, 1, 5), Stable(2), Stable(0), Adjust(P1, 1, 5, 9)]))


@pytest.mark.parametrize("new_end", [0, 5, 6])
def test_a_retraction_shortens(new_end):
    with pytest.raises(DialectError, match=rf"retraction of \[1, 5\) moves the end to {new_end}"):
        Retraction(P1, 1, 5, new_end)
