"""Findings to people: one output per file; the verdict (order, grouping, folding) is shared by all."""
