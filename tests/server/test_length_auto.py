"""Answers of unknown length: a request with `length: "auto"` grows its canvas within the limits."""

from tests.server.serving import PENS, run_text, serving, text_of

RULE = "confidence | threshold(0.9)"
AUTO = {"length": "auto", "longest": 48, "rule": RULE}


def test_rows_of_a_batch_and_a_stream_get_the_text_of_run(embedded, capsys):
    options = ["--length", "auto", "--longest", 48, "--rule", RULE]
    prompts = [PENS, PENS.replace("12", "20"), "Ann has 7 pens."]
    alone = [run_text(capsys, prompt, "--raw", *options)["text"] for prompt in prompts]
    together = embedded.complete(prompts, **AUTO).json()["choices"]
    assert [choice["text"] for choice in together] == alone
    chat = run_text(capsys, PENS, *options)
    assert text_of(embedded.stream(PENS, **AUTO)) == chat["text"]
    reply = embedded.chat(PENS, **AUTO).json()
    assert reply["usage"]["nfe"] == chat["nfe"]
    assert (reply["unmask"]["length"], reply["unmask"]["longest"]) == ("auto", 48)


def test_drawn_choices_and_stop_strings_work_on_a_canvas_that_grows(embedded):
    drawn = embedded.chat(PENS, **AUTO, n=3, temperature=0.7).json()["choices"]
    assert len({choice["message"]["content"] for choice in drawn}) > 1
    (cut,) = embedded.chat(PENS, **AUTO, stop=".").json()["choices"]
    assert "." not in cut["message"]["content"]
    assert cut["unmask"]["written"] >= cut["unmask"]["tokens"] > 0


def test_the_server_s_limit_bounds_the_growth_and_a_trace_is_refused_in_a_line():
    with serving("--length", 16, "--max-length", 24) as running:
        settings = running.chat(PENS, length="auto", rule=RULE).json()["unmask"]
        assert settings["longest"] == 24
        refusals = {
            "25 tokens to write; this server writes at most 24": {**AUTO, "longest": 25},
            "a trace needs a fixed length; leave out trace, or auto": {
                **AUTO, "longest": 24, "trace": True,
            },
            "give one length, got length auto, max_tokens 4": {**AUTO, "max_tokens": 4},
        }  # fmt: skip
        for message, fields in refusals.items():
            response = running.chat(PENS, **fields)
            assert (response.status_code, response.json()["error"]["message"]) == (400, message)
