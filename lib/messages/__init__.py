"""What workers send each other: compressed gradients, with error feedback or without."""
