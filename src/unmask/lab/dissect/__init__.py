"""What the gain of a modulator is made of: the rule, taken apart, on the same examples.

`variants` takes the rule apart, `findings` holds what is computed, `conclusions` says it in words
by fixed rules, and `pages` writes the tables, the plot and the page.
"""
