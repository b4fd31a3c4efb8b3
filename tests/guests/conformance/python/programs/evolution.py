"""A variable whose kind and schema the parameters give, so that they can change over a restart: what was there is
emitted, then a row is written.

`kind` is `v`, `l`, `m` or `none`; `schema` names the row type, `val` and `text` what is written; `name` and `ttl_ms` are
the variable's; `map_key` is `k`, `kl` or `int` and names the type of a map's key; `also` is the kind of a second variable
with the same schema, `extra` names a further one, `drop` one to delete.
"""

from tidemill import Error, StatefulProcessor
from tidemill.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from .printed import printed

NESTED_A = StructType([StructField("a", IntegerType())])
NESTED_AB = StructType([StructField("a", IntegerType()), StructField("b", StringType())])

# Row types, and what is written of `val` and `text`. Some say it in DDL, some as PySpark's types.
SCHEMAS = {
    "xy": ("x INT, y STRING", lambda val, text: (val, text)),
    "xyz": ("x INT, y STRING, z BIGINT", lambda val, text: (val, text, val + 1)),
    "zxy": ("z BIGINT, x INT, y STRING", lambda val, text: (val + 1, val, text)),
    "x": ("x INT", lambda val, text: (val,)),
    "y": ("y STRING", lambda val, text: (text,)),
    "xyy": ("x INT, yy STRING", lambda val, text: (val, text)),
    "yx": ("y STRING, x INT", lambda val, text: (text, val)),
    "long xy": ("x BIGINT, y STRING", lambda val, text: (val, text)),
    "double xy": ("x DOUBLE, y STRING", lambda val, text: (val + 0.5, text)),
    "string xy": ("x STRING, y STRING", lambda val, text: (str(val), text)),
    "nested a": (
        StructType([StructField("x", IntegerType()), StructField("n", NESTED_A)]),
        lambda val, text: (val, (val,)),
    ),
    "nested ab": (
        StructType([StructField("x", IntegerType()), StructField("n", NESTED_AB)]),
        lambda val, text: (val, (val, "q")),
    ),
    "ints": (StructType([StructField("x", ArrayType(IntegerType()))]), lambda val, text: ([val],)),
    "longs": (StructType([StructField("x", ArrayType(LongType()))]), lambda val, text: ([val],)),
}

# Types of a map's key, and the only key.
MAP_KEYS = {
    "k": ("k STRING", ("k",)),
    "kl": ("k STRING, k2 STRING", ("k", "l")),
    "int": ("k INT", (5,)),
}


class Evolution(StatefulProcessor):
    def init(self, handle):
        told = handle.parameters
        if told.get("drop"):
            handle.deleteIfExists(told["drop"])
        self.variables = []
        schema = told.get("schema", "")
        if schema:
            if schema not in SCHEMAS:
                raise Error("NO_SUCH_SCHEMA", schema)
            wanted = {told.get("name", "v"): told.get("kind", "v"), "also": told.get("also", "")}
            self.variables = [declare(handle, name, kind) for name, kind in wanted.items() if kind]
        self.extra = handle.getValueState(told["extra"], "n BIGINT") if "extra" in told else None

    def handleInputRows(self, key, rows, timerValues):
        rows = list(rows)
        if not self.variables:
            yield key[0], "got", "-"
            return
        for read, write in self.variables:
            got = read()
            # A row with the op `look` writes nothing.
            if any(row.op != "look" for row in rows):
                write()
            yield key[0], "got", printed(got)
        if self.extra:
            extra = self.extra.get()
            if extra:
                yield key[0], "extra", printed(extra.n)
            self.extra.update((1,))


def declare(handle, name, kind):
    """Makes a variable, and answers what reads it and what writes to it."""
    told = handle.parameters
    schema, row_of = SCHEMAS[told["schema"]]
    row = row_of(int(told.get("val", "1")), told.get("text", ""))
    ttl_ms = int(told.get("ttl_ms", "0"))
    if kind == "v":
        value = handle.getValueState(name, schema, ttl_ms)
        return value.get, lambda: value.update(row)
    if kind == "l":
        elements = handle.getListState(name, schema, ttl_ms)
        return lambda: list(elements.get()), lambda: elements.appendValue(row)
    map_key = told.get("map_key", "k")
    if kind == "m" and map_key in MAP_KEYS:
        key_schema, key = MAP_KEYS[map_key]
        entries = handle.getMapState(name, key_schema, schema, ttl_ms)
        return lambda: list(entries.iterator()), lambda: entries.updateValue(key, row)
    raise Error("NO_SUCH_KIND", kind)
