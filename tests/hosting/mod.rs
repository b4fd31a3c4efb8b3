//! Queries that a server runs for tenants, in workers behind walls.

mod place;
mod queries;
