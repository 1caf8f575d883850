"""The report of a store: report.md, report.json, report.html, and its plots beside them."""
