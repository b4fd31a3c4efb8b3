//! Which users children become, where the server may make them others than itself.

use std::fs;
use std::ops::Range;

use rustix::thread::{CapabilitySet, capabilities};

/// Users for children: numbers that systems give neither to people nor to services nor to containers. Files on disk belong to
/// them, so they stay what they are.
const TENANTS: Range<u32> = 0x7000_0000..0x7fff_0000;
/// The user of every compiler: it owns nothing.
const COMPILER: u32 = 0x7fff_0000;
/// The user of the attacker in the probe.
pub(super) const PROBE: u32 = 0x7fff_0001;

/// The user that the worker of a tenant becomes, and to whom what it writes belongs; always the same for one tenant. None: the
/// server may not start processes of other users, or has no such users, as in many containers.
///
/// Two tenants of a thousand have the same one with a probability of 0.2 %. Then the other layers keep them apart.
#[must_use]
pub fn user_of_tenant(tenant: &str) -> Option<u32> {
    may_become(TENANTS).then(|| TENANTS.start + crc32fast::hash(tenant.as_bytes()) % (TENANTS.end - TENANTS.start))
}

pub(super) fn user_of_compiler() -> Option<u32> {
    may_become(COMPILER..COMPILER + 1).then_some(COMPILER)
}

pub(super) fn may_become(users: Range<u32>) -> bool {
    let needed = CapabilitySet::CHOWN | CapabilitySet::SETUID | CapabilitySet::SETGID;
    let maps = ["/proc/self/uid_map", "/proc/self/gid_map"];
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
        && maps.iter().all(|map| fs::read_to_string(map).is_ok_and(|map| is_mapped(&map, &users)))
}

/// Whether a user namespace knows these users. Each line of its map is: first here, first outside, how many.
fn is_mapped(map: &str, users: &Range<u32>) -> bool {
    map.lines().any(|line| {
        let numbers: Option<Vec<u64>> = line.split_whitespace().map(|number| number.parse().ok()).collect();
        matches!(numbers.as_deref(), Some([first, _, count])
            if *first <= u64::from(users.start) && u64::from(users.end) <= first + count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_of_the_first_namespace_are_all_there() {
        assert!(is_mapped("         0          0 4294967295\n", &TENANTS));
    }

    #[test]
    fn a_container_with_few_users_lacks_those_of_tenants() {
        let container = "0 1000 1\n1 100000 65536\n";

        assert!(!is_mapped(container, &TENANTS));
        assert!(is_mapped(container, &(1..65_537)));
        assert!(!is_mapped(container, &(1..65_538)));
    }

    #[test]
    fn a_tenant_keeps_its_user() {
        let Some(user) = user_of_tenant("4f2a") else { return };

        assert!(TENANTS.contains(&user));
        assert_eq!(user_of_tenant("4f2a"), Some(user));
        assert_ne!(user_of_tenant("4f2b"), Some(user));
    }
}
