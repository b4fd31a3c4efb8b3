"""Types of columns, with the names that PySpark gives them.

A schema is a ``StructType`` or its DDL, ``"user STRING NOT NULL, n BIGINT"``; :func:`schema_of` takes both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Union

from .errors import INVALID_SCHEMA, Fault


class DataType:
    """A type of a column. Two types are equal if their DDL is."""

    def simpleString(self) -> str:
        """The type as DDL writes it, in lower case."""
        return self.ddl().lower()

    def ddl(self) -> str:
        """The type as DDL writes it."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and self.ddl() == other.ddl()

    def __hash__(self) -> int:
        return hash(self.ddl())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Scalar(DataType):
    _DDL: str

    def ddl(self) -> str:
        return self._DDL


class BooleanType(_Scalar):
    """BOOLEAN: ``bool``."""

    _DDL = "BOOLEAN"


class ByteType(_Scalar):
    """TINYINT: ``int`` of 8 bits."""

    _DDL = "TINYINT"


class ShortType(_Scalar):
    """SMALLINT: ``int`` of 16 bits."""

    _DDL = "SMALLINT"


class IntegerType(_Scalar):
    """INT: ``int`` of 32 bits."""

    _DDL = "INT"


class LongType(_Scalar):
    """BIGINT: ``int`` of 64 bits."""

    _DDL = "BIGINT"


class FloatType(_Scalar):
    """FLOAT: ``float``, rounded to 32 bits when it is written."""

    _DDL = "FLOAT"


class DoubleType(_Scalar):
    """DOUBLE: ``float``."""

    _DDL = "DOUBLE"


class StringType(_Scalar):
    """STRING: ``str``."""

    _DDL = "STRING"


class BinaryType(_Scalar):
    """BINARY: ``bytes``; ``bytearray`` and ``memoryview`` are taken too."""

    _DDL = "BINARY"


class DateType(_Scalar):
    """DATE: ``datetime.date``."""

    _DDL = "DATE"


class TimestampType(_Scalar):
    """TIMESTAMP: ``datetime.datetime`` in UTC, with its time zone; one without is taken as UTC."""

    _DDL = "TIMESTAMP"


class DecimalType(DataType):
    """DECIMAL: ``decimal.Decimal`` of at most ``precision`` digits, ``scale`` of them behind the point."""

    def __init__(self, precision: int = 10, scale: int = 0) -> None:
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise Fault(INVALID_SCHEMA, f"DECIMAL({precision},{scale}): it has 1 to 38 digits, and no more behind the point")
        self.precision = precision
        self.scale = scale

    def ddl(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    def __repr__(self) -> str:
        return f"DecimalType({self.precision},{self.scale})"


class ArrayType(DataType):
    """ARRAY: ``list``; a ``tuple`` is taken too. Elements may be NULL, whatever ``containsNull`` says."""

    def __init__(self, elementType: DataType, containsNull: bool = True) -> None:
        self.elementType = elementType
        self.containsNull = containsNull

    def ddl(self) -> str:
        return f"ARRAY<{self.elementType.ddl()}>"

    def __repr__(self) -> str:
        return f"ArrayType({self.elementType!r})"


class MapType(DataType):
    """MAP: ``dict``. Keys that are arrays are tuples. Values may be NULL, whatever ``valueContainsNull`` says."""

    def __init__(self, keyType: DataType, valueType: DataType, valueContainsNull: bool = True) -> None:
        self.keyType = keyType
        self.valueType = valueType
        self.valueContainsNull = valueContainsNull

    def ddl(self) -> str:
        return f"MAP<{self.keyType.ddl()}, {self.valueType.ddl()}>"

    def __repr__(self) -> str:
        return f"MapType({self.keyType!r}, {self.valueType!r})"


class StructField:
    """A column: its name, its type, and whether it may be NULL."""

    def __init__(self, name: str, dataType: DataType, nullable: bool = True) -> None:
        if not isinstance(name, str):
            raise Fault(INVALID_SCHEMA, f"the name of a column is a str, not {name!r}")
        if not isinstance(dataType, DataType):
            raise Fault(INVALID_SCHEMA, f"column `{name}`: {dataType!r} is no type; write StringType(), not StringType")
        self.name = name
        self.dataType = dataType
        self.nullable = nullable

    def ddl(self, between: str = " ") -> str:
        """The column as DDL writes it."""
        return f"{quoted(self.name)}{between}{self.dataType.ddl()}{'' if self.nullable else ' NOT NULL'}"

    def __repr__(self) -> str:
        return f"StructField({self.name!r}, {self.dataType!r}, {self.nullable})"


class StructType(DataType):
    """Columns of a row, or a STRUCT: ``Row``; tuples, lists and dicts are taken too."""

    def __init__(self, fields: Sequence[StructField] | None = None) -> None:
        self.fields = list(fields or ())

    def add(self, field: str | StructField, data_type: DataType | str | None = None, nullable: bool = True) -> StructType:
        """Appends a column and answers the schema itself: ``StructType().add("n", LongType())``."""
        if isinstance(field, StructField):
            self.fields.append(field)
        elif data_type is None:
            raise Fault(INVALID_SCHEMA, f"column `{field}` has no type")
        elif isinstance(data_type, str):
            self.fields.append(StructField(field, schema_of(f"{quoted(field)} {data_type}").fields[0].dataType, nullable))
        else:
            self.fields.append(StructField(field, data_type, nullable))
        return self

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [field.name for field in self.fields]

    def fieldNames(self) -> list[str]:
        """The names of the columns, in order."""
        return self.names

    def columns(self) -> str:
        """The columns as DDL writes them: ``a INT, b STRING NOT NULL``."""
        return ", ".join(field.ddl() for field in self.fields)

    def ddl(self) -> str:
        return f"STRUCT<{', '.join(field.ddl(': ') for field in self.fields)}>"

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, key: int | str) -> StructField:
        if isinstance(key, str):
            return self.fields[self.names.index(key)]
        return self.fields[key]

    def __repr__(self) -> str:
        return f"StructType({self.fields!r})"


#: What is taken wherever a schema is asked for.
Schema = Union[StructType, str]


def schema_of(schema: Schema) -> StructType:
    """The schema that a ``StructType`` or a DDL text means."""
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        from .ddl import parse

        return parse(schema)
    raise Fault(INVALID_SCHEMA, f"a schema is a StructType or a DDL text such as \"n BIGINT\", not {schema!r}")


def quoted(name: str) -> str:
    """A name as DDL takes it: bare where it is a plain identifier, else in backquotes."""
    if name.isascii() and name.isidentifier():
        return name
    return "`" + name.replace("`", "``") + "`"
