"""What else is measured: trials trained again, gradients before they are compressed, timings."""
