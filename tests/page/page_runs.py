"""Runs of the embedded model whose pages are looked at, by name: rule and options.

The tests need runs of many steps, so some start with a single token.
"""

PROMPT = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
RUNS = {
    "swd": ("confidence | swd(5, start=single) | eb(0.1)",),
    "eb": ("confidence | eb(0.1)",),
    "block": (
        "confidence | swd(5, start=single) | eb(0.1)",
        "--block",
        "16",
        "--length",
        "32",
        "--eos",
        "stop",
    ),
    "revoke": ("confidence | swd(5, start=single) | eb(0.1) | revoke(0.1)",),
    "temperature": ("confidence | swd(5) | threshold(0.9)", "--temperature", "0.8"),
    "credit": ("credit(0.65) | confidence | swd(5) | threshold(0.9)",),
    "klass": ("confidence | swd(1) | klass(0.9, kl=0.001)",),
    "entropy": ("entropy | swd(30) | threshold(-0.7)",),
    "margin": ("margin | top(2)", "--eos", "suppress"),
    "infill": ("confidence | swd(5) | eb(0.1)", "--infill"),
}
