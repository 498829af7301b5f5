"""Training what is missing."""
