"""What the papers on the disputed questions say, and what this book measured.

We read the text of Charles et al. (2025), the code of nanochat, summaries of Schulman et al.
(2025), and only the abstracts of the others.
"""

from dataclasses import replace

import numpy as np

from chapters.disputed import local_steps, lora, rates
from chapters.disputed.lora_experiments import FULL, RANKS
from lib.claims.claim import finding, ratio
from lib.wording import span

# --- local steps ----------------------------------------------------------------------------------


@finding(
    "D1",
    "One replica with an outer step beats its inner method",
    paper="With a single replica, DiLoCo reaches a lower loss than data parallelism at every size "
    "of the model.",
    source="Charles et al. 2025, in our words",
    read="text",
    shown="Steps of DiLoCo with one replica over those of Adam checked at the same steps, to "
    "5 % error; a miss counts as the last step, a bound.",
)
def one_replica():
    return local_steps.groups(local_steps.ALONE)


@finding(
    "D2",
    "Sparse changes train better than whole ones",
    paper="Changes of which 1 to 3 % are sent, with error feedback, outperform DiLoCo's whole "
    "ones.",
    source="Sarfi et al. 2025, abstract",
    shown="Steps of the sparse form over those of DiLoCo in the same rounds, to 5 % error; a "
    "miss counts as the last step, a bound.",
)
def sparse_changes():
    parts = [(*local_steps.PART, share) for share in (0.01, 0.03)]
    return local_steps.groups([(part, local_steps.WHOLE) for part in parts])


# --- learning rate and weight decay ---------------------------------------------------------------

TIMESCALE = {"source": "Bergsma et al. 2025, abstract, in our words"}


@finding(
    "W2",
    "The timescale of weight decay stays where it is",
    paper="The timescale that rate, decay and batch make together depends on the data per "
    "parameter. (Tested: to within a factor of two.)",
    **TIMESCALE,
    shown="The timescale of the best trials with decay at a batch of 256 over that at 16.",
)
def timescale():
    return [
        ratio(name, effects["moves"], note=f"predicted: {span(rates.MOVES)}")
        for name, effects in rates.by_method()
        if effects["moves"]
    ]


@finding(
    "W2b",
    "The best weight decay grows in proportion to the batch",
    paper="At a fixed model and amount of data the best weight decay grows in proportion to the "
    "batch.",
    **TIMESCALE,
    shown="Growth of the best decay with every doubling of the batch, over 2; rate and "
    "decay are tuned together.",
)
def decay_growth():
    scale = np.log(2)
    return [
        ratio(name, replace(power, value=(power.value - 1) * scale, error=power.error * scale))
        for name, effects in rates.by_method()
        if (power := effects["decay"])
    ]


# --- adapters -------------------------------------------------------------------------------------

LORA = {"source": "Schulman et al. 2025", "read": "summary"}


@finding(
    "C1",
    "LoRA tolerates large batches less",
    paper="LoRA is less tolerant of large batch sizes than training in full. (Here: its critical "
    "batch size.)",
    **LORA,
    shown="The critical batch size at each rank over that of the same matrices trained in "
    "full, to 2.5 nats, from batch sizes that both have.",
)
def tolerance():
    return lora.groups(*((rank, FULL) for rank in RANKS))


@finding(
    "C2",
    "A higher rank tolerates no larger batches",
    paper="Raising the rank does not offset what large batches cost LoRA. (Here: critical batch "
    "sizes.)",
    **LORA,
    shown="The critical batch size over that at rank 1, to 2.5 nats, from batch sizes that "
    "both have.",
)
def by_rank():
    return lora.groups(*((rank, RANKS[0]) for rank in (16, 64)))
