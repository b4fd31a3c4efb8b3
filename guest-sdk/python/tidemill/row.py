"""``Row``: a tuple whose values have names.

Each list of names has a class of its own, made once, so that a row costs what a tuple costs and ``row.name`` is a
look-up by position.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

# What `namedtuple` uses to read a value by its position; faster than a property.
_Position: Callable[[int, str], Any] = type(namedtuple("_Position", "a").a)  # type: ignore[attr-defined]


class Row(tuple[Any, ...]):
    """A row: ``row.name``, ``row["name"]``, ``row[0]``; a tuple in all else.

    ``Row(user="a", n=1)`` makes one. ``Row("user", "n")`` makes a row of names, which makes rows when it is called:
    ``Person = Row("name", "age"); Person("Alice", 11)``. A column that is called as a method of tuples, ``count`` or
    ``index``, is read as ``row["count"]``.
    """

    __slots__ = ()
    #: The names, in order; none of a row that was made without.
    __fields__: tuple[str, ...] = ()

    def __new__(cls, *values: Any, **named: Any) -> Row:
        if named:
            if values:
                raise ValueError("a Row is made of values with names or of values without, not of both")
            return tuple.__new__(row_class(tuple(named)), named.values())
        return tuple.__new__(cls, values)

    def __call__(self, *values: Any) -> Row:
        names = tuple(self)
        if len(values) != len(names):
            raise ValueError(f"the row has {len(names)} names ({', '.join(map(str, names))}), but {len(values)} values were given")
        return tuple.__new__(row_class(names), values)

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        """The row as a dict; with ``recursive`` the rows in it too."""
        if len(self) != len(self.__fields__):
            raise TypeError("a Row without names is no dict")
        if not recursive:
            return dict(zip(self.__fields__, self))
        return {name: _plain(value) for name, value in zip(self.__fields__, self)}

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            try:
                return tuple.__getitem__(self, self.__fields__.index(key))
            except ValueError:
                raise KeyError(key) from None
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the row has no column `{name}`; it has {', '.join(self.__fields__) or 'no names'}")

    def __contains__(self, item: object) -> bool:
        return item in self.__fields__ if self.__fields__ else tuple.__contains__(self, item)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self.__fields__, tuple(self))

    def __repr__(self) -> str:
        if self.__fields__:
            return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self.__fields__, self))})"
        return f"<Row({', '.join(map(repr, self))})>"


_classes: dict[tuple[str, ...], type[Row]] = {}


def row_class(names: tuple[str, ...]) -> type[Row]:
    """The class of rows with these names."""
    known = _classes.get(names)
    if known is None:
        members: dict[str, Any] = {"__slots__": (), "__fields__": names}
        for position, name in reversed(list(enumerate(names))):
            # A method keeps its name, as in PySpark.
            if not hasattr(tuple, name) and name not in Row.__dict__:
                members[name] = _Position(position, f"column {name}")
        known = _classes[names] = type("Row", (Row,), members)
    return known


def _make(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return tuple.__new__(row_class(names) if names else Row, values)


def _plain(value: Any) -> Any:
    if isinstance(value, Row) and value.__fields__:
        return value.asDict(True)
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {key: _plain(element) for key, element in value.items()}
    return value
