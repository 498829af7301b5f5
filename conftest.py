"""Make `lib` importable in the kernels that nbmake starts, which run in chapters/, and let what tests start speak UTF-8."""

import os
from pathlib import Path

os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH")])
)
os.environ["PYTHONIOENCODING"] = "utf-8"
