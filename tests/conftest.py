"""What every test shares."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    """The same random tensors in each run, in whatever order and process a test runs."""
    torch.manual_seed(0)
