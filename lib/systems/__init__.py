"""Other ways to train, each measured by the same ruler: steps to a goal error against the batch size."""
