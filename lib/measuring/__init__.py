"""Measuring what is missing: the one runner, its jobs, and the training of a cell."""
