"""The noise meter as a callback of Lightning and of Hugging Face's Trainer.

    trainer = Trainer(accumulate_grad_batches=4, callbacks=[lightning_callback(examples=32)])

    arguments = TrainingArguments(gradient_accumulation_steps=4, per_device_train_batch_size=32)
    Trainer(model, arguments, train_dataset=examples, callbacks=[trainer_callback()]).train()

Both print an estimate each `every` steps, and what it means at the end of training; in between, it
is in their `meter`.  To copy this into your project, take `noise_meter.py` along and mend the
import.
"""

from __future__ import annotations

from lib.workers.noise_meter import NoiseMeter


def lightning_callback(examples: int, every: int = 100, span: float = 200.0):
    """A lightning.pytorch.Callback; its meter goes into checkpoints.

    examples, span: as `NoiseMeter` takes them.  Needs automatic optimisation, gradient accumulation
    and one process.  Raises ValueError in training, as `NoiseMeter.step`, without accumulation.
    """
    from lightning.pytorch import Callback

    class NoiseCallback(Callback):
        def setup(self, trainer, pl_module, stage):
            scaler = getattr(trainer.precision_plugin, "scaler", None)
            self.meter = NoiseMeter(pl_module, examples, span, scaler)

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


def trainer_callback(every: int = 100, span: float = 200.0):
    """A transformers.TrainerCallback.

    span: as `NoiseMeter` takes it.  An epoch's last micro-batch counts as one of full size.
    Callbacks see a step's last micro-batch only after clipping: it is left out, unless
    max_grad_norm is 0, so that clipping needs three micro-batches a step.  Checkpoints do not hold
    the averages, which start anew.  Raises ValueError in training, as `NoiseMeter.step`, for fewer.
    """
    from transformers import TrainerCallback

    class NoiseCallback(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
            scaler = getattr(optimizer, "scaler", None)
            self.meter = NoiseMeter(model, args.train_batch_size, span, scaler)

        def on_substep_end(self, args, state, control, **kwargs):
            self.meter.micro_batch(scale=1 / args.gradient_accumulation_steps)

        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            if not args.max_grad_norm:
                self.on_substep_end(args, state, control)

        def on_step_end(self, args, state, control, **kwargs):
            self.meter.step()  # reads no `.grad`, so that it may come after the optimiser's step
            if state.global_step % every == 0:
                print(self.meter.estimate())

        def on_train_end(self, args, state, control, **kwargs):
            print(self.meter.report(args.train_batch_size * args.gradient_accumulation_steps))

    return NoiseCallback()
