"""What this chapter measures besides searches of cells."""

from chapters.without_backpropagation import boolean_readout

EXPERIMENTS = {"boolean-readouts": boolean_readout.READOUTS}
