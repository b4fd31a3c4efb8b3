//! Behaviour of state as a whole, on both stores.
