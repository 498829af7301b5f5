"""Measurements of the book's own speed and weight: python -m benchmarks.NAME --help."""

import argparse
from collections.abc import Collection


def chosen(about: str, names: Collection[str] = ()) -> list[str]:
    """What the command line names, or else all; names: of what can be measured, if there is a
    choice.
    """
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=about, formatter_class=layout)
    allowed = f"any of {', '.join(names)}; all without one"
    if names:
        parser.add_argument("names", nargs="*", metavar="NAME", help=allowed)
    named = getattr(parser.parse_args(), "names", [])
    for name in named:
        if name not in names:
            parser.error(f"NAME: {name!r} is not allowed; it must be {allowed}")
    return named or list(names)
