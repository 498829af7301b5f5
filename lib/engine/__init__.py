"""Many trials of one cell, trained in lock step."""
