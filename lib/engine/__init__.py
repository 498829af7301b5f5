"""Trains the many trials of one search in lock step."""
