//! One row of the table.

use std::sync::Arc;

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Router, middleware};

use crate::server::App;
use crate::server::auth::Access;
use crate::server::http::{Entry, enter};

/// Bytes of a body of a route that does not say more.
const BODY_MAX: u64 = 64 << 10;

/// A route.
pub struct Route {
    /// Method of HTTP.
    pub method: Method,
    /// Path, with parameters in braces.
    pub path: &'static str,
    /// What OpenAPI and clients call it.
    pub operation: &'static str,
    /// What it does, in few words.
    pub summary: &'static str,
    /// Who may use it.
    pub access: Access,
    /// Bytes that a body may have.
    body_max: BodyMax,
    handler: MethodRouter<Arc<App>>,
}

/// Bytes that a body may have.
enum BodyMax {
    Bytes(u64),
    /// As many as an upload.
    Upload,
}

impl Route {
    fn new<T: 'static, H: Handler<T, Arc<App>>>(
        method: (Method, MethodFilter),
        path: &'static str,
        names: (&'static str, &'static str),
        access: Access,
        handler: H,
    ) -> Self {
        let (method, filter) = method;
        let (operation, summary) = names;
        let body_max = BodyMax::Bytes(BODY_MAX);
        Self { method, path, operation, summary, access, body_max, handler: on(filter, handler) }
    }

    /// With bodies of at most so many bytes.
    #[must_use]
    pub fn body_max(self, bytes: u64) -> Self {
        Self { body_max: BodyMax::Bytes(bytes), ..self }
    }

    /// With bodies as long as an upload may be.
    #[must_use]
    pub fn takes_upload(self) -> Self {
        Self { body_max: BodyMax::Upload, ..self }
    }

    /// Adds it to a router, with its door in front.
    pub(super) fn mount(self, router: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
        let body_max = match self.body_max {
            BodyMax::Bytes(bytes) => bytes,
            BodyMax::Upload => app.settings.upload_max_bytes,
        };
        let entry = Entry { access: self.access, body_max };
        let door = middleware::from_fn_with_state((Arc::clone(app), entry), enter);
        router.route(self.path, self.handler.route_layer(door))
    }
}

macro_rules! methods {
    ($($name:ident $method:ident),*) => {$(
        #[doc = concat!("A row with the method ", stringify!($method), ".")]
        pub(super) fn $name<T: 'static, H: Handler<T, Arc<App>>>(
            path: &'static str,
            operation: &'static str,
            summary: &'static str,
            access: Access,
            handler: H,
        ) -> Route {
            Route::new((Method::$method, MethodFilter::$method), path, (operation, summary), access, handler)
        }
    )*};
}

methods!(get GET, post POST, patch PATCH, delete DELETE);
