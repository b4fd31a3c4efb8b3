//! Queries of tenants: made of uploaded processors, started and stopped, looked at.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::config::hosted::{Ceilings, HostedQuery, ProcessorReference, Revision};
use crate::server::App;
use crate::server::auth::Caller;
use crate::server::hosting::OpenQuery;
use crate::server::http::{Answer, Input, List, Paging, Problem, create_once, moment};
use crate::server::id::{Id, Name, NotAName};
use crate::server::meta::queries::{self as store, Desired, Query, VersionUse};
use crate::server::meta::tenants::Tenant;
use crate::server::meta::{Writing, processors};
use crate::supervisor::{State as Place, Status};

/// A query, and how it fares.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueryView {
    name: Name,
    /// `stopped`, `starting`, `running`, `idle`, `paused`, `stopping`, `restarting`, `failed` or `results-full`.
    state: &'static str,
    /// What is wanted of it.
    desired: Desired,
    /// Why it is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// Which versions it runs, one per step.
    runs: Vec<RunView>,
    /// Rows that clients have handed over.
    rows_ingested: u64,
    /// How many of them are processed.
    rows_processed: u64,
    /// Bytes of those that are not.
    backlog_bytes: u64,
    /// Columns of the rows that it emits, once it has run.
    output_schema: Option<String>,
    /// When an idle query goes on by itself.
    wakes_at: Option<String>,
    created_at: String,
    /// How it was set up.
    #[schema(value_type = Object)]
    settings: Value,
}

/// Why a query is not as it should be.
#[derive(Debug, Serialize, ToSchema)]
pub struct Reason {
    code: String,
    message: String,
    /// The batch that failed, if one did.
    batch: Option<u64>,
    /// How often it was tried since the last batch.
    attempts: u32,
}

/// A version that a query runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunView {
    processor: Name,
    version: u32,
    sha256: String,
}

impl QueryView {
    fn of(query: Query, open: &OpenQuery) -> Self {
        let Status { state, failure, attempts, wake_at_ms, output_schema, input, .. } = open.status();
        let full = open.is_full() && query.desired == Desired::Running;
        let reason = match failure {
            _ if full => Some(Reason {
                code: "RESULTS_FULL".to_owned(),
                message: "its results have no room; read them and trim what is read, and it goes on".to_owned(),
                batch: None,
                attempts: 0,
            }),
            failure => failure.map(|failure| Reason {
                code: failure.code,
                message: failure.message,
                batch: failure.batch,
                attempts,
            }),
        };
        let run = |run: VersionUse| RunView { processor: run.processor, version: run.version, sha256: run.sha256 };
        Self {
            name: query.name,
            state: if full { "results-full" } else { name_of(state) },
            desired: query.desired,
            reason,
            runs: query.runs.into_iter().map(run).collect(),
            rows_ingested: open.ingest.end(),
            rows_processed: input.consumed,
            backlog_bytes: open.ingest.unread_bytes(),
            output_schema,
            wakes_at: wake_at_ms.map(moment),
            created_at: moment(query.created_ms),
            settings: query.settings,
        }
    }
}

fn name_of(state: Place) -> &'static str {
    match state {
        Place::Stopped => "stopped",
        Place::Starting => "starting",
        Place::Running => "running",
        Place::Idle => "idle",
        Place::Paused => "paused",
        Place::Stopping => "stopping",
        Place::Restarting => "restarting",
        Place::Failed => "failed",
    }
}

pub(super) async fn list(State(app): State<Arc<App>>, tenant: Tenant, paging: Paging) -> Result<Answer, Problem> {
    let read = move |view: &_| Ok(store::page(view, &tenant.id, paging.after.as_deref(), paging.limit)?);
    let page = app.read(read).await?;
    let last = page.records.last().map(|(_, query)| query.name.to_string());
    app.blocking(move |app| {
        let views = page.records.into_iter().filter_map(|(_, query)| {
            // One that is being deleted is no more.
            let open = app.hosting.get(&query.id).ok()?;
            Some(QueryView::of(query, &open))
        });
        Answer::ok(&List::page(views.collect(), page.more, last.as_deref()))
    })
    .await
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    tenant: Tenant,
    input: Input<Value>,
) -> Result<Answer, Problem> {
    let settings = HostedQuery::parse(input.value.to_string().as_bytes())?;
    Ceilings::default().check(&settings)?;
    let name: Name =
        settings.name.parse().map_err(|error: NotAName| Problem::new("SETTING_INVALID", error.to_string()))?;
    let now_ms = app.now_ms();
    let owner = tenant.clone();
    let path = format!("/v1/tenants/{}/queries", tenant.name);
    let location = format!("{path}/{name}");
    let answer = create_once(&app, &caller, path, input, move |writing, document| {
        if store::get(writing, &owner.id, name.as_str())?.is_some() {
            let detail = format!("there is a query {name} already; choose another name, or delete it first");
            return Err(Problem::new("NAME_TAKEN", detail));
        }
        let runs = settings.steps.iter().map(|step| resolve(writing, &owner, &step.processor));
        let query = Query {
            id: Id::random()?,
            name,
            settings: document,
            runs: runs.collect::<Result<_, _>>()?,
            desired: Desired::Stopped,
            created_ms: now_ms,
            revision: 1,
        };
        store::put(writing, &owner.id, &query)?;
        Answer::created(location, &serde_json::json!({ "name": query.name, "id": query.id.as_str() }))
    })
    .await?;
    // A repeated request may find it hosted, or deleted meanwhile.
    let made = answer.body.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let query = find(&app, &tenant, made).await?;
    let hosted = query.clone();
    app.blocking(move |app| app.hosting.host(&app.meta, &tenant.id, &hosted)).await?;
    let open = app.hosting.get(&query.id)?;
    Ok(Answer { body: shown(&app, query, open).await?.body, ..answer })
}

/// The version that a reference names now.
fn resolve(writing: &Writing, tenant: &Tenant, reference: &ProcessorReference) -> Result<VersionUse, Problem> {
    let unknown = || {
        let detail = format!("there is no processor {reference}; upload it first: tidemill deploy");
        Problem::new("PROCESSOR_UNKNOWN", detail)
    };
    let (processor, number) = match reference {
        ProcessorReference::Named { name, revision: Revision::Version(number) } => {
            (name.clone(), u32::try_from(*number).ok())
        }
        ProcessorReference::Named { name, revision: Revision::Alias(alias) } => {
            let alias = processors::alias(writing, &tenant.id, name, alias)?;
            (name.clone(), alias.map(|alias| alias.version))
        }
        ProcessorReference::Digest(sha256) => {
            let (processor, number) = processors::of_digest(writing, &tenant.id, sha256)?.ok_or_else(unknown)?;
            (processor, Some(number))
        }
    };
    let version =
        number.map(|number| processors::version(writing, &tenant.id, &processor, number)).transpose()?.flatten();
    let version = version.ok_or_else(unknown)?;
    let processor = processor.parse().map_err(|_: NotAName| unknown())?;
    Ok(VersionUse { processor, version: version.number, sha256: version.sha256 })
}

pub(super) async fn get(State(app): State<Arc<App>>, tenant: Tenant, at: At) -> Result<Answer, Problem> {
    let (query, open) = at.open(&app, &tenant).await?;
    shown(&app, query, open).await
}

/// A query as it is answered. Blocks while its log of rows is synced.
async fn shown(app: &Arc<App>, query: Query, open: Arc<OpenQuery>) -> Result<Answer, Problem> {
    app.blocking(move |_| Answer::ok(&QueryView::of(query, &open))).await
}

pub(super) async fn delete(State(app): State<Arc<App>>, tenant: Tenant, at: At) -> Result<Answer, Problem> {
    let query = find(&app, &tenant, at.query).await?;
    let (owner, name) = (tenant.id.clone(), query.name.to_string());
    // Forgotten first: what a crash leaves of its folders, nobody can name.
    app.write(move |writing| Ok(store::remove(writing, &owner, &name)?)).await?;
    app.blocking(move |app| app.hosting.remove(&tenant.id, &query.id)).await?;
    Ok(Answer::nothing())
}

/// How long an answer waits for the state to change. Changing it may take longer: a batch is ended first.
const HEARD: Duration = Duration::from_millis(200);

pub(super) async fn start(State(app): State<Arc<App>>, tenant: Tenant, at: At) -> Result<Answer, Problem> {
    want(&app, &tenant, at, Desired::Running).await
}

pub(super) async fn stop(State(app): State<Arc<App>>, tenant: Tenant, at: At) -> Result<Answer, Problem> {
    want(&app, &tenant, at, Desired::Stopped).await
}

pub(super) async fn pause(State(app): State<Arc<App>>, tenant: Tenant, at: At) -> Result<Answer, Problem> {
    want(&app, &tenant, at, Desired::Paused).await
}

async fn want(app: &Arc<App>, tenant: &Tenant, at: At, desired: Desired) -> Result<Answer, Problem> {
    let owner = tenant.id.clone();
    let query = app
        .write(move |writing| {
            let mut query = store::get(writing, &owner, &at.query)?.ok_or_else(Problem::not_found)?;
            if query.desired != desired {
                query.desired = desired;
                query.revision += 1;
                store::put(writing, &owner, &query)?;
            }
            Ok(query)
        })
        .await?;
    let open = app.hosting.get(&query.id)?;
    let mut news = open.news();
    open.want(desired)?;
    // What is answered shows that it was heard, unless nothing changes by it.
    drop(timeout(HEARD, news.changed()).await);
    shown(app, query, open).await
}

/// What the last batches of a query did, the newest last.
#[derive(Debug, Serialize, ToSchema)]
pub struct Progress {
    /// A report per batch, see docs/metrics.md.
    #[schema(value_type = Vec<Object>)]
    batches: Vec<Value>,
}

pub(super) async fn progress(State(app): State<Arc<App>>, tenant: Tenant, at: At) -> Result<Answer, Problem> {
    let (_, open) = at.open(&app, &tenant).await?;
    let recent = open.status().recent;
    // What a worker says is text until it is known to be JSON.
    let batches = recent.iter().filter_map(|report| serde_json::from_str(report).ok()).collect();
    Answer::ok(&Progress { batches })
}

/// A query of the tenant, by its name in the path.
#[derive(Debug)]
pub struct At {
    query: String,
}

impl At {
    /// The query, as it is remembered and as it runs.
    ///
    /// # Errors
    /// There is none.
    pub async fn open(self, app: &Arc<App>, tenant: &Tenant) -> Result<(Query, Arc<OpenQuery>), Problem> {
        let query = find(app, tenant, self.query).await?;
        let open = app.hosting.get(&query.id)?;
        Ok((query, open))
    }
}

impl axum::extract::FromRequestParts<Arc<App>> for At {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, app).await;
        let Path((_, query)) = path.map_err(|_| Problem::not_found())?;
        Ok(Self { query })
    }
}

async fn find(app: &Arc<App>, tenant: &Tenant, query: String) -> Result<Query, Problem> {
    let owner = tenant.id.clone();
    app.read(move |view| store::get(view, &owner, &query)?.ok_or_else(Problem::not_found)).await
}
