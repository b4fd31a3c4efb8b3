//! JSON files that tell their version and notice damage: an object with `format` and, last, the `checksum` of the rest.
//!
//! Every version keeps these two fields and their meaning, so that an older program tells a newer file from a damaged
//! one.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

/// The version that is written, and the newest that is read.
pub(super) const FORMAT: u64 = 1;

/// Why bytes are not what [`seal`] made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Defect {
    Damaged(String),
    Newer(u64),
}

/// The bytes of the file, for a person to read as well. `content` must serialize to an object.
pub(super) fn seal(content: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut object = Map::new();
    object.insert("format".into(), FORMAT.into());
    if let Value::Object(content) = serde_json::to_value(content)? {
        object.extend(content);
    }
    let checksum = checksum(&object)?;
    object.insert("checksum".into(), checksum.into());
    let mut bytes = serde_json::to_vec_pretty(&object)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads what [`seal`] made.
pub(super) fn unseal<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Defect> {
    let damaged = |error: serde_json::Error| Defect::Damaged(format!("it does not parse: {error}"));
    let mut object: Map<String, Value> = serde_json::from_slice(bytes).map_err(damaged)?;
    let recorded = object.remove("checksum");
    if recorded != Some(Value::from(checksum(&object).map_err(damaged)?)) {
        return Err(Defect::Damaged("its checksum does not fit".into()));
    }
    match object.remove("format").and_then(|format| format.as_u64()) {
        Some(format) if format > FORMAT => Err(Defect::Newer(format)),
        _ => serde_json::from_value(Value::Object(object)).map_err(damaged),
    }
}

/// Does not depend on spaces or the order of fields.
pub(super) fn checksum(object: &Map<String, Value>) -> serde_json::Result<String> {
    let mut fields: Vec<_> = object.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    Ok(format!("{:016x}", xxh3_64(&serde_json::to_vec(&fields)?)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn content() -> BTreeMap<String, u64> {
        BTreeMap::from([("seed".into(), u64::MAX), ("groups".into(), 256)])
    }

    #[test]
    fn what_is_sealed_is_read_again() {
        assert_eq!(unseal(&seal(&content()).unwrap()), Ok(content()));
    }

    #[test]
    fn any_changed_byte_outside_of_spaces_is_noticed() {
        let sealed = seal(&content()).unwrap();
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            let read = unseal::<BTreeMap<String, u64>>(&damaged);
            assert!(
                read == Ok(content()) && sealed[at].is_ascii_whitespace() || matches!(read, Err(Defect::Damaged(_)))
            );
        }
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut object: Map<String, Value> = serde_json::from_slice(&seal(&content()).unwrap()).unwrap();
        object.remove("checksum");
        object.insert("format".into(), 2.into());
        object.insert("news".into(), "yes".into());
        let sum = checksum(&object).unwrap();
        object.insert("checksum".into(), sum.into());

        let read = unseal::<BTreeMap<String, u64>>(&serde_json::to_vec(&object).unwrap());

        assert_eq!(read, Err(Defect::Newer(2)));
    }
}
