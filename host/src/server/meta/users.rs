//! The user of the system that each tenant's worker becomes: one of its own, never given out twice.

use super::{Family, MetaError, View, Writing};
use crate::server::id::Id;

/// By tenant.
const USERS: Family<u32> = Family::new("tenant-users");
/// The one record: the last that was given out.
const LAST: Family<u32> = Family::new("last-tenant-user");

/// Users begin above those that systems and containers give out, and below those of compilers.
pub const FIRST: u32 = 0x7000_0000;

/// The user of a tenant, given out now if it has none yet.
///
/// # Errors
/// The store fails.
pub fn of(writing: &Writing, tenant: &Id) -> Result<u32, MetaError> {
    if let Some(user) = writing.get(&USERS, tenant.as_str())? {
        return Ok(user);
    }
    let user = writing.get(&LAST, "")?.map_or(FIRST, |last| last.saturating_add(1));
    writing.put(&LAST, "", &user)?;
    writing.put(&USERS, tenant.as_str(), &user)?;
    Ok(user)
}
