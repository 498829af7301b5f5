"""Other measurements: trials trained again, gradients before compression, timings."""
