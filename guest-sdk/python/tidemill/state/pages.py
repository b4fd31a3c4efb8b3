"""Rows of a list or a map, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..host import Host
from ..session import LENGTH


def rows(host: Host, page: tuple[bytes, int | None], decode: Callable[[bytes, int], Any]) -> Iterator[Any]:
    """The rows of a page and of those behind it."""
    packed, rest = page
    while True:
        at, end = 0, len(packed)
        while at < end:
            length = LENGTH.unpack_from(packed, at)[0]
            yield decode(packed, at + LENGTH.size)
            at += LENGTH.size + length
        if rest is None:
            return
        packed, rest = host.next_page(rest)


def entries(
    host: Host,
    page: tuple[bytes, int | None],
    decode_key: Callable[[bytes, int], Any],
    decode_value: Callable[[bytes, int], Any],
) -> Iterator[tuple[Any, Any]]:
    """The entries of a page and of those behind it; a page holds whole entries."""
    packed, rest = page
    while True:
        at, end = 0, len(packed)
        while at < end:
            key_at = at + LENGTH.size
            value_at = key_at + LENGTH.unpack_from(packed, at)[0] + LENGTH.size
            yield decode_key(packed, key_at), decode_value(packed, value_at)
            at = value_at + LENGTH.unpack_from(packed, value_at - LENGTH.size)[0]
        if rest is None:
            return
        packed, rest = host.next_page(rest)
