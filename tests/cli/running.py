"""What the tests of `unmask run` share: a rule, prompts, and how its output is read."""

import json

RULE = "confidence | swd(5) | eb(3)"
PROMPTS = ["Hello", "What is 2 + 2?", "a longer prompt than the others", "x", "Grüße, 你好"]


def answers(file):
    """The lines of an output by their id, without what the clock says."""
    lines = [json.loads(line) for line in file.read_text().split("\n")[:-1]]
    assert all(line.pop("seconds") for line in lines)
    assert len({line["id"] for line in lines}) == len(lines)
    return {line["id"]: line for line in lines}


def as_json(run, *arguments, **more):
    code, out, err = run(*arguments, "--json", **more)
    assert (code, err, out.count("\n")) == (0, "", 1)
    return json.loads(out)
