//! The error responses of plain HTTP (RFC 9457).

use axum::body::Body;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use innkeeper_host::display_safe;
use innkeeper_protocol::envelope::code;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::{ErrorKind, RpcError};
use crate::rejection::Rejection;

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// An error response: what failed, for which tool, and what the client can do.
#[derive(Debug)]
pub(crate) struct Problem(Box<ProblemResponse>);

#[derive(Debug)]
struct ProblemResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: ProblemBody,
}

#[derive(Debug, Serialize)]
struct ProblemBody {
    #[serde(rename = "type")]
    uri: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The code of JSON-RPC for the same error.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    /// What the server or the gateway says about the error in addition.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

impl Problem {
    fn new(status: StatusCode, detail: String) -> Self {
        let body = ProblemBody {
            uri: "about:blank",
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail,
            hint: None,
            tool: None,
            code: None,
            data: None,
        };
        Self(Box::new(ProblemResponse { status, headers: HeaderMap::new(), body }))
    }

    pub(super) fn bad_request(detail: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// No offered tool has the name. A denied tool has the same response.
    pub(super) fn unknown_tool(name: &str) -> Self {
        let detail = format!("unknown tool `{}`", display_safe(name));
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn method_not_allowed(allowed: &Method) -> Self {
        let detail = format!("the path accepts {allowed}");
        let mut problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, detail);
        let allow = HeaderValue::from_str(allowed.as_str());
        problem.0.headers.extend(allow.ok().map(|allow| (ALLOW, allow)));
        problem
    }

    pub(crate) fn from_rejection(rejection: &Rejection) -> Self {
        let mut problem = Self::new(rejection.status(), rejection.message().to_owned());
        problem.0.headers = rejection.headers().clone();
        problem
    }

    /// Converts the error of a request to the gateway.
    pub(super) fn from_error(error: RpcError) -> Self {
        let RpcError { kind, code: number, message, data } = error;
        let (status, hint) = match kind {
            ErrorKind::Request => (StatusCode::BAD_REQUEST, None),
            ErrorKind::UnknownItem => (StatusCode::NOT_FOUND, None),
            ErrorKind::Rate { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                Some("send the request again after the seconds of `Retry-After`"),
            ),
            ErrorKind::Server if number == code::INVALID_PARAMS => (StatusCode::BAD_REQUEST, None),
            ErrorKind::Server => (
                StatusCode::BAD_GATEWAY,
                Some("the server of the tool responded with this error; its log may say more"),
            ),
            ErrorKind::Unavailable => (
                StatusCode::BAD_GATEWAY,
                Some("try again later; if `data.mayHaveRun` is true, the tool may have run"),
            ),
            ErrorKind::ProcessLimit => (
                StatusCode::SERVICE_UNAVAILABLE,
                Some("the tool did not run; `data.scope` says whose limit it is"),
            ),
            ErrorKind::Timeout => (
                StatusCode::GATEWAY_TIMEOUT,
                Some("the tool may have run; `timeout` of the server is the time for a call"),
            ),
            ErrorKind::Protocol => (
                StatusCode::BAD_GATEWAY,
                Some("the tool may have run; the response of its server is invalid"),
            ),
            ErrorKind::Withheld => (
                StatusCode::BAD_GATEWAY,
                Some("the tool ran; `guard` of its server withholds the result"),
            ),
            ErrorKind::NotApproved => (
                StatusCode::FORBIDDEN,
                Some("the tool did not run; the operator of the gateway approves its calls"),
            ),
            ErrorKind::Cancelled => (
                StatusCode::BAD_GATEWAY,
                Some("the tool may have run; ask the operators of the gateway"),
            ),
            ErrorKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, None),
        };
        let mut problem = Self::new(status, message);
        problem.0.body.code = Some(number);
        problem.0.body.data = data;
        problem.0.body.hint = hint.map(ToOwned::to_owned);
        if let ErrorKind::Rate { retry_after } = kind {
            let rejection = Rejection::new(status, "").with_retry_after(retry_after);
            let delay = rejection.headers().get(RETRY_AFTER).cloned();
            problem.0.headers.extend(delay.map(|delay| (RETRY_AFTER, delay)));
        }
        problem
    }

    #[must_use]
    pub(super) fn with_hint(mut self, hint: String) -> Self {
        self.0.body.hint = Some(hint);
        self
    }

    #[must_use]
    pub(super) fn with_tool(mut self, name: &str) -> Self {
        self.0.body.tool = Some(name.to_owned());
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the result of a tool that says the same, after the status of the response has left.
    pub(super) fn into_tool_result(self) -> Bytes {
        let problem = self.0.body;
        let text = match &problem.hint {
            Some(hint) => format!("{}; {hint}", problem.detail),
            None => problem.detail.clone(),
        };
        let result = json!({
            "content": [{ "type": "text", "text": text }],
            "isError": true,
            "problem": problem,
        });
        result.to_string().into()
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let ProblemResponse { status, mut headers, body } = *self.0;
        headers.insert(CONTENT_TYPE, PROBLEM_JSON);
        // Strings, numbers and raw JSON always serialize.
        let mut response = Response::new(Body::from(serde_json::to_vec(&body).unwrap_or_default()));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}
