"""One module per program. All emit rows of a key, what happened, and what came of it as Python prints it."""

from .crud import Crud
from .dynamic import Dynamic
from .event import EventTime
from .evolution import Evolution
from .initial import WithInitialState
from .iterators import Iterators
from .keys import Keys
from .misuse import Misuse
from .restart import Restart
from .timers import ProcessingTime
from .ttl import Ttl

PROGRAMS = {
    "crud": Crud,
    "ttl": Ttl,
    "timers": ProcessingTime,
    "dynamic": Dynamic,
    "event": EventTime,
    "initial": WithInitialState,
    "iterators": Iterators,
    "keys": Keys,
    "misuse": Misuse,
    "evolution": Evolution,
    "restart": Restart,
}
