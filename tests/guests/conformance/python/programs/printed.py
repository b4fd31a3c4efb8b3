"""Values as PySpark prints them: rows of state are plain tuples there, here they are Rows."""

from tidemill import Row


def printed(value):
    return repr(plain(value))


def plain(value):
    """The value without the names of its columns."""
    if isinstance(value, (Row, tuple)):
        return tuple(map(plain, value))
    if isinstance(value, list):
        return list(map(plain, value))
    return value
