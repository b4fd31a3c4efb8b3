"""State of the grouping key in hand: a value, a list, a map."""

from .list import ListState
from .map import MapState
from .value import ValueState, value_state

__all__ = ["ListState", "MapState", "ValueState", "value_state"]
