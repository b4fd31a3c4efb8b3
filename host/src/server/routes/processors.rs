//! Processors of a tenant: uploads, their versions, and aliases that name one.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::operations as answers;
use crate::server::App;
use crate::server::auth::Caller;
use crate::server::http::{Answer, Content, IfMatch, Input, List, Paging, Problem, Wait, etag, moment};
use crate::server::id::{Id, Name};
use crate::server::meta::processors::{self as store, Alias, Processor, Version};
use crate::server::meta::tenants::Tenant;
use crate::server::meta::{View, Writing, queries};
use crate::server::operations;
use crate::server::uploads::{self, Destination};

/// A processor.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProcessorView {
    name: Name,
    created_at: String,
    /// The last version that was given out.
    latest: u32,
    /// Which version each alias names.
    aliases: BTreeMap<String, u32>,
}

/// A version of a processor: it never changes.
#[derive(Debug, Serialize, ToSchema)]
pub struct VersionView {
    processor: String,
    version: u32,
    sha256: String,
    bytes: u64,
    created_at: String,
    /// The id of the token that uploaded it.
    created_by: String,
    /// The key whose signature it came with, if signatures are looked at.
    signed_by: Option<Name>,
    /// What was found out about it: imports, schemas, state variables, what `init` needs.
    description: Value,
}

/// What an alias should name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAlias {
    version: u32,
}

/// An alias.
#[derive(Debug, Serialize, ToSchema)]
pub struct AliasView {
    alias: String,
    version: u32,
}

fn view(tenant: &Id, processor: Processor, view: &impl View) -> Result<ProcessorView, Problem> {
    let aliases = store::aliases(view, tenant, processor.name.as_str())?;
    Ok(ProcessorView {
        name: processor.name,
        created_at: moment(processor.created_ms),
        latest: processor.latest,
        aliases: aliases.into_iter().map(|(name, alias)| (name, alias.version)).collect(),
    })
}

fn version_view(processor: &str, version: Version) -> VersionView {
    VersionView {
        processor: processor.to_owned(),
        version: version.number,
        sha256: version.sha256,
        bytes: version.bytes,
        created_at: moment(version.created_ms),
        created_by: version.created_by.to_string(),
        signed_by: version.signed_by,
        description: version.description,
    }
}

pub(super) async fn list(State(app): State<Arc<App>>, tenant: Tenant, paging: Paging) -> Result<Answer, Problem> {
    app.read(move |reading| {
        let page = store::page(reading, &tenant.id, paging.after.as_deref(), paging.limit)?;
        let last = page.records.last().map(|(name, _)| name.clone());
        let processors = page.records.into_iter().map(|(_, one)| view(&tenant.id, one, reading));
        Answer::ok(&List::page(processors.collect::<Result<_, _>>()?, page.more, last.as_deref()))
    })
    .await
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, processor)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    app.read(move |reading| {
        let processor = store::get(reading, &tenant.id, &processor)?.ok_or_else(Problem::not_found)?;
        Answer::ok(&view(&tenant.id, processor, reading)?)
    })
    .await
}

/// Deletes a processor with all of its versions and aliases.
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, processor)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    app.blocking(move |app| {
        let gone = app.meta.write(|writing| remove(writing, &tenant.id, &processor))?;
        gone.iter().try_for_each(|sha256| uploads::forget(app, sha256))
    })
    .await?;
    Ok(Answer::nothing())
}

/// Removes the records of a processor; answers with the digests of its versions.
fn remove(writing: &Writing, tenant: &Id, processor: &str) -> Result<Vec<String>, Problem> {
    if store::get(writing, tenant, processor)?.is_none() {
        return Err(Problem::not_found());
    }
    let versions = store::versions(writing, tenant, processor, None, usize::MAX)?.records;
    for (_, version) in &versions {
        not_run(writing, tenant, processor, version.number)?;
    }
    for (alias, _) in store::aliases(writing, tenant, processor)? {
        store::remove_alias(writing, tenant, processor, &alias)?;
    }
    for (_, version) in &versions {
        store::remove_version(writing, tenant, processor, version)?;
    }
    store::remove(writing, tenant, processor)?;
    Ok(versions.into_iter().map(|(_, version)| version.sha256).collect())
}

/// Takes a component and makes a version of it. The same bytes again are the same version.
pub(super) async fn upload(
    State(app): State<Arc<App>>,
    caller: Caller,
    tenant: Tenant,
    Path((_, processor)): Path<(String, String)>,
    wait: Wait,
    headers: HeaderMap,
    content: Content,
) -> Result<Response, Problem> {
    let processor: Name = processor
        .parse()
        .map_err(|error: crate::server::id::NotAName| Problem::new("NAME_INVALID", error.to_string()))?;
    let signature = headers.get("tidemill-signature").map(|value| value.to_str().unwrap_or_default().to_owned());
    let upload = uploads::receive(&app, content, signature).await?;
    let (owner, name, sha256) = (tenant.id.clone(), processor.clone(), upload.sha256.clone());
    let there = app.read(move |view| Ok(store::version_of_bytes(view, &owner, name.as_str(), &sha256)?)).await?;
    if let Some(version) = there {
        return Ok(Answer::ok(&version_view(processor.as_str(), version))?.into_response());
    }
    let owner = tenant.id.clone();
    let destination = Destination { tenant: tenant.clone(), processor, caller };
    let begun = operations::begin(&app, &owner, "upload", move |app| {
        let version = uploads::admit(app, &destination, &upload)?;
        let Destination { tenant, processor, .. } = &destination;
        let location = format!("/v1/tenants/{}/processors/{processor}/versions/{}", tenant.name, version.number);
        Answer::created(location, &version_view(processor.as_str(), version))
    })
    .await?;
    answers::answer(&app, &tenant, begun, wait).await
}

pub(super) async fn list_versions(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, processor)): Path<(String, String)>,
    paging: Paging,
) -> Result<Answer, Problem> {
    app.read(move |reading| {
        store::get(reading, &tenant.id, &processor)?.ok_or_else(Problem::not_found)?;
        let page = store::versions(reading, &tenant.id, &processor, paging.after.as_deref(), paging.limit)?;
        let last = page.records.last().map(|(number, _)| number.clone());
        let versions = page.records.into_iter().map(|(_, version)| version_view(&processor, version)).collect();
        Answer::ok(&List::page(versions, page.more, last.as_deref()))
    })
    .await
}

pub(super) async fn get_version(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, processor, number)): Path<(String, String, String)>,
) -> Result<Answer, Problem> {
    app.read(move |reading| {
        let version = version(reading, &tenant.id, &processor, &number)?;
        Answer::ok(&version_view(&processor, version))
    })
    .await
}

fn version(view: &impl View, tenant: &Id, processor: &str, number: &str) -> Result<Version, Problem> {
    let number = number.parse().map_err(|_no_number| Problem::not_found())?;
    store::version(view, tenant, processor, number)?.ok_or_else(Problem::not_found)
}

pub(super) async fn delete_version(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, processor, number)): Path<(String, String, String)>,
) -> Result<Answer, Problem> {
    app.blocking(move |app| {
        let gone = app.meta.write(|writing| {
            let version = version(writing, &tenant.id, &processor, &number)?;
            not_run(writing, &tenant.id, &processor, version.number)?;
            let aliases = store::aliases(writing, &tenant.id, &processor)?;
            if let Some((alias, _)) = aliases.iter().find(|(_, alias)| alias.version == version.number) {
                let detail = format!("the alias {alias} names this version; give it to another one first");
                return Err(Problem::new("VERSION_IN_USE", detail).with("alias", alias.as_str()));
            }
            store::remove_version(writing, &tenant.id, &processor, &version)?;
            Ok(version.sha256)
        })?;
        uploads::forget(app, &gone)
    })
    .await?;
    Ok(Answer::nothing())
}

/// A version that a query runs stays.
fn not_run(view: &impl View, tenant: &Id, processor: &str, number: u32) -> Result<(), Problem> {
    let runs = |query: &queries::Query| {
        query.runs.iter().any(|used| used.processor.as_str() == processor && used.version == number)
    };
    let queries = queries::page(view, tenant, None, usize::MAX)?.records;
    match queries.iter().find(|(_, query)| runs(query)) {
        Some((name, _)) => {
            let detail = format!("the query {name} runs version {number} of {processor}; delete it first");
            Err(Problem::new("VERSION_IN_USE", detail).with("query", name.as_str()))
        }
        None => Ok(()),
    }
}

pub(super) async fn get_alias(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, processor, alias)): Path<(String, String, String)>,
) -> Result<Answer, Problem> {
    app.read(move |reading| {
        let found = store::alias(reading, &tenant.id, &processor, &alias)?.ok_or_else(Problem::not_found)?;
        alias_answer(&alias, &found)
    })
    .await
}

pub(super) async fn put_alias(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, processor, alias)): Path<(String, String, String)>,
    wanted: IfMatch,
    input: Input<NewAlias>,
) -> Result<Answer, Problem> {
    let name: Name =
        alias.parse().map_err(|error: crate::server::id::NotAName| Problem::new("NAME_INVALID", error.to_string()))?;
    let number = input.value.version;
    app.write(move |writing| {
        store::get(writing, &tenant.id, &processor)?.ok_or_else(Problem::not_found)?;
        if store::version(writing, &tenant.id, &processor, number)?.is_none() {
            let detail = format!("{processor} has no version {number}; see its versions");
            return Err(Problem::new("VERSION_UNKNOWN", detail));
        }
        let found = store::alias(writing, &tenant.id, &processor, name.as_str())?.map(|alias| alias.revision);
        wanted.check(found)?;
        let alias = Alias { version: number, revision: found.unwrap_or_default() + 1 };
        store::put_alias(writing, &tenant.id, &processor, &name, &alias)?;
        alias_answer(name.as_str(), &alias)
    })
    .await
}

pub(super) async fn delete_alias(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, processor, alias)): Path<(String, String, String)>,
    wanted: IfMatch,
) -> Result<Answer, Problem> {
    app.write(move |writing| {
        let found = store::alias(writing, &tenant.id, &processor, &alias)?.ok_or_else(Problem::not_found)?;
        wanted.check(Some(found.revision))?;
        store::remove_alias(writing, &tenant.id, &processor, &alias)?;
        Ok(Answer::nothing())
    })
    .await
}

fn alias_answer(name: &str, alias: &Alias) -> Result<Answer, Problem> {
    let view = AliasView { alias: name.to_owned(), version: alias.version };
    Ok(Answer::ok(&view)?.with_etag(etag(alias.revision)))
}
