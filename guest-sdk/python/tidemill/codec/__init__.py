"""Packed rows, from and to Python values. The bytes are those of ``wit/README.md``, "Packed rows".

``columns.py`` says how each type fills its slot, ``nested.py`` reads and writes ARRAY, MAP and large DECIMAL, ``rows.py``
generates the functions that read and write whole rows, ``check.py`` says what is wrong with a row that did not fit.
"""

from .rows import RowCodec, codec_of

__all__ = ["RowCodec", "codec_of"]
