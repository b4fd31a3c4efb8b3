//! Random numbers that are the same in every run: SHA-256 over a key and a counter.
//!
//! The key comes from the query's seed and the place in the query, so a replay sees the same numbers, and batches, steps
//! and workers see different ones. Whoever does not know the seed cannot foretell them.

use std::convert::Infallible;

use rand_core::TryRng;
use sha2::{Digest, Sha256};

/// What a stream of random numbers belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) query_seed: u64,
    pub(super) batch_id: u64,
    pub(super) step: u8,
    /// First key group of the worker.
    pub(super) key_group: u16,
}

impl Place {
    /// A seed for guests that bring a generator of their own.
    pub(super) fn seed(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.key("seed");
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// The stream of this name.
    pub(super) fn stream(&self, name: &str) -> Stream {
        Stream { key: self.key(name), block: [0; 32], counter: 0, used: 32 }
    }

    fn key(&self, name: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"tidemill random 1\0");
        hash.update(self.query_seed.to_le_bytes());
        hash.update(self.batch_id.to_le_bytes());
        hash.update([self.step]);
        hash.update(self.key_group.to_le_bytes());
        hash.update(name.as_bytes());
        hash.finalize().into()
    }
}

/// A generator for WASI.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    key: [u8; 32],
    block: [u8; 32],
    counter: u64,
    /// Bytes of the block that have been handed out.
    used: usize,
}

impl Stream {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            let next = match self.block.get(self.used) {
                Some(next) => *next,
                None => self.next_block(),
            };
            self.used += 1;
            *byte = next;
        }
    }

    /// Makes the next block and answers its first byte.
    fn next_block(&mut self) -> u8 {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update(self.counter.to_le_bytes());
        self.block = hash.finalize().into();
        self.counter = self.counter.wrapping_add(1);
        self.used = 0;
        let [first, ..] = self.block;
        first
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.fill(out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { query_seed: 42, batch_id: 1, step: 0, key_group: 0 };

    fn bytes(place: Place, name: &str) -> [u8; 100] {
        let mut bytes = [0; 100];
        place.stream(name).try_fill_bytes(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_same_place_gives_the_same_numbers() {
        assert_eq!(bytes(PLACE, "secure"), bytes(PLACE, "secure"));
        assert_eq!(PLACE.seed(), PLACE.seed());
    }

    #[test]
    fn every_part_of_the_place_matters() {
        let other = [
            Place { query_seed: 43, ..PLACE },
            Place { batch_id: 2, ..PLACE },
            Place { step: 1, ..PLACE },
            Place { key_group: 1, ..PLACE },
        ];
        for place in other {
            assert_ne!(bytes(place, "secure"), bytes(PLACE, "secure"));
            assert_ne!(place.seed(), PLACE.seed());
        }
        assert_ne!(bytes(PLACE, "insecure"), bytes(PLACE, "secure"));
    }

    #[test]
    fn numbers_do_not_depend_on_how_they_are_asked_for() {
        let mut words = PLACE.stream("secure");
        let expected = bytes(PLACE, "secure");
        for chunk in expected.chunks_exact(4) {
            assert_eq!(words.try_next_u32().unwrap().to_le_bytes(), chunk);
        }
    }

    #[test]
    fn blocks_differ() {
        let bytes = bytes(PLACE, "secure");
        assert_ne!(bytes[..32], bytes[32..64]);
    }
}
