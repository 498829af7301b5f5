"""Training methods: how weights follow from gradients, and what is tuned of each."""
