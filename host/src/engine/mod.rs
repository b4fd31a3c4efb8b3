//! Time and order: what a micro-batch is, when one runs, and how it becomes durable exactly once.
//!
//! The engine owns the traits that the layers above implement ([`operator::Operator`], [`source::Source`],
//! [`sink::Sink`]). It knows nothing of WebAssembly, file formats or the network.
//!
//! Read in this order: [`query`] (what a query is made of), `batch` (the main path), and then its steps: `plan`,
//! [`route`], [`pipeline`] (with `poison`, `dead_letters` and `held` where a processor fails), `handover` (to the next step), `stage`, [`commit`], `publish`, [`progress`] with [`metrics`]. [`recovery`],
//! `rebuild` and `catch_up` bring a query back, [`rollback`] takes it to an earlier batch, [`fork`] makes two of it;
//! [`checkpoint`] is its folder; [`trigger`] decides when batches run; [`replay`] runs committed ones again, [`view`] looks at
//! a query from outside, [`verify`] at every byte of it, and [`upgrade`] says what another version of a processor changes.

mod batch;
mod catch_up;
pub mod checkpoint;
pub mod commit;
mod dead_letters;
pub mod error;
pub mod faults;
pub mod fork;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod handover;
pub mod head;
mod held;
pub mod history;
mod identity;
mod inputs;
pub mod metrics;
pub mod operator;
pub mod output;
pub mod pipeline;
mod plan;
mod poison;
pub mod progress;
mod publish;
mod quarantine;
pub mod query;
mod rebuild;
pub mod recovery;
pub mod replay;
pub mod rollback;
pub mod route;
pub mod settings;
pub mod setup;
pub mod sink;
mod snapshots;
pub mod source;
mod stage;
mod step_done;
mod suspects;
pub mod trigger;
mod union;
pub mod upgrade;
pub mod verify;
pub mod view;
pub mod watermark;
