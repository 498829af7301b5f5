"""The experiments of all sections."""

from chapters.other_networks import fields, leakage, readouts, spiking

EXPERIMENTS = {
    **readouts.EXPERIMENTS,
    **spiking.EXPERIMENTS,
    **fields.EXPERIMENTS,
    **leakage.EXPERIMENTS,
}
