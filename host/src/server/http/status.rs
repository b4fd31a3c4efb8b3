//! Which status of HTTP a code has: the one list of it.

use axum::http::StatusCode;

/// Codes by status.
pub const STATUS: &[(StatusCode, &[&str])] = &[
    (
        StatusCode::BAD_REQUEST,
        &[
            "BODY_INCOMPLETE",
            "CURSOR_INVALID",
            "HEADER_INVALID",
            "IDEMPOTENCY_KEY_NOT_TAKEN",
            "JSON_INVALID",
            "QUERY_STRING_INVALID",
        ],
    ),
    (StatusCode::UNAUTHORIZED, &["TOKEN_MISSING", "TOKEN_INVALID"]),
    (StatusCode::FORBIDDEN, &["ROLE_MISSING", "SCOPE_TOO_WIDE", "ORIGIN_NOT_ALLOWED"]),
    (StatusCode::NOT_FOUND, &["NOT_FOUND"]),
    (StatusCode::METHOD_NOT_ALLOWED, &["METHOD_NOT_ALLOWED"]),
    (StatusCode::REQUEST_TIMEOUT, &["BODY_TOO_SLOW"]),
    (
        StatusCode::CONFLICT,
        &[
            "NAME_TAKEN",
            "PRODUCER_FENCED",
            "PRODUCER_SEQUENCE_GAP",
            "PRODUCER_SEQUENCE_OLD",
            "TENANT_NOT_EMPTY",
            "VERSION_IN_USE",
        ],
    ),
    (StatusCode::PRECONDITION_FAILED, &["PRECONDITION_FAILED"]),
    (StatusCode::GONE, &["RESULTS_POSITION_EXPIRED"]),
    (StatusCode::PAYLOAD_TOO_LARGE, &["BODY_TOO_LARGE", "INGEST_TOO_MANY_BYTES", "INGEST_TOO_MANY_ROWS"]),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, &["CONTENT_TYPE_NOT_TAKEN"]),
    (StatusCode::MISDIRECTED_REQUEST, &["HOST_NOT_ALLOWED"]),
    (
        StatusCode::UNPROCESSABLE_ENTITY,
        &[
            "CONFIG_INVALID",
            "HOSTED_SETTING_NOT_ALLOWED",
            "HOSTED_SETTING_OUT_OF_BOUNDS",
            "IDEMPOTENCY_KEY_REUSED",
            "INGEST_BODY_INVALID",
            "INGEST_NAME_INVALID",
            "INGEST_ROW_INVALID",
            "INGEST_SCHEMA_MISMATCH",
            "NAME_INVALID",
            "PROCESSOR_UNKNOWN",
            "RESULTS_POSITION_INVALID",
            "RESULTS_POSITION_UNKNOWN",
            "SETTING_INVALID",
            "SIGNATURE_INVALID",
            "SIGNATURE_MISSING",
            "VERSION_UNKNOWN",
        ],
    ),
    (
        StatusCode::TOO_MANY_REQUESTS,
        &["INGEST_BACKLOG_FULL", "INGEST_KEYS_FULL", "INGEST_PRODUCERS_FULL", "LOGIN_RATE_LIMITED", "OPERATIONS_BUSY"],
    ),
    (
        StatusCode::INTERNAL_SERVER_ERROR,
        &[
            "CHILD_DIED_EARLY",
            "CHILD_NOT_STARTED",
            "COMPILER_UNAVAILABLE",
            "COMPONENT_DAMAGED",
            "COMPONENT_STORE_FAILED",
            "DATA_DAMAGED",
            "DATA_NOT_EMPTY",
            "DATA_NOT_FOUND",
            "DATA_UNUSABLE",
            "DATA_VERSION_UNSUPPORTED",
            "META_DAMAGED",
            "META_UNUSABLE",
            "META_VERSION_UNSUPPORTED",
            "SANDBOX_FAILED",
            "SANDBOX_UNAVAILABLE",
            "SERVER_ALREADY_RUNNING",
            "SERVER_DEFECT",
        ],
    ),
    (
        StatusCode::SERVICE_UNAVAILABLE,
        &["COMPILE_WALL_TIME", "OPERATION_INTERRUPTED", "SERVER_BUSY", "SERVER_STOPPING"],
    ),
];

/// The status of a code. One that is not in the list is a failure of the host.
pub fn status_of(code: &str) -> StatusCode {
    let found = STATUS.iter().find(|(_, codes)| codes.contains(&code));
    found.map_or(StatusCode::INTERNAL_SERVER_ERROR, |(status, _)| *status)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_code_has_one_status() {
        let all: Vec<_> = STATUS.iter().flat_map(|(_, codes)| *codes).collect();
        let different: BTreeSet<_> = all.iter().collect();

        assert_eq!(all.len(), different.len());
    }
}
