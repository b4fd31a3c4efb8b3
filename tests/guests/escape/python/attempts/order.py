"""What depends on hashing, addresses and the collection of garbage."""

import gc
import sys
import traceback
import weakref


class Thing:
    pass


def of_objects(count):
    """In which order a set has objects that were made one after another."""
    things = [Thing() for _ in range(count)]
    return [things.index(thing) for thing in set(things)]


def collected():
    """Whether a cycle is gone after a collection, and in which order its parts went."""
    gone = []
    first, second = Thing(), Thing()
    first.other, second.other = second, first
    weakref.finalize(first, gone.append, "first")
    weakref.finalize(second, gone.append, "second")
    del first, second
    return gc.collect() > 0, gone


def frames():
    return [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_stack()][-2:]


ATTEMPTS = {
    "order: of a set": lambda: " ".join({str(number) for number in range(20)}),
    "order: of a set of objects": lambda: of_objects(9),
    "order: of a dict": lambda: " ".join({str(number): number for number in range(20)}),
    "order: hash of a text": lambda: hash("x"),
    "order: hash of an object": lambda: hash(Thing()),
    "order: hash of None": lambda: hash(None),
    "order: address of an object": lambda: id(Thing()),
    "order: an object in words": lambda: repr(Thing()),
    "order: finalizers": collected,
    "order: a weak reference": lambda: weakref.ref(Thing())(),
    "order: objects there are": lambda: len(gc.get_objects()),
    "order: counts of the collector": lambda: gc.get_count(),
    "order: statistics of the collector": lambda: gc.get_stats(),
    "order: blocks of memory": lambda: sys.getallocatedblocks(),
    "order: modules": lambda: len(sys.modules),
    "order: frames": frames,
}
