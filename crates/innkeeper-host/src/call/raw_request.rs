//! Requests and notifications with methods for which the host has no function.

use crate::connection::TaskUse;
use crate::session::HeaderValues;
use indexmap::IndexMap;
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::view::Task;
use innkeeper_protocol::{JsonText, http, method};
use serde_json::value::RawValue;

use super::{CallOptions, arguments, scan_request_error};
use crate::catalog::Catalog;
use crate::connection::pass_through::PassThrough;
use crate::connection::{Member, RequestOptions, RequestParams, RequestSpec, ResultRejection};
use crate::error::{CallError, Violation};
use crate::event::CallOutcome;
use crate::guard::ItemKind;
use crate::text::display_prefix;

/// The methods that the host handles itself, so that their results are checked and their effects
/// on the session are known.
const HANDLED_METHODS: [&str; 14] = [
    method::INITIALIZE,
    method::SERVER_DISCOVER,
    method::TOOLS_LIST,
    method::TOOLS_CALL,
    method::PROMPTS_LIST,
    method::PROMPTS_GET,
    method::RESOURCES_LIST,
    method::RESOURCES_TEMPLATES_LIST,
    method::RESOURCES_READ,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    method::SUBSCRIPTIONS_LISTEN,
    method::COMPLETION_COMPLETE,
    method::LOGGING_SET_LEVEL,
];

/// The start of the methods of requests about tasks.
const TASKS_PREFIX: &str = "tasks/";

/// Maximum length of a method in bytes: several times the longest method of MCP.
const MAX_METHOD_BYTES: usize = 256;

/// The notifications that the host sends itself.
const HANDLED_NOTIFICATIONS: [&str; 3] = [method::INITIALIZED, method::CANCELLED, method::PROGRESS];

/// The member of the parameters that the host writes.
const META: &str = "_meta";

/// Sends a request to a server.
pub(crate) async fn request(
    catalog: &Catalog,
    server: &str,
    method: &str,
    params: Option<&RawValue>,
    options: CallOptions,
) -> Result<Box<RawValue>, CallError> {
    if HANDLED_METHODS.contains(&method) || method.starts_with(method::NOTIFICATION_PREFIX) {
        return Err(handled_by_host(method));
    }
    check_method(method)?;
    let members = read_members(method, params)?;
    if members.contains_key(META) {
        return Err(invalid(method, "/_meta", "`_meta` belongs into `CallOptions::meta`"));
    }
    let (connection, timeout) = catalog.connection(server)?;
    let client_meta = &connection.negotiated.client_meta;
    let caller_meta = options.caller_meta(client_meta, method)?;
    let name = http::name_member(method).and_then(|member| members.get(member));
    let name: Option<String> = name.and_then(|name| serde_json::from_str(name.get()).ok());
    let caller = options.caller(method)?;
    let task_id = members.get("taskId").filter(|_| method.starts_with(TASKS_PREFIX));
    let task_id: Option<String> = task_id.and_then(|id| serde_json::from_str(id.get()).ok());
    let sent: Vec<Member<'_>> =
        members.iter().map(|(name, value)| (&**name, value as &(dyn JsonText + Sync))).collect();
    let meta = options.meta_for_request(client_meta, &caller_meta);
    let params = RequestParams::Members(&sent, meta);
    let timeout = options.timeout.unwrap_or(timeout);
    let spec = RequestSpec {
        headers: HeaderValues { name: name.as_deref(), arguments: &[] },
        retry_safe: false,
        task: match task_id.as_deref() {
            Some(id) if method == method::TASKS_RESULT => TaskUse::Awaits(id),
            _ => TaskUse::None,
        },
        options: RequestOptions {
            retries: Some(0),
            pass_through: PassThrough::default(),
            ..options.for_request(caller.as_ref())
        },
        ..RequestSpec::new(method.to_owned(), method, params, timeout)
    };
    // A task that the application polls has the result of a tool.
    let scanner = match method.starts_with(TASKS_PREFIX) {
        true => catalog.task_scanner(server)?,
        false => None,
    };
    let report = |verdict| connection.report_findings(ItemKind::Tool, method, verdict);
    let response = connection
        .request_raw(
            &spec,
            |raw| match report(scanner.and_then(|scanner| scanner.scan_result(raw))) {
                Some(findings) => Err(ResultRejection::Withheld(findings)),
                None => Ok(CallOutcome::Ok),
            },
            |error| report(scanner.and_then(|scanner| scan_request_error(scanner, error))),
        )
        .await;
    if let Some(task_id) = task_id.filter(|_| has_task_ended(method, &response)) {
        connection.session.end_task(&task_id);
    }
    response
}

/// Returns whether the response to a request about a task says that the task has ended.
fn has_task_ended(method: &str, response: &Result<Box<RawValue>, CallError>) -> bool {
    match response {
        Ok(_) if method == method::TASKS_RESULT => true,
        Ok(result) => Task::from_raw(result).is_ok_and(|task| task.status.is_terminal()),
        // The result of a failed task is an error, and a server forgets an expired task.
        Err(CallError::Server { error, .. }) => {
            method == method::TASKS_RESULT || error.code == code::INVALID_PARAMS
        }
        Err(_) => false,
    }
}

/// Sends a notification to a server.
pub(crate) fn notify(
    catalog: &Catalog,
    server: &str,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), CallError> {
    if HANDLED_NOTIFICATIONS.contains(&method) {
        return Err(handled_by_host(method));
    }
    if !method.starts_with(method::NOTIFICATION_PREFIX) {
        return Err(invalid(method, "", "expected a method that starts with `notifications/`"));
    }
    check_method(method)?;
    let members = read_members(method, params)?;
    if members.get(META).is_some_and(|meta| !meta.get().starts_with('{')) {
        return Err(invalid(method, "/_meta", "expected object"));
    }
    let (connection, timeout) = catalog.connection(server)?;
    let queued = connection.session.notify_with(method, params.map(|_| &members));
    queued.map_err(|error| connection.call_error(error, method, timeout))
}

/// Checks that a method fits into a header, because some transports send it there.
fn check_method(method: &str) -> Result<(), CallError> {
    let is_visible = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_graphic());
    if is_visible && method.len() <= MAX_METHOD_BYTES {
        return Ok(());
    }
    let message = format!("expected a method of 1 to {MAX_METHOD_BYTES} visible ASCII characters");
    Err(invalid(&display_prefix(method, MAX_METHOD_BYTES), "", &message))
}

/// Reads the members of the parameters; an object without members for `None`.
fn read_members(
    method: &str,
    params: Option<&RawValue>,
) -> Result<IndexMap<String, Box<RawValue>>, CallError> {
    let Some(params) = params else { return Ok(IndexMap::new()) };
    let values = arguments::parse_unique(params)
        .map_err(|violation| invalid(method, &violation.pointer, &violation.message))?;
    if !values.is_object() {
        return Err(invalid(method, "", "expected object: parameters are named"));
    }
    let members: IndexMap<String, Box<RawValue>> = serde_json::from_str(params.get())
        .map_err(|error| invalid(method, "", &error.to_string()))?;
    Ok(members)
}

fn handled_by_host(method: &str) -> CallError {
    invalid(method, "", "the host has a function of its own for this method")
}

fn invalid(method: &str, pointer: &str, message: &str) -> CallError {
    let problems = vec![Violation::new(pointer.to_owned(), message.to_owned())];
    CallError::Validation { item: method.into(), problems }
}

#[cfg(test)]
mod tests {
    use innkeeper_protocol::ErrorObject;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_has_ended_with_its_result_with_its_status_or_if_the_server_does_not_know_it() {
        let task = |status: &str| {
            let task = json!({ "taskId": "t", "status": status, "ttl": null,
                "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z" });
            Ok(RawValue::from_string(task.to_string()).unwrap())
        };
        let error = |code: i64| {
            let error = ErrorObject { code, message: "no".to_owned(), data: None };
            Err(CallError::Server { server: "fx".into(), item: "t".into(), error })
        };
        for (method, response, expected) in [
            (method::TASKS_RESULT, task("working"), true),
            (method::TASKS_GET, task("working"), false),
            (method::TASKS_GET, task("completed"), true),
            (method::TASKS_CANCEL, task("cancelled"), true),
            (method::TASKS_RESULT, error(code::INTERNAL_ERROR), true),
            (method::TASKS_GET, error(code::INTERNAL_ERROR), false),
            (method::TASKS_GET, error(code::INVALID_PARAMS), true),
        ] {
            assert_eq!(has_task_ended(method, &response), expected, "{method} {response:?}");
        }
    }
}
