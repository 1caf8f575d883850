"""HTML of an answer, for notebooks."""

from __future__ import annotations

from html import escape

from unmask.page.build import TraceFile, page
from unmask.text.answers import Answer

HEIGHT = 640  # pixels of the page inside a notebook


def answer_html(answer: Answer) -> str:
    """The page that plays the answer's trace; without a trace, the text and its cost."""
    if answer.trace is None:
        cost = f"{answer.nfe} forward passes, {answer.tokens} tokens"
        return f"<pre>{escape(answer.text)}</pre><p>{cost}</p>"
    html = page([TraceFile("answer", answer.trace)])
    return (
        f'<iframe srcdoc="{escape(html, quote=True)}" style="width:100%;height:{HEIGHT}px;'
        'border:0" title="The run, step by step"></iframe>'
    )
