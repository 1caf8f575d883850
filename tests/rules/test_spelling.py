"""Rules in files: what a file meant when it was written, it means for ever."""

import re

from tests.helpers import rule_texts
from unmask.rules.registry import kind_named
from unmask.rules.rule import Rule
from unmask.rules.spelling import FIRST, TODAY, for_file, for_key, from_file


def test_a_file_names_the_start_of_swd():
    assert for_file("confidence | swd(5) | eb(0.1)") == (
        "confidence | swd(5, start=uniform) | eb(0.1)"
    )
    assert for_file(Rule.parse("swd")) == "confidence | swd(5, start=uniform) | eb(0.1)"


def test_a_file_that_does_not_name_the_start_is_older_than_the_default_uniform():
    for old, today in {
        "confidence | swd(5) | eb(0.1)": "confidence | swd(5, start=single) | eb(0.1)",
        "entropy | swd(1, kl=cur_prev, form=signed) | top(1)": (
            "entropy | swd(1, kl=cur_prev, start=single, form=signed) | top(1)"
        ),
        "confidence | swd(5, start=uniform) | eb(0.1)": "confidence | swd(5) | eb(0.1)",
        "confidence | swd(5, start=skip) | eb(0.1)": "confidence | swd(5, start=skip) | eb(0.1)",
        "mine(3) | swd(5) | ours": "mine(3) | swd(5, start=single) | ours",  # parts of a user
    }.items():
        assert from_file(old) == today
        assert for_key(from_file(old)) == old


def test_every_rule_comes_back_from_a_file():
    texts = [str(Rule.parse(text)) for text in rule_texts()]
    assert sum("swd" in text for text in texts) > 5
    for text in texts:
        written = for_file(text)
        assert from_file(written) == text
        assert Rule.parse(written) == Rule.parse(text)
        assert bool(re.search(r"swd\(.*start=", written)) == ("swd(" in text)


def test_the_defaults_of_today_are_those_of_the_parts():
    assert FIRST.keys() == TODAY.keys()
    for name, knobs in TODAY.items():
        defaults = {each.name: each.default for each in kind_named(name).arguments}
        assert knobs.items() <= defaults.items()
        assert FIRST[name].keys() == knobs.keys()
