//! Prompts and resources: what is kept of them, else what the server says now, looked at either way.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::{check_prompt_result, check_read_result};
use innkeeper_protocol::{ViewError, method};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{CallOptions, ItemParams, in_fault};
use crate::cache::{Answer, Found, Key, Missed, Reply};
use crate::catalog::Catalog;
use crate::error::{ArgumentProblem, CallError, Lost};
use crate::event::CallOutcome;
use crate::guard::{Attention, Of};
use crate::server::connection::{Ask, Connection, Unfit};
use crate::server::meta::Meta;
use crate::server::rounds::Further;
use crate::server::session::Fault;

#[derive(Serialize)]
struct ReadParams<'a> {
    uri: &'a str,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
    #[serde(rename = "inputResponses", skip_serializing_if = "Option::is_none")]
    responses: Option<Arc<RawValue>>,
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    state: Option<Arc<RawValue>>,
}

/// Gets a prompt by its public name.
pub(crate) async fn prompt(
    catalog: &Catalog,
    name: &str,
    arguments: &Map<String, Value>,
    options: CallOptions,
) -> Result<Box<RawValue>, CallError> {
    let key = Key::prompt(name, arguments);
    let route = match catalog.prompt(name) {
        Ok(route) => route,
        Err(error) => return away(catalog, (Of::Prompt, name), &key, &options, error),
    };
    let problems = problems(&route.required, arguments);
    if !problems.is_empty() {
        return Err(CallError::Validation { item: name.into(), problems });
    }
    let connection = &*route.connection;
    let given = (!arguments.is_empty()).then_some(arguments);
    let asked = Asked {
        method: method::PROMPTS_GET,
        item: &route.prompt,
        key: &key,
        connection,
        attention: route.attention.as_deref(),
    };
    let params = |id, Further { responses, state, carried }: Further| ItemParams {
        name: &route.prompt,
        arguments: given,
        meta: connection.identity.carrying(options.token(id), carried),
        responses,
        state,
        task: None,
    };
    let timeout = options.timeout.unwrap_or(route.timeout);
    asked.answer(timeout, &options, params, check_prompt_result).await
}

/// What is wrong with the arguments of a prompt.
fn problems(required: &[Box<str>], arguments: &Map<String, Value>) -> Vec<ArgumentProblem> {
    let mut problems = Vec::new();
    for required in required.iter().filter(|required| !arguments.contains_key(&***required)) {
        let message = format!("missing required argument `{required}`");
        problems.push(ArgumentProblem { pointer: String::new(), message });
    }
    for (key, _) in arguments.iter().filter(|(_, value)| !value.is_string()) {
        let message = "expected string: arguments of prompts are text".to_owned();
        let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        problems.push(ArgumentProblem { pointer, message });
    }
    problems
}

/// Reads a resource, from `server` if it is named.
pub(crate) async fn resource(
    catalog: &Catalog,
    uri: &str,
    server: Option<&str>,
    options: CallOptions,
) -> Result<Box<RawValue>, CallError> {
    let key = Key::resource(uri);
    let route = match catalog.resource(uri, server) {
        Ok(route) => route,
        Err(error) => return away(catalog, (Of::Resource, uri), &key, &options, error),
    };
    let connection = &*route.connection;
    let asked = Asked {
        method: method::RESOURCES_READ,
        item: uri,
        key: &key,
        connection,
        attention: route.attention.as_deref(),
    };
    let params = |id, Further { responses, state, carried }: Further| {
        let meta = connection.identity.carrying(options.token(id), carried);
        ReadParams { uri, meta, responses, state }
    };
    let timeout = options.timeout.unwrap_or(route.timeout);
    asked.answer(timeout, &options, params, check_read_result).await
}

/// What is kept of a server that takes no requests, else the error that says so.
fn away(
    catalog: &Catalog,
    (of, called): (Of, &str),
    key: &Key,
    options: &CallOptions,
    error: CallError,
) -> Result<Box<RawValue>, CallError> {
    let Some((shelf, item)) = catalog.last_shelf(&error, of, called) else { return Err(error) };
    let (method, attention) = match of {
        Of::Prompt => (method::PROMPTS_GET, shelf.looked_at.prompts.as_deref()),
        Of::Tool | Of::Resource | Of::Template => {
            (method::RESOURCES_READ, shelf.looked_at.resources.as_deref())
        }
    };
    let asked = Asked { method, item, key, connection: &shelf.connection, attention };
    asked.last_copy(options, error)
}

/// A prompt or resource that is asked for, and what it is kept under.
struct Asked<'a> {
    method: &'static str,
    item: &'a str,
    key: &'a Key,
    connection: &'a Connection,
    attention: Option<&'a Attention>,
}

impl Asked<'_> {
    /// Gives what is kept, else what the server says now, else an old copy.
    async fn answer<P: Serialize>(
        &self,
        timeout: Duration,
        options: &CallOptions,
        params: impl Fn(u64, Further) -> P,
        check: impl FnOnce(&RawValue) -> Result<(), ViewError>,
    ) -> Result<Box<RawValue>, CallError> {
        let &Self { method, item, connection, .. } = self;
        let ask = |timeout| self.ask(timeout, options, params, check);
        let found = connection.cache.read(self.key, options.fresh, timeout, ask).await;
        match found {
            Ok(Found::Asked(result)) => {
                connection.meter.looked_up(false);
                Ok(result)
            }
            Ok(Found::Copy(answer, age)) => {
                connection.meter.looked_up(true);
                let (server, age_s) = (&*connection.server, age.as_secs_f64());
                tracing::debug!(server, method, item, age_s, "from the cache");
                self.look_at(&answer)?;
                Ok(answer.result().to_owned())
            }
            Err(Missed::Failed(error)) => self.last_copy(options, error),
            Err(Missed::Late) => {
                let server = connection.server.clone();
                tracing::warn!(
                    server = &*server,
                    method,
                    item,
                    "no answer to the same request in time"
                );
                Err(CallError::Timeout { server, item: item.into(), after: timeout })
            }
        }
    }

    /// Asks the server.
    async fn ask<P: Serialize>(
        &self,
        timeout: Duration,
        options: &CallOptions,
        params: impl Fn(u64, Further) -> P,
        check: impl FnOnce(&RawValue) -> Result<(), ViewError>,
    ) -> Result<Reply, CallError> {
        let &Self { method, item, connection, attention, .. } = self;
        let (progress, retries) = (options.progress.as_ref(), options.retries);
        let (headers, harmless, as_task) = (&[][..], true, false);
        let ask =
            Ask { method, item, params, headers, timeout, progress, retries, harmless, as_task };
        let Some(attention) = attention else {
            let judge = |raw: &RawValue| Ok(check(raw).map(|()| CallOutcome::Ok)?);
            return connection.ask(ask, judge).await;
        };
        let held_back = |told| connection.tell_found(attention.of(), item, told);
        let mut clean = false;
        let judge = |raw: &RawValue| {
            check(raw)?;
            let told = attention.result(raw);
            clean = told.is_none();
            held_back(told).map_or(Ok(CallOutcome::Ok), |findings| Err(Unfit::Suspicious(findings)))
        };
        let suspect = |fault: &Fault| held_back(in_fault(attention, fault));
        let reply = connection.ask_wary(ask, judge, suspect).await?;
        Ok(Reply { clean, ..reply })
    }

    /// Looks at a copy unless that was done and nothing was found: it may be older than the wish to
    /// look. One that is held back is kept no longer.
    fn look_at(&self, answer: &Arc<Answer>) -> Result<(), CallError> {
        let &Self { item, connection, .. } = self;
        let Some(attention) = self.attention.filter(|_| !answer.is_clean()) else { return Ok(()) };
        let told = attention.result(answer.result());
        if told.is_none() {
            answer.cleared();
        }
        let Some(findings) = connection.tell_found(attention.of(), item, told) else {
            return Ok(());
        };
        connection.cache.drop_answer(self.key, answer);
        let (server, item) = (connection.server.clone(), item.into());
        Err(CallError::Withheld { server, item, findings })
    }

    /// What is kept, however old, of a server that is away, marked as such; else the error. Nothing
    /// is given once the server was stopped, or to a caller that wants no copy.
    fn last_copy(
        &self,
        options: &CallOptions,
        error: CallError,
    ) -> Result<Box<RawValue>, CallError> {
        let away =
            matches!(&error, CallError::Unavailable { reason, .. } if *reason != Lost::Shutdown);
        let kept = if away && !options.fresh { self.connection.cache.last(self.key) } else { None };
        let Some((answer, age)) = kept else { return Err(error) };
        self.look_at(&answer)?;
        let (server, age_s) = (&*self.connection.server, age.as_secs_f64());
        let (method, item) = (self.method, self.key.item());
        let error: &dyn std::error::Error = &error;
        tracing::warn!(server, method, item, age_s, error, "old copy from the cache");
        Ok(answer.stale(age))
    }
}
