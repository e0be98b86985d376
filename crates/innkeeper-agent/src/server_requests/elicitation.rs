//! Answers `elicitation/create` with the input of the user.

use innkeeper_host::ServerRequest;
use serde_json::{Map, Value, json};
use url::{Host, Url};

use super::audit::{AuditedRequest, RequestOutcome};
use super::form::Form;
use super::handler::{HandlerState, RequestAnswer, RequestFailure};
use super::user_prompter::{ElicitationMode, ElicitationRequest, ElicitationResponse};

#[derive(Debug, PartialEq)]
pub(super) struct ElicitationParams {
    message: String,
    mode: ParsedMode,
}

#[derive(Debug, PartialEq)]
enum ParsedMode {
    Form(Form),
    Url { url: String, host: String },
}

/// Asks the user. Without a user interface, the answer is `decline`.
pub(super) async fn ask_user(
    state: &HandlerState,
    request: &ServerRequest,
    audit: &mut AuditedRequest,
) -> Result<RequestAnswer, RequestFailure> {
    let params = request.params.as_deref().map_or("null", |params| params.get());
    let params = ElicitationParams::parse(params).map_err(RequestFailure::invalid_params)?;
    let response = match &state.settings.prompter {
        None => None,
        Some(prompter) => {
            let question = ElicitationRequest {
                server: &request.server,
                call: &request.call,
                message: &params.message,
                mode: params.mode.as_mode(),
            };
            Some(prompter.answer_elicitation(question).await)
        }
    };
    match response {
        None => Ok(denied("decline", "no user interface")),
        Some(ElicitationResponse::Decline) => Ok(denied("decline", "the user declined")),
        Some(ElicitationResponse::Cancel) => Ok(denied("cancel", "the user cancelled")),
        Some(ElicitationResponse::Accept(values)) => {
            let result = params.mode.accept(&values)?;
            audit.record_response(result.to_string(), None);
            Ok(RequestAnswer { outcome: RequestOutcome::Answered, result })
        }
    }
}

fn denied(action: &str, reason: &'static str) -> RequestAnswer {
    RequestAnswer { outcome: RequestOutcome::Denied(reason), result: json!({ "action": action }) }
}

impl ElicitationParams {
    /// Parses the parameters; the error is a message for the server.
    pub(super) fn parse(params: &str) -> Result<Self, String> {
        let params: Map<String, Value> =
            serde_json::from_str(params).map_err(|_| "the parameters are no object".to_owned())?;
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        let message = text("message").ok_or("`message` is missing")?.to_owned();
        let mode = match params.get("mode").filter(|mode| !mode.is_null()).map(Value::as_str) {
            None | Some(Some("form")) => {
                let schema = params.get("requestedSchema").ok_or("`requestedSchema` is missing")?;
                ParsedMode::Form(Form::parse(schema).map_err(|error| error.to_string())?)
            }
            Some(Some("url")) => parse_url(text("url").ok_or("`url` is missing")?)?,
            Some(_) => return Err("the mode is not `form` or `url`".to_owned()),
        };
        Ok(Self { message, mode })
    }
}

impl ParsedMode {
    fn as_mode(&self) -> ElicitationMode<'_> {
        match self {
            Self::Form(form) => ElicitationMode::Form(form),
            Self::Url { url, host } => ElicitationMode::Url { url, host },
        }
    }

    /// Returns the result of an accepted elicitation. The error names no value, because the values
    /// were not sent.
    fn accept(&self, values: &Map<String, Value>) -> Result<Value, RequestFailure> {
        match self {
            Self::Url { .. } => Ok(json!({ "action": "accept" })),
            Self::Form(form) => match form.check(values) {
                Ok(()) => Ok(json!({ "action": "accept", "content": values })),
                Err(problems) => {
                    let fields: Vec<_> =
                        problems.iter().map(|problem| format!("`{}`", problem.field)).collect();
                    let fields = fields.join(", ");
                    let message = format!("the user interface returned invalid values of {fields}");
                    Err(RequestFailure::internal_error("invalid values", message))
                }
            },
        }
    }
}

/// Checks the URL of an elicitation: `https` to a named host, or `http` to this machine, and no user
/// name, which makes a URL look like another.
fn parse_url(text: &str) -> Result<ParsedMode, String> {
    let url = Url::parse(text).map_err(|error| format!("invalid `url`: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`url` contains a user name".to_owned());
    }
    let is_own_machine = match url.host() {
        Some(Host::Domain(domain)) => domain == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_named = matches!(url.host(), Some(Host::Domain(_)));
    let is_permitted = match url.scheme() {
        "https" => is_named || is_own_machine,
        "http" => is_own_machine,
        _ => false,
    };
    match url.host_str().filter(|_| is_permitted) {
        Some(host) => Ok(ParsedMode::Url { host: host.to_owned(), url: url.into() }),
        None => Err("`url` is not `https` to a host with a name".to_owned()),
    }
}

#[cfg(test)]
mod tests;
