"""Real processes that train together."""
