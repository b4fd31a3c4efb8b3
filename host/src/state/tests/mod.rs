//! Behaviour of state as a whole, on both stores.

mod backing;
mod catalog;
mod evolution;
mod lists;
mod maps;
mod model;
mod sessions;
mod stores;
mod timers;
mod ttl;
mod values;
mod world;
