"""The tables of a report, written as CSV, LaTeX and on the page."""
