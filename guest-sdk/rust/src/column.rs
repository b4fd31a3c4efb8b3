//! Rust types as columns, and those among them that are rows of one column or of several (tuples).

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use crate::codec::{RowReader, RowWriter, Zero, malformed, map_order};
use crate::error::{Error, Result, code};
use crate::row::{Column, ColumnSchema, Row, nested, nested_row};
use crate::types::{Binary, Date, Decimal, Timestamp};

/// The one NaN of packed rows.
const NAN: u64 = 0x7ff8_0000_0000_0000;
/// Digits of the largest decimals whose unscaled value fits a slot.
const SLOT_DECIMAL_DIGITS: u8 = 18;

impl Column for bool {
    fn data_type(_: usize) -> Result<String> {
        Ok("BOOLEAN".to_owned())
    }

    #[inline]
    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        Ok(row.slot(column)? != 0)
    }

    #[inline]
    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        row.set_slot(column, u64::from(*self));
        Ok(())
    }
}

macro_rules! integer_column {
    ($($type:ty => $ddl:literal),*) => {$(
        impl Column for $type {
            fn data_type(_: usize) -> Result<String> {
                Ok($ddl.to_owned())
            }

            #[inline]
            fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
                <$type>::try_from(row.slot(column)?.cast_signed()).map_err(|_| malformed())
            }

            #[inline]
            fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
                row.set_slot(column, i64::from(*self).cast_unsigned());
                Ok(())
            }
        }
    )*};
}
integer_column!(i8 => "TINYINT", i16 => "SMALLINT", i32 => "INT", i64 => "BIGINT");

impl Column for f64 {
    fn data_type(_: usize) -> Result<String> {
        Ok("DOUBLE".to_owned())
    }

    #[inline]
    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        Ok(f64::from_bits(row.slot(column)?))
    }

    #[inline]
    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        let bits = if self.is_nan() {
            NAN
        } else if *self == 0.0 && row.zero() == Zero::Unsigned {
            0
        } else {
            self.to_bits()
        };
        row.set_slot(column, bits);
        Ok(())
    }
}

impl Column for f32 {
    fn data_type(_: usize) -> Result<String> {
        Ok("FLOAT".to_owned())
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the slot of a float holds a double that 32 bits represent exactly"
    )]
    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        Ok(f64::from_bits(row.slot(column)?) as f32)
    }

    #[inline]
    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        f64::from(*self).write(row, column)
    }
}

impl Column for String {
    fn data_type(_: usize) -> Result<String> {
        Ok("STRING".to_owned())
    }

    #[inline]
    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        std::str::from_utf8(row.part(column)?).map(str::to_owned).map_err(|_| malformed())
    }

    #[inline]
    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        row.put_bytes(column, self.as_bytes())
    }
}

impl Column for Binary {
    fn data_type(_: usize) -> Result<String> {
        Ok("BINARY".to_owned())
    }

    #[inline]
    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        Ok(Self(row.part(column)?.to_vec()))
    }

    #[inline]
    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        row.put_bytes(column, &self.0)
    }
}

impl Column for Date {
    fn data_type(_: usize) -> Result<String> {
        Ok("DATE".to_owned())
    }

    #[inline]
    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        Ok(Self { days: i32::read(row, column)? })
    }

    #[inline]
    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        self.days.write(row, column)
    }
}

impl Column for Timestamp {
    fn data_type(_: usize) -> Result<String> {
        Ok("TIMESTAMP".to_owned())
    }

    #[inline]
    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        Ok(Self { micros: i64::read(row, column)? })
    }

    #[inline]
    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        self.micros.write(row, column)
    }
}

impl<const P: u8, const S: u8> Column for Decimal<P, S> {
    fn data_type(_: usize) -> Result<String> {
        Ok(format!("DECIMAL({P},{S})"))
    }

    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        if P <= SLOT_DECIMAL_DIGITS {
            return Self::from_unscaled(i128::from(row.slot(column)?.cast_signed()));
        }
        let part = row.part(column)?;
        let negative = part.first().ok_or_else(malformed)? >> 7 == 1;
        let mut bytes = [if negative { 0xff } else { 0 }; 16];
        let start = bytes.len().checked_sub(part.len()).ok_or_else(malformed)?;
        bytes.get_mut(start..).ok_or_else(malformed)?.copy_from_slice(part);
        Self::from_unscaled(i128::from_be_bytes(bytes))
    }

    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        let unscaled = self.unscaled();
        if P <= SLOT_DECIMAL_DIGITS {
            let slot = i64::try_from(unscaled).map_err(|_| malformed())?;
            row.set_slot(column, slot.cast_unsigned());
            return Ok(());
        }
        // The least length whose first bit is the sign.
        let sign_bits = if unscaled < 0 { unscaled.leading_ones() } else { unscaled.leading_zeros() };
        let spare = (sign_bits as usize - 1) / 8;
        row.put_bytes(column, unscaled.to_be_bytes().get(spare..).ok_or_else(malformed)?)
    }
}

impl<T: Column> Column for Option<T> {
    const NULLABLE: bool = true;

    fn data_type(depth: usize) -> Result<String> {
        T::data_type(depth)
    }

    #[inline]
    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        if row.is_null(column) { Ok(None) } else { T::read(row, column).map(Some) }
    }

    #[inline]
    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        match self {
            Some(value) => value.write(row, column),
            None => {
                row.set_null(column);
                Ok(())
            }
        }
    }
}

impl<T: Column> Column for Vec<T> {
    fn data_type(depth: usize) -> Result<String> {
        Ok(format!("ARRAY<{}>", T::data_type(nested(depth)?)?))
    }

    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        let (elements, count) = row.array(column)?;
        (0..count).map(|element| T::read(elements, element)).collect()
    }

    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        row.put_array(column, self.len(), |elements| write_all(elements, self.iter()))
    }
}

impl<K: Column + Ord, V: Column> Column for BTreeMap<K, V> {
    fn data_type(depth: usize) -> Result<String> {
        map_type::<K, V>(depth)
    }

    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        read_map(row, column)
    }

    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        write_map(row, column, self.iter())
    }
}

impl<K: Column + Eq + Hash, V: Column, S: BuildHasher + Default> Column for HashMap<K, V, S> {
    fn data_type(depth: usize) -> Result<String> {
        map_type::<K, V>(depth)
    }

    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        read_map(row, column)
    }

    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        write_map(row, column, self.iter())
    }
}

fn map_type<K: Column, V: Column>(depth: usize) -> Result<String> {
    if K::NULLABLE {
        return Err(Error::new(code::SCHEMA_MISMATCH, "the key of a MAP cannot be an `Option`: it is never NULL"));
    }
    let depth = nested(depth)?;
    Ok(format!("MAP<{}, {}>", K::data_type(depth)?, V::data_type(depth)?))
}

fn read_map<K: Column, V: Column, M: FromIterator<(K, V)>>(row: RowReader<'_>, column: usize) -> Result<M> {
    let (keys, values, count) = row.map(column)?;
    (0..count).map(|entry| Ok((K::read(keys, entry)?, V::read(values, entry)?))).collect()
}

fn write_map<'a, K, V>(
    row: &mut RowWriter<'_>,
    column: usize,
    entries: impl Iterator<Item = (&'a K, &'a V)>,
) -> Result<()>
where
    K: Column + 'a,
    V: Column + 'a,
{
    let mut ordered = entries
        .map(|(key, value)| {
            let mut bytes = Vec::new();
            map_order(&mut bytes, |row| key.write(row, 0))?;
            Ok((bytes, key, value))
        })
        .collect::<Result<Vec<_>>>()?;
    ordered.sort_unstable_by(|(left, ..), (right, ..)| left.cmp(right));
    row.put_map(
        column,
        ordered.len(),
        |keys| write_all(keys, ordered.iter().map(|(_, key, _)| *key)),
        |values| write_all(values, ordered.iter().map(|(.., value)| *value)),
    )
}

fn write_all<'a, T: Column + 'a>(row: &mut RowWriter<'_>, values: impl Iterator<Item = &'a T>) -> Result<()> {
    values.enumerate().try_for_each(|(at, value)| value.write(row, at))
}

/// The column's name of a row that is a primitive.
const VALUE: &str = "value";

macro_rules! one_column_row {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> Row for $type {
            const COLUMNS: usize = 1;
            const NAMED: bool = false;

            fn columns(depth: usize) -> Result<Vec<ColumnSchema>> {
                Ok(vec![ColumnSchema::of::<Self>(VALUE, depth)?])
            }

            #[inline]
            fn read_row(row: RowReader<'_>) -> Result<Self> {
                Self::read(row, 0)
            }

            #[inline]
            fn write_row(&self, row: &mut RowWriter<'_>) -> Result<()> {
                self.write(row, 0)
            }
        }
    )*};
}
one_column_row!(
    [] bool, [] i8, [] i16, [] i32, [] i64, [] f32, [] f64, [] String, [] Binary, [] Date, [] Timestamp,
    [const P: u8, const S: u8] Decimal<P, S>,
    [T: Column] Option<T>,
    [T: Column] Vec<T>,
    [K: Column + Ord, V: Column] BTreeMap<K, V>,
    [K: Column + Eq + Hash, V: Column, S: BuildHasher + Default] HashMap<K, V, S>,
);

macro_rules! tuple_row {
    ($count:literal: $($type:ident $field:tt $name:literal),*) => {
        impl<$($type: Column),*> Row for ($($type,)*) {
            const COLUMNS: usize = $count;
            const NAMED: bool = false;

            fn columns(depth: usize) -> Result<Vec<ColumnSchema>> {
                Ok(vec![$(ColumnSchema::of::<$type>($name, depth)?),*])
            }

            #[inline]
            fn read_row(row: RowReader<'_>) -> Result<Self> {
                Ok(($($type::read(row, $field).map_err(|error| error.at($name))?,)*))
            }

            #[inline]
            fn write_row(&self, row: &mut RowWriter<'_>) -> Result<()> {
                $(self.$field.write(row, $field)?;)*
                Ok(())
            }
        }

        impl<$($type: Column),*> Column for ($($type,)*) {
            fn data_type(depth: usize) -> Result<String> {
                nested_row::data_type::<Self>(depth)
            }

            #[inline]
            fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
                nested_row::read(row, column)
            }

            #[inline]
            fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
                nested_row::write(self, row, column)
            }
        }
    };
}
/// No columns: for a processor that counts rows and reads none of them.
impl Row for () {
    const COLUMNS: usize = 0;
    // There is nothing to take a name for.
    const NAMED: bool = true;

    fn columns(_: usize) -> Result<Vec<ColumnSchema>> {
        Ok(Vec::new())
    }

    #[inline]
    fn read_row(_: RowReader<'_>) -> Result<Self> {
        Ok(())
    }

    #[inline]
    fn write_row(&self, _: &mut RowWriter<'_>) -> Result<()> {
        Ok(())
    }
}

impl Column for () {
    fn data_type(depth: usize) -> Result<String> {
        nested_row::data_type::<Self>(depth)
    }

    fn read(row: RowReader<'_>, column: usize) -> Result<Self> {
        nested_row::read(row, column)
    }

    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        nested_row::write(self, row, column)
    }
}

tuple_row!(1: A 0 "_1");
tuple_row!(2: A 0 "_1", B 1 "_2");
tuple_row!(3: A 0 "_1", B 1 "_2", C 2 "_3");
tuple_row!(4: A 0 "_1", B 1 "_2", C 2 "_3", D 3 "_4");
tuple_row!(5: A 0 "_1", B 1 "_2", C 2 "_3", D 3 "_4", E 4 "_5");
tuple_row!(6: A 0 "_1", B 1 "_2", C 2 "_3", D 3 "_4", E 4 "_5", F 5 "_6");
