//! Bodies of HTTP error answers.

use serde_json::json;

use crate::error::Error;

/// Type and code of a refused request.
pub(crate) const ERROR_CODE: &str = "invalid_request_error";

/// The body in the shape of Chat Completions and Responses.
#[must_use]
pub fn openai_error_body(error: &Error) -> String {
    let param = match error {
        Error::Conversion { param, .. } => param.as_deref(),
        _ => None,
    };
    let message = error.to_string();
    json!({"error": {"message": message, "type": ERROR_CODE, "param": param, "code": ERROR_CODE}})
        .to_string()
}

/// The body in the shape of Messages.
#[must_use]
pub fn anthropic_error_body(error: &Error) -> String {
    let message = error.to_string();
    json!({"type": "error", "error": {"type": ERROR_CODE, "message": message}}).to_string()
}
