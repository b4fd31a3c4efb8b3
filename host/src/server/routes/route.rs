//! One row of the table.

use std::sync::Arc;

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Router, middleware};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};

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
    /// What it is sent.
    pub takes: Option<Shape>,
    /// What it answers.
    pub answers: Option<Shape>,
    body_max: BodyMax,
    handler: MethodRouter<Arc<App>>,
}

/// What a body is.
#[derive(Clone, Copy)]
pub enum Shape {
    /// JSON of a type.
    Json {
        /// The type's name.
        name: fn() -> String,
        /// Adds its schema and those that it names.
        collect: fn(&mut Schemas),
    },
    /// Bytes of this media type.
    Bytes(&'static str),
}

/// Schemas by name.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

impl Shape {
    fn of<T: ToSchema>() -> Self {
        Self::Json {
            name: || T::name().into_owned(),
            collect: |schemas| {
                schemas.push((T::name().into_owned(), T::schema()));
                T::schemas(schemas);
            },
        }
    }

    /// A page of a list, as [`List`](crate::server::http::List) is written.
    fn list_of<T: ToSchema>() -> Self {
        Self::Json {
            name: || format!("{}List", T::name()),
            collect: |schemas| {
                let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
                let cursor = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
                let page = ObjectBuilder::new().property("items", items).required("items");
                let page = page.property("next_cursor", cursor).required("next_cursor").build();
                schemas.push((format!("{}List", T::name()), page.into()));
                schemas.push((T::name().into_owned(), T::schema()));
                T::schemas(schemas);
            },
        }
    }
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
        let handler = on(filter, handler);
        Self { method, path, operation, summary, access, takes: None, answers: None, body_max, handler }
    }

    /// It is sent this document.
    #[must_use]
    pub fn takes<T: ToSchema>(self) -> Self {
        Self { takes: Some(Shape::of::<T>()), ..self }
    }

    /// It is sent such bytes, at most so many.
    #[must_use]
    pub fn takes_bytes(self, media_type: &'static str, max: u64) -> Self {
        Self { takes: Some(Shape::Bytes(media_type)), body_max: BodyMax::Bytes(max), ..self }
    }

    /// It is sent such bytes, as many as an upload may have.
    #[must_use]
    pub fn takes_upload(self, media_type: &'static str) -> Self {
        Self { takes: Some(Shape::Bytes(media_type)), body_max: BodyMax::Upload, ..self }
    }

    /// It answers with this document.
    #[must_use]
    pub fn answers<T: ToSchema>(self) -> Self {
        Self { answers: Some(Shape::of::<T>()), ..self }
    }

    /// It answers with pages of a list of these.
    #[must_use]
    pub fn lists<T: ToSchema>(self) -> Self {
        Self { answers: Some(Shape::list_of::<T>()), ..self }
    }

    /// Adds it to a router, with its door in front.
    pub(super) fn mount(self, router: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
        let body_max = match self.body_max {
            BodyMax::Bytes(bytes) => bytes,
            BodyMax::Upload => app.settings.upload_max_bytes,
        };
        let entry = Entry { operation: self.operation, access: self.access, body_max };
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

methods!(get GET, post POST, put PUT, patch PATCH, delete DELETE);
