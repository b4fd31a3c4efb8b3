//! `/v1/openapi.json`: the table as a document of OpenAPI 3.1.

use axum::http::Method;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{KnownFormat, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, HttpMethod, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, PathItem,
    Paths, Ref, Required, ResponseBuilder, SchemaFormat,
};

use super::route::Shape;
use super::{Route, table};
use crate::server::auth::Access;

/// What went wrong, by RFC 9457.
#[derive(Debug, Serialize, ToSchema)]
struct ProblemDocument {
    /// A name of the kind of problem.
    r#type: String,
    /// The status in words.
    title: String,
    /// Status of HTTP.
    status: u16,
    /// What happened, where, and what to do.
    detail: String,
    /// The stable code: match on it.
    code: String,
}

pub(super) async fn get() -> Response {
    axum::Json(document()).into_response()
}

/// The document.
pub fn document() -> OpenApi {
    let mut schemas =
        vec![(ProblemDocument::name().into_owned(), <ProblemDocument as utoipa::PartialSchema>::schema())];
    let mut paths = Paths::new();
    for route in table() {
        for shape in [route.takes, route.answers].into_iter().flatten() {
            if let Shape::Json { collect, .. } = shape {
                collect(&mut schemas);
            }
        }
        let item = PathItem::new(http_method(&route.method), operation(&route));
        match paths.paths.get_mut(route.path) {
            Some(there) => there.merge_operations(item),
            None => drop(paths.paths.insert(route.path.to_owned(), item)),
        }
    }
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = ComponentsBuilder::new().schemas_from_iter(schemas).security_scheme("token", bearer).build();
    let info = InfoBuilder::new().title("Tidemill").version(env!("CARGO_PKG_VERSION")).build();
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components)).build()
}

fn operation(route: &Route) -> OperationBuilder {
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemDocument::name()))).build();
    let failed = ResponseBuilder::new().description("What went wrong").content("application/problem+json", problem);
    let mut done = ResponseBuilder::new().description("Done");
    if let Some((media_type, content)) = route.answers.map(content) {
        done = done.content(media_type, content.build());
    }
    let mut operation = OperationBuilder::new()
        .operation_id(Some(route.operation))
        .summary(Some(route.summary))
        .response("2XX", done.build())
        .response("default", failed.build());
    for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True);
        operation = operation.parameter(parameter.schema(Some(text)));
    }
    if let Some((media_type, content)) = route.takes.map(content) {
        let body = RequestBodyBuilder::new().required(Some(Required::True)).content(media_type, content.build());
        operation = operation.request_body(Some(body.build()));
    }
    if route.access != Access::Open {
        operation = operation.security(SecurityRequirement::new("token", Vec::<String>::new()));
    }
    operation
}

fn content(shape: Shape) -> (&'static str, ContentBuilder) {
    match shape {
        Shape::Json { name, .. } => {
            ("application/json", ContentBuilder::new().schema(Some(Ref::from_schema_name(name()))))
        }
        Shape::Bytes(media_type) => {
            let bytes = ObjectBuilder::new().schema_type(Type::String);
            let bytes = bytes.format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
            (media_type, ContentBuilder::new().schema(Some(bytes)))
        }
    }
}

fn http_method(method: &Method) -> HttpMethod {
    match *method {
        Method::POST => HttpMethod::Post,
        Method::PUT => HttpMethod::Put,
        Method::PATCH => HttpMethod::Patch,
        Method::DELETE => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}
