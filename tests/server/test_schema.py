"""The OpenAPI document, and generated requests: none may cause a server error."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from tests.server.serving import serving
from unmask.decoding.options import OPTIONS
from unmask.server.schema import REQUEST_OPTIONS, CommonFields

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis needs Python 3.11")
openapi = pytest.importorskip("schemathesis.specs.openapi.checks")
CHECKS = [
    schemathesis.checks.not_a_server_error,
    openapi.status_code_conformance,
    openapi.content_type_conformance,
    openapi.response_schema_conformance,
]


@pytest.fixture(scope="module")
def limited():
    """A server with a small length limit, so that generated requests are short."""
    with serving("--max-length", 32, "--length", 16) as running:
        yield running


OPERATIONS = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/completions"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{name}"),
    ("GET", "/v1/traces/{name}"),
    ("GET", "/health"),
    ("GET", "/metrics"),
]


RULES = ("swd", "confidence | top(3)", "confidence | eb(1) | revoke(0.1)", "dream")
LEFT_OUT = (
    "block", "sub_block", "infill", "longest", "trace", "chat_template_kwargs", "regex", "choice",
    "guided_regex", "guided_choice",
    "guided_json", "response_format", "step_map", "top_logprobs", "max_tokens",
    "max_completion_tokens",
)  # fmt: skip
ASKED = {"/v1/chat/completions": {"messages": [{"role": "user", "content": "Repeat: pig."}]}}
TRIES = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def call_all(running, method, path, mode, sensible=False):
    """Generate requests and send them; returns the statuses of the responses."""
    document = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
    statuses = Counter()

    @TRIES
    @given(document[path][method].as_strategy(generation_mode=mode))
    def call(case):
        if sensible:  # a generated model, rule name, prompt or language is always refused
            case.body |= ASKED.get(path, {"prompt": "Repeat: pig."}) | {"length": 8}
            case.body |= {"model": "embedded", "rule": RULES[len(statuses) % len(RULES)]}
            case.body = {k: v for k, v in case.body.items() if k not in LEFT_OUT}
        statuses[case.call_and_validate(checks=CHECKS, timeout=60).status_code] += 1

    call()
    return statuses


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_made_up_request_is_a_server_error(limited, method, path):
    assert max(call_all(limited, method, path, schemathesis.GenerationMode.POSITIVE)) < 500


@pytest.mark.parametrize(("method", "path"), OPERATIONS[:2])
def test_made_up_requests_with_a_rule_are_decoded(limited, method, path):
    statuses = call_all(limited, method, path, schemathesis.GenerationMode.POSITIVE, sensible=True)
    assert max(statuses) < 500
    assert statuses[200] > 3


@pytest.mark.parametrize(("method", "path"), OPERATIONS[:2])
def test_requests_that_break_the_document_are_refused(limited, method, path):
    assert set(call_all(limited, method, path, schemathesis.GenerationMode.NEGATIVE)) <= {
        400,
        405,
        413,
    }


def test_every_operation_is_tried(embedded):
    document = schemathesis.openapi.from_url(f"{embedded.url}/openapi.json")
    operations = [result.ok() for result in document.get_all_operations()]
    assert {(one.method.upper(), one.path) for one in operations} == set(OPERATIONS)


def test_the_document_names_our_fields_and_both_kinds_of_answers(embedded):
    with embedded.http as http:
        document = http.get("/openapi.json").json()
    fields = document["components"]["schemas"]["ChatRequest"]["properties"]
    ours = {"rule", "length", "block", "eos", "steps", "seed", "infill", "diffusing", "trace"}
    assert ours <= set(fields)
    posted = document["paths"]["/v1/chat/completions"]["post"]["responses"]
    assert set(posted["200"]["content"]) == {"application/json", "text/event-stream"}
    assert {"400", "401", "413", "429", "503"} <= set(posted)
    assert "422" not in posted


def test_a_request_may_set_every_decoding_option_that_needs_no_other_model():
    only_the_server = {"cache", "guidance", "dtype", "mask_id", "family", "quantize", "pack"}
    by_other_names = {"language", "template_args"}  # response_format, chat_template_kwargs ...
    assert set(REQUEST_OPTIONS) == set(OPTIONS) - only_the_server - by_other_names
    for name in REQUEST_OPTIONS:
        assert CommonFields.model_fields[name].description == OPTIONS[name].help
