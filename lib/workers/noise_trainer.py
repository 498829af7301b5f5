"""The noise meter as a callback of Hugging Face's Trainer.

    arguments = TrainingArguments(gradient_accumulation_steps=4, per_device_train_batch_size=32)
    Trainer(model, arguments, train_dataset=examples, callbacks=[noise_callback()]).train()

To copy it into your project, take `noise_meter.py` along and mend the import.
"""

from __future__ import annotations

from lib.workers.noise_meter import NoiseMeter


def noise_callback(every: int = 100, span: float = 200.0, sketch: int = 0):
    """A transformers.TrainerCallback that prints an estimate each `every` steps, and what it means
    at the end of training; its `meter` is there in between.

    span, sketch: as `NoiseMeter` takes them.  An epoch's last micro-batch counts as one of full
    size.  Callbacks see a step's last micro-batch only after clipping: it is left out, unless
    max_grad_norm is 0, so that clipping needs three micro-batches a step.  Checkpoints do not hold
    the averages, which start anew.  Raises ValueError for arguments that do not fit.
    """
    from transformers import TrainerCallback

    class NoiseCallback(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
            count, least = args.gradient_accumulation_steps, 3 if args.max_grad_norm else 2
            if count < least:
                allowed = f"at least {least} (2 with max_grad_norm 0, 3 with clipping)"
                raise ValueError(
                    f"gradient_accumulation_steps: {count!r} is not allowed; it must be {allowed}"
                )
            scaler = getattr(optimizer, "scaler", None)
            size = args.train_batch_size
            self.meter = NoiseMeter(model, size, 1 / count, span, scaler, sketch)

        def on_substep_end(self, args, state, control, **kwargs):
            self.meter.micro_batch()

        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            if not args.max_grad_norm:
                self.meter.micro_batch()

        def on_step_end(self, args, state, control, **kwargs):
            self.meter.step()  # reads no gradient, so that it may come after the optimiser's step
            if state.global_step % every == 0:
                print(self.meter.estimate())

        def on_train_end(self, args, state, control, **kwargs):
            batch_size = args.train_batch_size * args.gradient_accumulation_steps
            print(self.meter.report(batch_size))

    return NoiseCallback()
