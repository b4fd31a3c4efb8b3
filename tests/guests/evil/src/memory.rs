//! Taking memory: heap, stack. (Tables cannot be grown from Rust: `table-growth.wat`.)

use std::hint::black_box;

use crate::polite::drain;
use crate::{Attack, Failure};

const MIB: usize = 1 << 20;

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { input: allocate, ..Attack::polite("memory-heap") },
    Attack { input: grow, ..Attack::polite("memory-grow") },
    Attack { init: |_| allocate().map(|()| crate::polite::plan()), ..Attack::polite("memory-init") },
    Attack { input: recurse, ..Attack::polite("recursion") },
];

/// Allocates and touches until the allocator gives up, which is a trap.
fn allocate() -> Result<(), Failure> {
    let mut hoard = Vec::new();
    loop {
        hoard.push(black_box(vec![1u8; MIB]));
    }
}

/// Asks for pages as long as there are any, and goes on politely when there are not: a refusal is no fault.
fn grow() -> Result<(), Failure> {
    while core::arch::wasm32::memory_grow(0, 16) != usize::MAX {}
    drain()
}

fn recurse() -> Result<(), Failure> {
    fn deeper(depth: u64) -> u64 {
        let frame = black_box([depth; 64]);
        if black_box(depth) == u64::MAX {
            return 0;
        }
        1 + deeper(depth + 1) + black_box(frame).iter().sum::<u64>()
    }
    black_box(deeper(0));
    drain()
}
