"""The free position of EB, by hand."""

import pytest

from tests.helpers import bits, hand_view, places, table
from unmask import Needs, Rule
from unmask.errors import RuleError

ENTROPY = table([2.0, 0.05, 0.06, 0.3, 1.0])


def _chosen(free, gamma=0.1, **fields):
    view = hand_view([0.5] * 5, **{"entropy": ENTROPY, **fields})
    return places(Rule.parse(f"entropy | eb({gamma}, free={free})")(view).chosen)


def test_order_spends_it_on_the_next_in_order():
    assert _chosen("order") == [1, 2]
    assert _chosen("order", 0.12) == [1, 2, 3]


def test_leftmost_commits_the_leftmost_mask_beside_a_prefix_within_gamma():
    assert _chosen("leftmost") == [0, 1]
    assert _chosen("leftmost", 0.12) == [0, 1, 2]
    assert _chosen("leftmost", 0.01) == [0]


def test_leftmost_alone_replaces_a_single_position_only():
    assert _chosen("leftmost_alone") == [1, 2]
    assert _chosen("order", 0.01) == [1]
    assert _chosen("leftmost_alone", 0.01) == [0]


def test_flattest_first_ranks_the_flattest_first_before_there_is_a_history():
    moved = {"kl_prev_cur": table([0.4, 3.0, 3.0, 3.0, 0.2])}
    assert _chosen("flattest_first", seen=bits([0] * 5), **moved) == [4]
    assert _chosen("flattest_first", 1.06, seen=bits([0] * 5), **moved) == [0, 1, 4]
    assert _chosen("flattest_first", **moved) == [1, 2]


def test_the_flattest_is_no_end_of_text_that_goes_last():
    fields = {"kl_prev_cur": table([0.4, 3.0, 3.0, 3.0, 0.2]), "seen": bits([0] * 5)}
    assert _chosen("flattest_first", deferred=bits([0, 0, 0, 0, 1]), **fields) == [0, 1]


def test_only_the_flattest_reads_a_history():
    for free in ("order", "leftmost", "leftmost_alone"):
        assert Rule.parse(f"entropy | eb(0.1, free={free})").needs == Needs()
    needs = Rule.parse("entropy | eb(0.1, free=flattest_first)").needs
    assert needs == Needs(kl=frozenset({"prev_cur"}), uniform_start=True)


def test_flattest_first_starts_as_swd_does():
    Rule.parse("entropy | swd(1) | eb(0.1, free=flattest_first)")
    Rule.parse("entropy | swd(0, start=skip) | eb(0.1, free=flattest_first)")
    with pytest.raises(RuleError, match="starts from the uniform distribution"):
        Rule.parse("entropy | swd(1, start=skip) | eb(0.1, free=flattest_first)")
