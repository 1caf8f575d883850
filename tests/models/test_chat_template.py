"""Chat templates come with a checkpoint: what they may do is limited."""

from __future__ import annotations

import time

import pytest

from unmask.errors import ModelError, RequestError
from unmask.models import chat_template
from unmask.models.chat_template import ChatTemplate

CHAT = [{"role": "user", "content": "Hi"}]


def rendered(source: str) -> str:
    return ChatTemplate(source, "some-model").render({"messages": CHAT})


def test_the_tags_that_transformers_adds_to_jinja_are_known():
    chat = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    assert rendered(chat) == "Hi"
    until = "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% elif i > 3 %}{% break %}"
    assert rendered(until + "{% endif %}{{ i }}{% endfor %}") == "023"


def test_loops_that_would_run_for_hours_end_in_one_line(monkeypatch):
    monkeypatch.setattr(chat_template, "LIMIT", 0.2)
    recursive = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
    endless = [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        f"{recursive}{{{{ m(60) }}}}",
    ]
    for source in endless:
        begin = time.perf_counter()
        with pytest.raises(RequestError, match=r"fails on these messages: it takes more than 0\.2"):
            rendered(source)
        assert time.perf_counter() - begin < 5


def test_texts_and_numbers_that_would_take_all_memory_are_refused():
    doubled = "{% set s.x = s.x ~ s.x %}"
    added = "{% set s.x = s.x + s.x %}"
    huge = [
        "{{ 'a' * 10**9 }}",
        "{{ [0] * 10**9 }}",
        "{{ 9**9**9 }}",
        "{{ 10**9 * 'a' }}",
        "{{ '%1000000000d' % 1 }}",
        "{% set s = namespace(x='a') %}{% for i in range(60) %}" + doubled + "{% endfor %}",
        "{% set s = namespace(x='a') %}{% for i in range(60) %}" + added + "{% endfor %}",
        "{% set s = namespace(x=9) %}{% for i in range(60) %}{% set s.x = s.x * s.x %}{% endfor %}",
        "{{ messages | tojson(indent=10**9) }}",
        "{{ range(99999) | join('a' * 99999) }}",
        "{{ ('a' * 99999).join(['b'] * 99999) }}",
        "{{ ('a' * 9999) | replace('a', 'b' * 99999) }}",
        "{{ ('a' * 9999).replace('', 'b' * 99999) }}",
        "{{ ('a\\n' * 9999) | indent(99999) }}",
        "{{ 'a'.center(10**9) }}",
        "{% set x = 'a' * 10**7 %}{% for i in range(9999) %}{{ x }}{% endfor %}",
        "{% set x %}{% for i in range(9999) %}{{ 'a' * 10**6 }}{% endfor %}{% endset %}",
    ]
    for source in huge:
        with pytest.raises(RequestError, match="the chat template fails on these messages") as e:
            rendered(source)
        assert "\n" not in str(e.value)


def test_json_takes_the_options_of_transformers_and_no_others():
    assert rendered("{{ messages[0] | tojson }}") == '{"role": "user", "content": "Hi"}'
    assert rendered("{{ [1] | tojson(indent=2) }}") == "[\n  1\n]"
    with pytest.raises(RequestError, match="unexpected keyword argument 'cls'"):
        rendered("{{ messages | tojson(cls=messages.__class__) }}")


def test_usual_operators_give_what_jinja_gives():
    assert rendered(
        "{{ 'a' ~ 1 ~ none }} {{ 'ab' * 2 }} {{ 7 % 4 }} {{ [1] + [2] }} {{ 2**3 }}"
    ) == ("a1None abab 3 [1, 2] 8")


def test_usual_filters_and_methods_give_what_jinja_gives():
    source = (
        "{{ [1, 'b'] | join(', ') }} {{ messages | join('-', attribute='role') }} "
        "{{ 'aba' | replace('a', 'c', 1) }} {{ 'aba'.replace('a', '') }} "
        "{{ ', '.join(['x', 'y']) }} "
        "{{ 'a\\nb' | indent(2) }} {{ 'a {} {b}'.format(1, b=2) }} {{ 'x' | trim | upper }} "
        "{% macro m(called) %}<{{ called }}>{% endmacro %}{{ m(called=7) }} "
        "{{ ' a '.strip() }} {{ 'b,c'.split(',') }}"
    )
    assert rendered(source) == ("1, b user cba b x, y a\n  b a 1 2 X <7> a ['b', 'c']")


def test_a_rejection_is_one_line():
    with pytest.raises(RequestError, match=r"rejects the messages: roles must alternate$"):
        rendered("{{ raise_exception('roles\\nmust alternate') }}")


def test_a_text_is_not_formatted_with_a_width():
    with pytest.raises(RequestError, match="a text is formatted with a width"):
        rendered("{{ '{:>1000000000}'.format(1) }}")


def test_filters_that_only_grow_are_unknown():
    with pytest.raises(ModelError, match="No filter named 'center'"):
        rendered("{{ 'a' | center(10**9) }}")


def test_what_is_no_template_is_named_with_its_folder():
    with pytest.raises(ModelError, match="some-model: broken chat template"):
        ChatTemplate("{% if %}", "some-model")
