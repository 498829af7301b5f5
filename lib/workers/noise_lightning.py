"""The noise meter as a callback of Lightning.

    trainer = Trainer(accumulate_grad_batches=4, callbacks=[noise_callback(examples=32)])

To copy it into your project, take `noise_meter.py` along and mend the import.
"""

from __future__ import annotations

from lib.workers.noise_meter import NoiseMeter


def noise_callback(examples: int, every: int = 100, span: float = 200.0, sketch: int = 0):
    """A lightning.pytorch.Callback that prints an estimate each `every` steps, and what it means at
    the end of training; its `meter` is there in between, and goes into checkpoints.

    examples, span, sketch: as `NoiseMeter` takes them.  Needs automatic optimisation, gradient
    accumulation and one process.  Raises ValueError for a trainer or module that has not.
    """
    from lightning.pytorch import Callback

    class NoiseCallback(Callback):
        def setup(self, trainer, pl_module, stage):
            if stage != "fit":
                return
            count, automatic = trainer.accumulate_grad_batches, pl_module.automatic_optimization
            if count < 2 or not automatic:
                raise ValueError(
                    f"accumulate_grad_batches: {count!r} is not allowed; it must be at least 2, "
                    "with automatic optimisation"
                )
            scaler = getattr(trainer.precision_plugin, "scaler", None)
            self.meter = NoiseMeter(pl_module, examples, 1 / count, span, scaler, sketch)

        def on_after_backward(self, trainer, pl_module):
            self.meter.micro_batch(scale=1 / trainer.accumulate_grad_batches)

        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            self.meter.step()
            if trainer.global_step % every == every - 1:
                print(self.meter.estimate())

        def on_train_end(self, trainer, pl_module):
            print(self.meter.report(examples * trainer.accumulate_grad_batches))

        def state_dict(self):
            return self.meter.state_dict()

        def load_state_dict(self, state_dict):
            self.meter.load_state_dict(state_dict)

    return NoiseCallback()
