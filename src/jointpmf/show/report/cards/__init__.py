"""The sections of the report: each takes the Findings and returns its HTML. Begin with data.py."""
