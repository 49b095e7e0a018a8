"""The report: one HTML page on a fit that a colleague can read.

A Subject (the model and what is known of its fit) and a Tally (the table, counted) come in; they
become Findings, and those a page. Begin with page.py; what is said is in findings.py and
cautions.py, and how it looks in cards.py and components.py.
"""
