//! Types and exports of the contract, generated from `wit/`. Nothing here is written by hand.
//!
//! Only types and the calls into the guest are used; what the guest may call is wired in [`super::linker`], where hot
//! functions read guest memory in place.

#![allow(clippy::all, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "stateful-processor",
    imports: { default: trappable },
});
