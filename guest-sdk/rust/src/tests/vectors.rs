//! The packed rows of `wit/vectors`: every case, in both directions, as the type that an author would write.
//!
//! `also` and `invalid` are left out: the first is about JSON, the second about what a host refuses and never sends.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use serde_json::Value;
use tidemill::row::{ColumnSchema, from_packed, key_to_packed, to_packed};
use tidemill::{Binary, Column, Date, Decimal, Result, Row, Timestamp};

const VECTORS: &str = include_str!("../../../../wit/vectors/packed-rows.json");

/// How a row is packed: as it is, or with one zero, as keys are.
type Pack<T> = fn(&T, &mut Vec<u8>) -> Result<()>;

fn check(case: &Value) {
    let name = case["name"].as_str().unwrap();
    match name {
        "no columns" => row::<()>(case),
        "boolean" => row::<(bool, bool)>(case),
        "tinyint" => row::<(i8, i8, i8)>(case),
        "smallint" => row::<(i16, i16)>(case),
        "int" => row::<(i32, i32, i32)>(case),
        "bigint" => row::<(i64, i64, i64)>(case),
        "float" => row::<(f32, f32, f32, f32)>(case),
        "float, not finite" => row::<(f32, f32, f32)>(case),
        "double" => row::<(f64, f64, f64, f64)>(case),
        "double, not finite" => row::<(f64, f64, f64)>(case),
        "decimal in the slot" => row::<(Decimal<18, 2>, Decimal<18, 0>, Decimal<3, 3>)>(case),
        "decimal, fewer digits after the point" => row::<(Decimal<10, 2>,)>(case),
        "decimal of 19 digits, zero" => row::<(Decimal<19, 0>, Decimal<19, 4>)>(case),
        "decimal, least length" => row::<(Wide, Wide, Wide, Wide, Wide)>(case),
        "decimal of 38 digits" => row::<(Wide, Decimal<38, 38>, Decimal<38, 10>)>(case),
        "string" | "string, empty" => row::<(String, String, String)>(case),
        "string, not ASCII" | "string, a zero byte" => row::<(String,)>(case),
        "binary" => row::<(Binary, Binary)>(case),
        "date" => row::<(Date, Date, Date, Date)>(case),
        "timestamp" => row::<(Timestamp, Timestamp, Timestamp)>(case),
        "timestamp, with an offset" => row::<(Timestamp,)>(case),
        "nulls" => row::<(Option<i32>, Option<String>, f64, Option<String>)>(case),
        "null between parts" => row::<(Option<String>, Option<String>, Option<String>)>(case),
        "all null" => {
            row::<(Option<i32>, Option<String>, Option<Vec<Option<i32>>>, Option<Map<Option<i32>>>, Option<X>)>(case)
        }
        "NULL is not the empty string" => row::<(Option<String>, Option<String>)>(case),
        "64 columns" => row::<Columns<i32, 64>>(case),
        "65 columns" => row::<Columns<i32, 65>>(case),
        "130 columns" => row::<Columns<String, 130>>(case),
        "quoted names" => row::<Quoted>(case),
        "array" => row::<(Vec<Option<i32>>,)>(case),
        "array, empty" => row::<(Vec<String>, String)>(case),
        "array of strings" => row::<(Vec<Option<String>>,)>(case),
        "array of 65" => row::<(Vec<Option<i64>>,)>(case),
        "array of arrays" => row::<(Vec<Option<Vec<Option<f64>>>>,)>(case),
        "struct" => row::<(Xy, i32)>(case),
        "struct without fields" => row::<((), String)>(case),
        "struct in a struct" => row::<(OuterB,)>(case),
        "array of structs" => row::<(Vec<Option<Tagged>>,)>(case),
        "map, string keys: shorter first" => {
            row::<(Map<Option<i32>>,)>(case);
            // It prints in any order, so it is only packed.
            packed_as::<(HashMap<String, Option<i32>>,)>(case, to_packed);
        }
        "map, empty" | "map, the empty string as a key" => row::<(Map<String>,)>(case),
        "map, integer keys: by the first byte" => row::<(BTreeMap<i32, String>,)>(case),
        "map, -0.0 as a key" => row::<(BTreeMap<Double, Double>,)>(case),
        "map, keys are structs" => row::<(BTreeMap<XyKey, i32>,)>(case),
        "map, keys are arrays" => row::<(BTreeMap<Vec<i32>, i32>,)>(case),
        "map, keys are large decimals" => row::<(BTreeMap<Decimal<20, 0>, Option<bool>>,)>(case),
        "map in a map's value" => row::<(Map<Option<Map<Decimal<20, 1>>>>,)>(case),
        "everything at once" => row::<Everything>(case),
        _ => panic!("the case {name:?} has no type here: add one"),
    }
}

fn check_key(case: &Value) {
    match case["name"].as_str().unwrap() {
        "negative zero" => packed_as::<(f64, f32, String)>(case, key_to_packed),
        "negative zero, nested" => packed_as::<(XArray,)>(case, key_to_packed),
        "NULL" => packed_as::<(Option<String>, i32)>(case, key_to_packed),
        name => panic!("the case {name:?} has no type here: add one"),
    }
}

#[test]
fn rows_are_packed_as_the_vectors_say() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let cases = vectors["valid"].as_array().unwrap();
    assert!(cases.len() >= 50);
    cases.iter().for_each(check);
}

#[test]
fn keys_are_packed_with_one_zero() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    vectors["keys"].as_array().unwrap().iter().for_each(check_key);
}

/// The row of a case packs to its bytes, and is read back from them.
fn row<T: FromJsonRow>(case: &Value) {
    packed_as::<T>(case, to_packed);
    let read: T = from_packed(&bytes(case)).unwrap();
    assert_eq!(format!("{read:?}"), format!("{:?}", T::from_json_row(&case["row"])), "{}", case["name"]);
}

fn packed_as<T: FromJsonRow>(case: &Value, pack: Pack<T>) {
    let mut packed = Vec::new();
    pack(&T::from_json_row(&case["row"]), &mut packed).unwrap();
    assert_eq!(hex(&packed), case["hex"].as_str().unwrap(), "{}", case["name"]);
}

fn bytes(case: &Value) -> Vec<u8> {
    let hex = case["hex"].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// --- types of the cases

type Wide = Decimal<38, 0>;
type Map<V> = BTreeMap<String, V>;

/// So many columns, all of one type.
#[derive(Debug)]
struct Columns<T, const N: usize>(Vec<Option<T>>);

impl<T: Column, const N: usize> Row for Columns<T, N> {
    const COLUMNS: usize = N;
    const NAMED: bool = false;

    fn columns(depth: usize) -> Result<Vec<ColumnSchema>> {
        (0..N).map(|at| ColumnSchema::of::<Option<T>>(&format!("c{at}"), depth)).collect()
    }

    fn read_row(row: tidemill::codec::RowReader<'_>) -> Result<Self> {
        Ok(Self((0..N).map(|at| Column::read(row, at)).collect::<Result<_>>()?))
    }

    fn write_row(&self, row: &mut tidemill::codec::RowWriter<'_>) -> Result<()> {
        self.0.iter().enumerate().try_for_each(|(at, value)| value.write(row, at))
    }
}

/// A double that can be the key of a map in Rust.
#[derive(Debug)]
struct Double(f64);

impl Column for Double {
    fn data_type(depth: usize) -> Result<String> {
        f64::data_type(depth)
    }

    fn read(row: tidemill::codec::RowReader<'_>, column: usize) -> Result<Self> {
        f64::read(row, column).map(Self)
    }

    fn write(&self, row: &mut tidemill::codec::RowWriter<'_>, column: usize) -> Result<()> {
        self.0.write(row, column)
    }
}

impl Ord for Double {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Double {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Double {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Double {}

macro_rules! structs {
    ($($(#[$attribute:meta])* struct $name:ident { $($(#[$field_attribute:meta])* $field:ident ($column:literal): $type:ty),* $(,)? })*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Row)]
        struct $name { $(#[row(rename = $column)] $field: $type),* }

        impl FromJson for $name {
            fn from_json(value: &Value) -> Self {
                Self { $($field: FromJson::from_json(&value[$column])),* }
            }
        }

        impl FromJsonRow for $name {
            fn from_json_row(row: &Value) -> Self {
                Self::from_json(row)
            }
        }
    )*};
}

structs! {
    struct X { x("x"): Option<i32> }
    struct Xy { x("x"): i32, y("y"): Option<String> }
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct XyKey { x("x"): Option<String>, y("y"): Option<Double> }
    struct XArray { x("x"): Vec<f64> }
    struct OuterB { b("b"): MiddleC }
    struct MiddleC { c("c"): InnerD }
    struct InnerD { d("d"): String }
    struct Tagged { x("x"): Option<i64>, tags("tags"): Vec<String> }
    struct Quoted { a("a b"): i32, c("c`d"): i32, e("é"): String, nameless(""): i32 }
    struct Everything {
        id("id"): String,
        n("n"): Option<i64>,
        price("price"): Option<Decimal<12, 2>>,
        big("big"): Option<Decimal<30, 5>>,
        day("day"): Option<Date>,
        at("at"): Timestamp,
        tags("tags"): Option<Vec<Option<String>>>,
        counts("counts"): Option<BTreeMap<String, Option<i64>>>,
        place("place"): Option<Place>,
        raw("raw"): Option<Binary>,
        ok("ok"): Option<bool>,
    }
    struct Place { lat("lat"): Option<f64>, lon("lon"): Option<f64>, names("names"): Option<Vec<Option<Name>>> }
    struct Name { lang("lang"): Option<String>, name("name"): Option<String> }
}

// --- values from the vectors' JSON

trait FromJsonRow: Row + Debug {
    fn from_json_row(row: &Value) -> Self;
}

trait FromJson {
    fn from_json(value: &Value) -> Self;
}

macro_rules! tuples {
    ($(($($type:ident $at:tt),*))*) => {$(
        impl<$($type: FromJson + Column + Debug),*> FromJsonRow for ($($type,)*) {
            fn from_json_row(row: &Value) -> Self {
                // The file keeps the order of the columns.
                let values: Vec<&Value> = row.as_object().unwrap().values().collect();
                ($($type::from_json(values[$at]),)*)
            }
        }
    )*};
}
tuples!((A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) (A 0, B 1, C 2, D 3, E 4));

impl FromJsonRow for () {
    fn from_json_row(_: &Value) -> Self {}
}

impl FromJson for () {
    fn from_json(_: &Value) -> Self {}
}

impl<T: FromJson + Column + Debug, const N: usize> FromJsonRow for Columns<T, N> {
    fn from_json_row(row: &Value) -> Self {
        Self(row.as_object().unwrap().values().map(FromJson::from_json).collect())
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl FromJson for $type {
            fn from_json(value: &Value) -> Self {
                value.as_i64().unwrap().try_into().unwrap()
            }
        }
    )*};
}
integers!(i8, i16, i32, i64);

impl FromJson for bool {
    fn from_json(value: &Value) -> Self {
        value.as_bool().unwrap()
    }
}

impl FromJson for f64 {
    fn from_json(value: &Value) -> Self {
        value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
    }
}

impl FromJson for f32 {
    fn from_json(value: &Value) -> Self {
        f64::from_json(value) as Self
    }
}

impl FromJson for Double {
    fn from_json(value: &Value) -> Self {
        Self(f64::from_json(value))
    }
}

impl FromJson for String {
    fn from_json(value: &Value) -> Self {
        value.as_str().unwrap().to_owned()
    }
}

impl<const P: u8, const S: u8> FromJson for Decimal<P, S> {
    fn from_json(value: &Value) -> Self {
        value.as_str().unwrap().parse().unwrap()
    }
}

impl FromJson for Binary {
    fn from_json(value: &Value) -> Self {
        let digit = |c: u8| match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let digits: Vec<u8> = value.as_str().unwrap().bytes().filter(|c| *c != b'=').map(digit).collect();
        let bits: Vec<u8> = digits.iter().flat_map(|digit| (0..6).rev().map(move |bit| digit >> bit & 1)).collect();
        Self(bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | bit)).collect())
    }
}

impl FromJson for Date {
    fn from_json(value: &Value) -> Self {
        let text = value.as_str().unwrap();
        // Printing is tested on its own, so look for the day that prints so.
        let year: i64 = text[..4].parse().unwrap();
        let near = (year - 1970) * 365;
        let days = (near - 3000..near + 3000).map(|days| Self { days: days as i32 });
        days.into_iter().find(|day| day.to_string() == text).unwrap()
    }
}

impl FromJson for Timestamp {
    fn from_json(value: &Value) -> Self {
        let (day, time) = value.as_str().unwrap().trim_end_matches('Z').split_once('T').unwrap();
        let days = i64::from(Date::from_json(&Value::from(day)).days);
        let (time, micros) = time.split_once('.').unwrap();
        let seconds = time.split(':').fold(0, |seconds, part| seconds * 60 + part.parse::<i64>().unwrap());
        Self { micros: (days * 86_400 + seconds) * 1_000_000 + micros.parse::<i64>().unwrap() }
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_json(value: &Value) -> Self {
        if value.is_null() { None } else { Some(T::from_json(value)) }
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(value: &Value) -> Self {
        value.as_array().unwrap().iter().map(T::from_json).collect()
    }
}

impl<K: FromJson + Ord, V: FromJson> FromJson for BTreeMap<K, V> {
    fn from_json(value: &Value) -> Self {
        entries(value).into_iter().map(|(key, value)| (K::from_json(&key), V::from_json(&value))).collect()
    }
}

impl FromJson for HashMap<String, Option<i32>> {
    fn from_json(value: &Value) -> Self {
        BTreeMap::<String, Option<i32>>::from_json(value).into_iter().collect()
    }
}

fn entries(value: &Value) -> Vec<(Value, Value)> {
    match value {
        Value::Object(object) => object.iter().map(|(key, value)| (Value::from(key.as_str()), value.clone())).collect(),
        _ => value.as_array().unwrap().iter().map(|entry| (entry[0].clone(), entry[1].clone())).collect(),
    }
}
