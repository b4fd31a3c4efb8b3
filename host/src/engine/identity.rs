//! Names and numbers that no two queries share.

/// A random UUID (version 4).
pub(super) fn random_id() -> String {
    let [a, b] = [random_u64(), random_u64()];
    let (version, variant) = (0x4000 | (a & 0x0fff), 0x8000_0000_0000_0000 | (b & 0x3fff_ffff_ffff_ffff));
    format!(
        "{:08x}-{:04x}-{version:04x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        variant >> 48,
        variant & 0xffff_ffff_ffff
    )
}

/// A random number, from the system.
pub(super) fn random_u64() -> u64 {
    // The system's source fails on no Linux of this decade; ids that are merely likely unique are then good enough.
    getrandom::u64()
        .unwrap_or_else(|_| std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_look_like_uuids_and_differ() {
        let (a, b) = (super::random_id(), super::random_id());

        assert_ne!(a, b);
        assert_eq!(a.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_eq!(a.as_bytes()[14], b'4');
    }
}
