//! Checks the messages of a client against the JSON Schemas of the MCP specification.
//!
//! `schemas/generate.py` writes the schemas.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

/// Prefixes of methods that a test may invent, in requests and in notifications.
const INVENTED_PREFIXES: &[&str] = &["example/", "notifications/example"];

/// Prefix of the methods of the extension for tasks, whose modern form the schemas do not contain.
const TASK_PREFIX: &str = "tasks/";

/// The member of `_meta` that every modern request has.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The schemas of one era, compiled at their first use.
struct EraSchemas {
    schema: Value,
    validators: Mutex<HashMap<String, &'static Validator>>,
}

static LEGACY: LazyLock<EraSchemas> =
    LazyLock::new(|| EraSchemas::parse(include_str!("../schemas/2025-11-25.json")));

static MODERN: LazyLock<EraSchemas> =
    LazyLock::new(|| EraSchemas::parse(include_str!("../schemas/2026-07-28.json")));

impl EraSchemas {
    fn parse(text: &str) -> Self {
        let schema = serde_json::from_str(text).expect("the file of a schema is JSON");
        Self { schema, validators: Mutex::default() }
    }

    /// Returns the reference to the type of a message, if the era has the message.
    fn reference(&self, group: &str, name: &str) -> Option<&str> {
        self.schema[group].get(name)?.as_str()
    }

    /// Checks a value against the type behind a reference.
    fn check(&self, reference: &str, value: &Value) -> Result<(), String> {
        let errors: Vec<String> = self
            .validator(reference)
            .iter_errors(value)
            .map(|error| format!("`{}`: {error}", error.instance_path()))
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    /// The validators of a process live as long as the process.
    fn validator(&self, reference: &str) -> &'static Validator {
        let mut validators = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        validators.entry(reference.to_owned()).or_insert_with(|| {
            let schema = json!({"$ref": reference, "$defs": self.schema["$defs"]});
            let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
            Box::leak(Box::new(validator))
        })
    }
}

/// Checks the messages of one client, in the order in which the server receives them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientMessageChecker {
    /// Whether the client has sent `initialize`: requests without modern metadata are then legacy.
    is_initialized: bool,
}

impl ClientMessageChecker {
    /// Checks the next message; returns the violations of the specification's schema.
    pub(crate) fn check(&mut self, message: &Value) -> Result<(), String> {
        let Some(members) = message.as_object() else {
            return Err("the message is not an object".to_owned());
        };
        let method = members.get("method").and_then(Value::as_str);
        match (method, members.contains_key("id")) {
            (Some(method), true) => self.check_request(method, message),
            (Some(method), false) => self.check_notification(method, message),
            (None, _) => check_response(message),
        }
    }

    fn check_request(&mut self, method: &str, request: &Value) -> Result<(), String> {
        self.is_initialized |= method == "initialize";
        let is_modern = method == "server/discover"
            || request["params"]["_meta"].get(VERSION_KEY).is_some()
            || !self.is_initialized;
        let schemas: &EraSchemas = if is_modern { &MODERN } else { &LEGACY };
        if let Some(reference) = schemas.reference("requests", method) {
            return schemas.check(reference, request);
        }
        if is_invented(method) || (is_modern && method.starts_with(TASK_PREFIX)) {
            return check_envelope("request", request);
        }
        Err(format!("the era has no request `{method}`"))
    }

    fn check_notification(&self, method: &str, notification: &Value) -> Result<(), String> {
        let schemas: &EraSchemas = if self.is_initialized { &LEGACY } else { &MODERN };
        match schemas.reference("notifications", method) {
            Some(reference) => schemas.check(reference, notification),
            None if is_invented(method) => check_envelope("notification", notification),
            None => Err(format!("the era has no notification `{method}`")),
        }
    }
}

fn is_invented(method: &str) -> bool {
    INVENTED_PREFIXES.iter().any(|prefix| method.starts_with(prefix))
}

/// Checks a response to a request of the server. A response does not name its method; a member that
/// only one type requires selects the type of the result.
fn check_response(response: &Value) -> Result<(), String> {
    let Some(result) = response.get("result") else { return check_envelope("error", response) };
    check_envelope("result", response)?;
    let method = [
        ("roots", "roots/list"),
        ("action", "elicitation/create"),
        ("role", "sampling/createMessage"),
    ]
    .into_iter()
    .find_map(|(member, method)| result.get(member).map(|_| method));
    let Some(method) = method else { return Ok(()) };
    match LEGACY.reference("results", method) {
        Some(reference) => LEGACY.check(reference, result),
        None => Err(format!("no result of `{method}`")),
    }
}

fn check_envelope(kind: &str, message: &Value) -> Result<(), String> {
    match LEGACY.reference("envelopes", kind) {
        Some(reference) => LEGACY.check(reference, message),
        None => Err(format!("no envelope `{kind}`")),
    }
}

#[cfg(test)]
mod tests;
