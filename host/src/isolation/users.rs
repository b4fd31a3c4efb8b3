//! Which users children become, where the server may make them others than itself. Those of tenants are the server's to give.

use std::fs;

use rustix::thread::{CapabilitySet, capabilities};

/// The user of every compiler: it owns nothing. Systems give numbers as high as this neither to people nor to containers.
const COMPILER: u32 = 0x7fff_0000;
/// The user of the attacker in the probe.
const PROBE: u32 = 0x7fff_0001;

pub(super) fn of_compiler() -> Option<u32> {
    may_become(COMPILER).then_some(COMPILER)
}

pub(super) fn of_probe() -> Option<u32> {
    may_become(PROBE).then_some(PROBE)
}

/// Whether the server may start processes of another user, and has this one: many containers have few.
fn may_become(user: u32) -> bool {
    let needed = CapabilitySet::CHOWN | CapabilitySet::SETUID | CapabilitySet::SETGID;
    let maps = ["/proc/self/uid_map", "/proc/self/gid_map"];
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
        && maps.iter().all(|map| fs::read_to_string(map).is_ok_and(|map| is_mapped(&map, user)))
}

/// Whether a user namespace has this user. Each line of its map is: first inside, first outside, how many.
fn is_mapped(map: &str, user: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Option<Vec<u64>> = line.split_whitespace().map(|number| number.parse().ok()).collect();
        matches!(numbers.as_deref(), Some([first, _, count]) if (*first..first + count).contains(&user.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_namespaces_has_every_user() {
        assert!(is_mapped("         0          0 4294967295\n", COMPILER));
    }

    #[test]
    fn a_container_has_the_users_that_it_was_given() {
        let container = "0 1000 1\n1 100000 65536\n";

        assert!(is_mapped(container, 65_536));
        assert!(!is_mapped(container, 65_537));
    }
}
