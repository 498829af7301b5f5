"""The sizes of the networks that are trained in parts."""

INPUTS, UNITS, CLASSES = 64, 64, 10  # of the digits, and of a hidden layer
WIDTHS = {"digits-mlp": UNITS, "digits-mlp-256x2": 256}
