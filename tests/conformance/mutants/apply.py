#!/usr/bin/env python3
"""apply.py PATCH FILE: replaces the lines that a mutant names, which must stand exactly once in the file."""
import sys

patch, path = sys.argv[1:]
lines = open(patch).read().splitlines()
before = "\n".join(line[1:] for line in lines if line.startswith("-")) + "\n"
after = "\n".join(line[1:] for line in lines if line.startswith("+")) + "\n"
text = open(path).read()
if ("\n" + text).count("\n" + before) != 1:
    sys.exit(f"{patch}: its lines do not stand exactly once in {path}")
open(path, "w").write(text.replace(before, after, 1))
