"""What adapters continue: the network, and the text of which it knows the first half."""

MODEL, TEXT = "decoder-64x2", "tiny-shakespeare"
DIGEST = "d98024a793da17d2"  # of the weights
WINDOWS = 64  # of the validation part
