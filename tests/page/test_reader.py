"""The browser reads a trace as Python does: every column of every step."""

from __future__ import annotations

import base64
import gzip
import math

import numpy as np
import pytest

from tests.page.page_runs import RUNS
from unmask.page.build import script
from unmask.trace import Trace

READ = """async (data) => {
%s
const trace = await readTrace(unbase64(data), "a trace");
const steps = trace.steps.map((step) => ({
  cells: Array.from(step.positions, (_, place) => step.cell(place)),
  queue: step.queue, committed: [...step.committed], filled: [...step.filled],
  revoked: step.revoked, selected: step.selected, unweighted: step.unweighted,
  gauge: step.gauge, digest: step.digest, window: [step.start, step.stop], forward: step.forward,
}));
const last = Array.from(trace.canvas, (_, position) => trace.tokenAfter(position, steps.length));
return { steps, last, end: trace.end, header: trace.header, words: [...trace.words] };
}"""


@pytest.fixture(scope="module")
def read(browser):
    """What the browser finds in the bytes of a trace."""
    tab = browser.new_page()
    yield lambda data: tab.evaluate(
        READ % script("trace.js"), base64.b64encode(data).decode("ascii")
    )
    tab.close()


def column(step, name):
    return np.array([cell[name] for cell in step["cells"]])


@pytest.mark.parametrize("name", RUNS)
def test_every_column_is_what_python_reads(name, traces, read):
    trace, decoded = Trace.read(traces(name)), read(traces(name).read_bytes())
    assert len(decoded["steps"]) == len(trace.moments)
    for step, moment in zip(decoded["steps"], trace.moments, strict=True):
        for field in ("entropy", "instability", "base", "score", "rank", "token"):
            np.testing.assert_array_equal(column(step, field), getattr(moment, field))
        for field in ("confidence", "margin", "value"):
            np.testing.assert_allclose(column(step, field), getattr(moment, field), rtol=1e-14)
        assert column(step, "position").tolist() == moment.positions.tolist()
        assert column(step, "baseRank").tolist() == moment.base_rank.tolist()
        assert column(step, "chosen").tolist() == moment.chosen.tolist()
        assert column(step, "ready").tolist() == moment.ready.tolist()
        likeliest = [[a["token"] for a in cell["alternatives"]] for cell in step["cells"]]
        assert likeliest == moment.alternatives.tolist()
        probable = [[a["probability"] for a in cell["alternatives"]] for cell in step["cells"]]
        np.testing.assert_allclose(probable, moment.probabilities, rtol=1e-14)


@pytest.mark.parametrize("name", RUNS)
def test_what_was_done_is_what_python_reads(name, traces, read):
    trace, decoded = Trace.read(traces(name)), read(traces(name).read_bytes())
    for step, moment in zip(decoded["steps"], trace.moments, strict=True):
        assert step["queue"] == moment.queue
        assert (dict(step["committed"]), dict(step["filled"])) == (moment.committed, moment.filled)
        assert tuple(step["revoked"]) == moment.revoked
        assert tuple(step["selected"]) == moment.selected
        assert step["unweighted"] == (moment.unweighted and list(moment.unweighted))
        assert step["gauge"] == moment.gauge
        assert step["digest"] == moment.digest
        assert (tuple(step["window"]), step["forward"]) == (moment.window, moment.forward)
    assert decoded["last"] == trace.canvas_after(-1).tolist()
    assert (decoded["end"], decoded["header"]) == (trace.end, trace.header)
    assert dict(decoded["words"]) == trace.words


def test_numbers_of_sixteen_bits_are_what_numpy_says(browser):
    every = np.arange(2**16, dtype=np.uint16)
    tab = browser.new_page()
    code = f"{script('columns.js')} return Array.from({{ length: 65536 }}, (_, i) => half(i));"
    halves = np.array(tab.evaluate(f"() => {{ {code} }}"))
    tab.close()
    np.testing.assert_array_equal(halves, every.view(np.float16).astype(np.float64))


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_of_a_trace_that_was_cut_off_all_is_read_that_python_reads(share, traces, read, tmp_path):
    data = traces("swd").read_bytes()
    cut = data[: math.floor(len(data) * share)]
    trace, decoded = Trace.of(cut), read(cut)
    assert [step["digest"] for step in decoded["steps"]] == [m.digest for m in trace.moments]
    assert decoded["end"] is None


def test_a_trace_that_does_not_fit_its_canvas_is_called_damaged(traces, read):
    content = gzip.decompress(traces("swd").read_bytes())
    far = content.replace(b'"committed":[[42,', b'"committed":[[4200,', 1)
    assert far != content
    with pytest.raises(Exception, match="a trace is damaged: position 4200 is outside"):
        read(gzip.compress(far))
