"""What else is measured: trials followed step by step, gradients before they are compressed, times."""
