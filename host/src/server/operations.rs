//! Long work that a request begins: it goes on when the client has gone, and its outcome is kept for a day.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::App;
use super::http::{Answer, Problem};
use super::id::Id;
use super::meta::MetaError;
use super::meta::operations::{self as store, Operation, OperationState};

/// How long an outcome is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;
/// Operations of one tenant at the same time, and of all.
const OF_TENANT_MAX: usize = 4;
const OF_ALL_MAX: usize = 64;

/// What goes on.
#[derive(Debug, Default)]
pub struct Operations(Mutex<HashMap<Id, Running>>);

#[derive(Debug)]
struct Running {
    tenant: Id,
    /// Closed when it has ended.
    ended: watch::Receiver<()>,
}

impl Operations {
    fn begin(&self, tenant: &Id, id: &Id) -> Result<watch::Sender<()>, Problem> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = running.values().filter(|one| one.tenant == *tenant).count();
        if own >= OF_TENANT_MAX || running.len() >= OF_ALL_MAX {
            let detail = format!("{own} operations of this tenant go on, {} of all; try again", running.len());
            return Err(Problem::new("OPERATIONS_BUSY", detail).retry_after(5));
        }
        let (sender, ended) = watch::channel(());
        running.insert(id.clone(), Running { tenant: tenant.clone(), ended });
        Ok(sender)
    }

    fn end(&self, id: &Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    fn ended(&self, id: &str) -> Option<watch::Receiver<()>> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.iter().find(|(own, _)| own.as_str() == id).map(|(_, one)| one.ended.clone())
    }
}

/// Begins an operation; the work may block.
///
/// # Errors
/// Too many go on already; the store fails.
pub async fn begin(
    app: &Arc<App>,
    tenant: &Id,
    kind: &str,
    work: impl FnOnce(&App) -> Result<Answer, Problem> + Send + 'static,
) -> Result<Operation, Problem> {
    let id = Id::random()?;
    let running = app.operations.begin(tenant, &id)?;
    let operation = Operation {
        id: id.clone(),
        kind: kind.to_owned(),
        state: OperationState::Running,
        created_ms: app.now_ms(),
        ended_ms: None,
    };
    let (owner, begun) = (tenant.clone(), operation.clone());
    if let Err(problem) = app.write(move |writing| Ok(store::put(writing, &owner, &begun)?)).await {
        app.operations.end(&id);
        return Err(problem);
    }
    let (app, owner, begun) = (Arc::clone(app), tenant.clone(), operation.clone());
    tokio::spawn(async move {
        let state = match app.blocking(work).await {
            Ok(Answer { location, body, .. }) => {
                OperationState::Done { location: location.unwrap_or_default(), result: body }
            }
            Err(problem) => failed(&problem),
        };
        let ended = Operation { state, ended_ms: Some(app.now_ms()), ..begun };
        if let Err(problem) = app.write(move |writing| Ok(store::put(writing, &owner, &ended)?)).await {
            tracing::error!(code = problem.code(), operation = %id, "the outcome of an operation is lost");
        }
        app.operations.end(&id);
        drop(running);
    });
    Ok(operation)
}

/// An operation, at the latest after so long or when it has ended.
///
/// # Errors
/// There is none with this id; the store fails.
pub async fn wait(app: &Arc<App>, tenant: &Id, id: &str, patience: Duration) -> Result<Operation, Problem> {
    if let Some(mut ended) = app.operations.ended(id) {
        // Nothing is ever sent: the channel closes. Whether that or the time came first is seen in the store.
        let _either = tokio::time::timeout(patience, ended.changed()).await;
    }
    let (tenant, id) = (tenant.clone(), id.to_owned());
    app.read(move |view| store::get(view, &tenant, &id)?.ok_or_else(Problem::not_found)).await
}

/// After a start nothing goes on: what did was cut off.
pub(super) fn cut_off(app: &App) -> Result<(), MetaError> {
    let now_ms = app.now_ms();
    let problem = Problem::new("OPERATION_INTERRUPTED", "the server stopped in the middle of it; send it again");
    app.meta.write(|writing| {
        for (key, operation) in store::everyone(writing)? {
            if matches!(operation.state, OperationState::Running) {
                let ended = Operation { state: failed(&problem), ended_ms: Some(now_ms), ..operation };
                store::put_at(writing, &key, &ended)?;
            }
        }
        Ok(())
    })
}

/// Forgets outcomes that are not kept any more.
pub(super) fn sweep(app: &App) -> Result<(), MetaError> {
    let now_ms = app.now_ms();
    app.meta.write(|writing| {
        for (key, operation) in store::everyone(writing)? {
            if operation.ended_ms.is_some_and(|ended| now_ms >= ended.saturating_add(KEPT_MS)) {
                store::remove_at(writing, &key)?;
            }
        }
        Ok(())
    })
}

fn failed(problem: &Problem) -> OperationState {
    OperationState::Failed { status: problem.status().as_u16(), problem: problem.document() }
}
