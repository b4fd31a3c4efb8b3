//! How many wrong tokens an address may send: a bucket of tokens per address, in a table that does not grow.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Addresses that are remembered. With more than these, those that were quiet longest are forgotten.
const ADDRESSES_MAX: usize = 4096;

const MINUTE_MS: i64 = 60_000;

/// Failures by address.
#[derive(Debug)]
pub struct Attempts {
    per_minute: u32,
    buckets: HashMap<IpAddr, Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Failures that are not forgiven yet, in thousandths.
    failures: i64,
    /// When that was so.
    at_ms: i64,
}

impl Attempts {
    /// `per_minute`: how many failures are forgiven in a minute, and how many may come at once; at least one.
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute: per_minute.max(1), buckets: HashMap::new() }
    }

    /// Notes a failure. Err: it is one too many; in how many seconds the next one is let through.
    ///
    /// # Errors
    /// Seconds to wait.
    pub fn failed(&mut self, from: IpAddr, now_ms: i64) -> Result<(), u32> {
        let from = network(from);
        if self.buckets.len() >= ADDRESSES_MAX && !self.buckets.contains_key(&from) {
            self.forget_the_quiet();
        }
        let forgiven_per_minute = i64::from(self.per_minute) * 1000;
        let bucket = self.buckets.entry(from).or_insert(Bucket { failures: 0, at_ms: now_ms });
        let passed = now_ms.saturating_sub(bucket.at_ms).clamp(0, MINUTE_MS);
        bucket.failures = (bucket.failures - passed * forgiven_per_minute / MINUTE_MS).max(0);
        bucket.at_ms = now_ms;
        let after = bucket.failures + 1000;
        if after > forgiven_per_minute {
            let wait_ms = (after - forgiven_per_minute) * MINUTE_MS / forgiven_per_minute;
            return Err(u32::try_from(wait_ms / 1000 + 1).unwrap_or(u32::MAX));
        }
        bucket.failures = after;
        Ok(())
    }

    /// Forgets half of the addresses, those that failed longest ago.
    fn forget_the_quiet(&mut self) {
        let mut times: Vec<_> = self.buckets.values().map(|bucket| bucket.at_ms).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        self.buckets.retain(|_, bucket| bucket.at_ms > middle);
    }
}

/// One user of IPv6 has a network of 2^64 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => v6
            .to_ipv4_mapped()
            .map_or_else(|| IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))), IpAddr::V4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[test]
    fn an_address_is_slowed_down_and_others_are_not() {
        let mut attempts = Attempts::new(2);

        assert_eq!(attempts.failed(address(1), 0), Ok(()));
        assert_eq!(attempts.failed(address(1), 0), Ok(()));
        let wait = attempts.failed(address(1), 0).unwrap_err();

        assert_eq!(wait, 31);
        assert_eq!(attempts.failed(address(2), 0), Ok(()));
        assert_eq!(attempts.failed(address(1), i64::from(wait) * 1000), Ok(()));
    }

    #[test]
    fn addresses_of_one_network_count_together() {
        let mut attempts = Attempts::new(1);

        assert!(attempts.failed("2001:db8::1".parse().unwrap(), 0).is_ok());
        assert!(attempts.failed("2001:db8::2".parse().unwrap(), 0).is_err());
        assert!(attempts.failed("2001:db8:0:1::1".parse().unwrap(), 0).is_ok());
    }

    #[test]
    fn the_table_does_not_grow_without_bound() {
        let mut attempts = Attempts::new(1);

        for number in 0..20_000_u32 {
            let _allowed = attempts.failed(IpAddr::from(number.to_be_bytes()), i64::from(number));
            assert!(attempts.buckets.len() <= ADDRESSES_MAX);
        }
    }
}
