"""Make `lib` importable in the kernels that nbmake starts: they run in chapters/."""

import os
from pathlib import Path

os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH")])
)
