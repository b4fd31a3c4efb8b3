//! Roles, and the routes that they open.

use serde::{Deserialize, Serialize};

use crate::server::id::{Id, Name};

/// What the owner of a token is to the platform or to a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything, for every tenant.
    PlatformAdmin,
    /// Everything of one tenant.
    Admin,
    /// Uploads processors, creates and runs queries.
    Deployer,
    /// Starts, stops, pauses and resumes queries.
    Operator,
    /// Looks at everything but the contents of rows and state.
    Viewer,
    /// Looks at everything.
    Reader,
    /// Sends rows to named queries.
    Ingest,
    /// Reads results of named queries.
    Results,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::PlatformAdmin,
        Self::Admin,
        Self::Deployer,
        Self::Operator,
        Self::Viewer,
        Self::Reader,
        Self::Ingest,
        Self::Results,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::PlatformAdmin => "platform-admin",
            Self::Admin => "admin",
            Self::Deployer => "deployer",
            Self::Operator => "operator",
            Self::Viewer => "viewer",
            Self::Reader => "reader",
            Self::Ingest => "ingest",
            Self::Results => "results",
        }
    }

    /// Whether it is limited to named queries.
    pub fn names_queries(self) -> bool {
        matches!(self, Self::Ingest | Self::Results)
    }
}

impl std::str::FromStr for Role {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, NotARole> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or(NotARole)
    }
}

/// A text that is no role.
#[derive(Debug, thiserror::Error)]
#[error("a role is one of platform-admin, admin, deployer, operator, viewer, reader, ingest, results")]
pub struct NotARole;

/// What a token may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// As what.
    pub role: Role,
    /// For whom. None: for the platform.
    pub tenant: Option<Id>,
    /// With which queries, for roles that are limited to some.
    #[serde(default)]
    pub queries: Vec<Name>,
}

impl Scope {
    /// Whether everything that `other` may do, this may do as well. Only admins give out tokens, so the answer for
    /// others is no.
    pub fn covers(&self, other: &Self) -> bool {
        match self.role {
            Role::PlatformAdmin => true,
            Role::Admin => other.role != Role::PlatformAdmin && other.tenant.is_some() && self.tenant == other.tenant,
            _ => false,
        }
    }

    /// Whether its parts go together: a tenant for every role but the platform's, queries where the role wants them.
    pub fn is_whole(&self) -> bool {
        let tenant = self.tenant.is_some() == (self.role != Role::PlatformAdmin);
        tenant && self.queries.is_empty() != self.role.names_queries()
    }
}

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody, without a token.
    Open,
    /// Every token.
    AnyToken,
    /// Platform admins.
    Platform,
    /// These roles of the tenant in the path, and platform admins. To others the tenant does not exist.
    Tenant(&'static [Role]),
}

impl Access {
    /// Whether a role may use it, for the right tenant and queries.
    pub fn allows(self, role: Role) -> bool {
        match self {
            Self::Open | Self::AnyToken => true,
            Self::Platform => role == Role::PlatformAdmin,
            Self::Tenant(roles) => role == Role::PlatformAdmin || roles.contains(&role),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(role: Role, tenant: Option<&Id>) -> Scope {
        let queries = if role.names_queries() { vec!["q".parse().unwrap()] } else { Vec::new() };
        Scope { role, tenant: tenant.cloned(), queries }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for role in Role::ALL {
            assert_eq!(role.name().parse::<Role>().unwrap(), role);
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
    }

    #[test]
    fn a_token_creates_no_more_than_it_may_do_itself() {
        let (mine, theirs) = (Id::random().unwrap(), Id::random().unwrap());
        for role in Role::ALL {
            let platform = role == Role::PlatformAdmin;
            let made = scope(role, if platform { None } else { Some(&mine) });
            assert!(made.is_whole());
            assert!(scope(Role::PlatformAdmin, None).covers(&made));
            assert_eq!(scope(Role::Admin, Some(&mine)).covers(&made), !platform, "{role:?}");
            assert!(!scope(Role::Admin, Some(&theirs)).covers(&made), "{role:?}");
        }
        for role in Role::ALL.into_iter().filter(|role| !matches!(role, Role::PlatformAdmin | Role::Admin)) {
            assert!(!scope(role, Some(&mine)).covers(&scope(Role::Viewer, Some(&mine))), "{role:?}");
        }
    }

    #[test]
    fn a_scope_has_a_tenant_and_queries_exactly_where_its_role_wants_them() {
        let tenant = Id::random().unwrap();
        let bad = [
            scope(Role::PlatformAdmin, Some(&tenant)),
            scope(Role::Viewer, None),
            Scope { queries: Vec::new(), ..scope(Role::Ingest, Some(&tenant)) },
            Scope { queries: vec!["q".parse().unwrap()], ..scope(Role::Viewer, Some(&tenant)) },
        ];
        for scope in bad {
            assert!(!scope.is_whole(), "{scope:?}");
        }
    }
}
