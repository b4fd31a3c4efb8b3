"""Modules of the standard library that are in every component.

A component has no files: a module is in it only if it was imported while it was built. These are, so that authors may
also import them in functions.
"""

from __future__ import annotations

import importlib

MODULES = (
    "abc", "array", "ast", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "collections.abc",
    "colorsys", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fnmatch",
    "fractions", "functools", "graphlib", "gzip", "hashlib", "heapq", "hmac", "html", "html.parser", "importlib.resources", "io", "ipaddress",
    "itertools", "json", "logging", "math", "numbers", "operator", "pickle", "pprint", "random", "re", "secrets",
    "statistics", "string", "struct", "textwrap", "time", "tomllib", "traceback", "types", "typing", "unicodedata",
    "urllib.parse", "uuid", "weakref", "xml.etree.ElementTree", "zlib", "zoneinfo",
)  # fmt: skip


def load() -> None:
    """Imports them."""
    for name in MODULES:
        importlib.import_module(name)
