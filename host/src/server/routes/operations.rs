//! Operations: what became of long work.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::server::App;
use crate::server::http::{Answer, List, Paging, Problem, Wait, moment};
use crate::server::id::Id;
use crate::server::meta::operations::{self as store, Operation, OperationState};
use crate::server::meta::tenants::Tenant;
use crate::server::operations;

/// An operation.
#[derive(Debug, Serialize, ToSchema)]
pub struct OperationView {
    id: String,
    kind: String,
    state: Progress,
    created_at: String,
    ended_at: Option<String>,
    /// The path of what it made.
    location: Option<String>,
    /// What it made.
    result: Option<Value>,
    /// Why it failed.
    problem: Option<Value>,
}

/// How far an operation is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// It goes on.
    Running,
    /// It has made what it should.
    Done,
    /// It has made nothing.
    Failed,
}

impl From<Operation> for OperationView {
    fn from(operation: Operation) -> Self {
        let (state, location, result, problem) = match operation.state {
            OperationState::Running => (Progress::Running, None, None, None),
            OperationState::Done { location, result } => (Progress::Done, Some(location), Some(result), None),
            OperationState::Failed { problem, .. } => (Progress::Failed, None, None, Some(problem)),
        };
        Self {
            id: operation.id.to_string(),
            kind: operation.kind,
            state,
            created_at: moment(operation.created_ms),
            ended_at: operation.ended_ms.map(moment),
            location,
            result,
            problem,
        }
    }
}

pub(super) async fn list(State(app): State<Arc<App>>, tenant: Tenant, paging: Paging) -> Result<Answer, Problem> {
    let read = move |view: &_| Ok(store::page(view, &tenant.id, paging.after.as_deref(), paging.limit)?);
    let page = app.read(read).await?;
    let last = page.records.last().map(|(id, _)| id.clone());
    let operations = page.records.into_iter().map(|(_, operation)| OperationView::from(operation)).collect();
    Answer::ok(&List::page(operations, page.more, last.as_deref()))
}

/// The operation itself; with `?wait=`, its outcome as the request that began it would have been answered.
pub(super) async fn get(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, id)): Path<(String, String)>,
    wait: Wait,
) -> Result<Response, Problem> {
    let operation = operations::wait(&app, &tenant.id, &id, wait.0.unwrap_or_default()).await?;
    match wait.0 {
        Some(_) => outcome(&tenant, operation),
        None => Ok(Answer::ok(&OperationView::from(operation))?.into_response()),
    }
}

/// The answer to a request that began an operation: its outcome, or where to look for it.
pub(super) async fn answer(
    app: &Arc<App>,
    tenant: &Tenant,
    begun: Operation,
    Wait(wait): Wait,
) -> Result<Response, Problem> {
    let patience = wait.unwrap_or(Duration::ZERO);
    let operation = if patience.is_zero() { begun } else { ended(app, &tenant.id, &begun.id, patience).await? };
    outcome(tenant, operation)
}

async fn ended(app: &Arc<App>, tenant: &Id, id: &Id, patience: Duration) -> Result<Operation, Problem> {
    operations::wait(app, tenant, id.as_str(), patience).await
}

fn outcome(tenant: &Tenant, operation: Operation) -> Result<Response, Problem> {
    match operation.state {
        OperationState::Running => {
            let location = format!("/v1/tenants/{}/operations/{}", tenant.name, operation.id);
            let answer = Answer::created(location, &OperationView::from(operation))?;
            Ok(Answer { status: StatusCode::ACCEPTED, ..answer }.into_response())
        }
        OperationState::Done { location, result } => Ok(Answer::created(location, &result)?.into_response()),
        OperationState::Failed { status, problem } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = (status, problem.to_string()).into_response();
            let problem = HeaderValue::from_static("application/problem+json");
            response.headers_mut().insert(header::CONTENT_TYPE, problem);
            Ok(response)
        }
    }
}
