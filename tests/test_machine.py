"""What a record says of the machine: enough to tell two that round otherwise, and nothing that names a host."""

import subprocess
import sys

import torch

from lib import ROOT
from lib.measuring import machine

SAPPHIRE_RAPIDS = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R) Processor @ 2.10GHz
flags\t\t: fpu sse2 avx2 avx512f avx512_bf16 amx_bf16 amx_tile amx_int8

processor\t: 1
model name\t: another
"""
CASCADE_LAKE = SAPPHIRE_RAPIDS.replace("avx512_bf16 amx_bf16 amx_tile amx_int8", "avx512_vnni").replace("143", "85")
GRAVITON = "processor\t: 0\nFeatures\t: fp asimd sve i8mm bf16\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


def test_matrix_units_tell_processors_of_one_name_apart(monkeypatch):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    name = "Intel(R) Xeon(R) Processor @ 2.10GHz, family 6"
    units = "avx512_bf16, amx_tile, amx_bf16"
    assert machine.described(SAPPHIRE_RAPIDS, "?") == f"{name}, model 143, {units}, bfloat16 native"
    assert machine.described(CASCADE_LAKE, "?") == f"{name}, model 85, bfloat16 through float32"
    assert machine.described(GRAVITON, "aarch64") == "aarch64, bf16, bfloat16 native"
    assert machine.described("", "arm") == "arm, bfloat16 through float32"


def test_rounding_tells_one_sum_from_another_and_nothing_else(monkeypatch):
    """The same in every process; another once products are summed otherwise, though not by a tenth of a per cent."""
    threads = torch.get_num_threads()
    command = "import torch; from lib.measuring import machine; torch.set_num_threads({}); print(machine.rounding('float32'))"
    call = [sys.executable, "-c", command.format(threads)]
    again = subprocess.run(call, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout.strip()
    usual = machine.rounding("float32")
    assert usual == again and usual != machine.rounding("bfloat16")
    linear = machine.functional.linear

    def halves(x, w):
        return linear(x[:, ::2], w[:, ::2]) + linear(x[:, 1::2], w[:, 1::2])

    with torch.no_grad():
        x, w = torch.randn(64, 300), torch.randn(100, 300)
        torch.testing.assert_close(halves(x, w), linear(x, w), rtol=1e-3, atol=1e-3)
    monkeypatch.setattr(machine.functional, "linear", halves)
    machine._rounding.cache_clear()
    assert machine.rounding("float32") != usual
    machine._rounding.cache_clear()
