"""What adapters start from: the network, and the text on whose first half it was trained."""

MODEL, TEXT = "decoder-64x2", "tiny-shakespeare"
DIGEST = "d98024a793da17d2"  # of the weights
WINDOWS = 64  # in the validation part
