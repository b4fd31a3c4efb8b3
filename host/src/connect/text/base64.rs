//! Bytes as text: standard base64 with padding (RFC 4648, section 4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the text of some bytes.
pub fn encode(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sextet = (bits >> (18 - 6 * place)) & 63;
            let letter = if place > chunk.len() { b'=' } else { ALPHABET.get(sextet as usize).copied().unwrap_or(b'=') };
            out.push(char::from(letter));
        }
    }
}

/// The bytes of a text. None: it is no base64, or not in its one canonical form.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|letter| **letter == b'=').count();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for (index, letters) in text.chunks(4).enumerate() {
        let padding = if (index + 1) * 4 == text.len() { padding } else { 0 };
        let mut bits = 0_u32;
        for letter in letters.iter().take(4 - padding) {
            bits = bits << 6 | sextet(*letter)?;
        }
        bits <<= 6 * padding;
        let [_, triple @ ..] = bits.to_be_bytes();
        let (kept, cut) = triple.split_at(3 - padding);
        if cut.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

fn sextet(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_texts() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            let mut encoded = String::new();
            encode(bytes.as_bytes(), &mut encoded);
            assert_eq!(encoded, text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        for text in ["Zg", "Zg=", "Zh==", "=Zg=", "Zg==Zg==", "Z===", "Z-8="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut text = String::new();
            encode(&bytes, &mut text);
            prop_assert_eq!(decode(&text), Some(bytes));
        }
    }
}
