//! Completions for an argument of a prompt or a resource template.

use innkeeper_protocol::method;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::options::CallOptions;
use super::request_with_params;
use crate::catalog::Catalog;
use crate::connection::Member;
use crate::error::CallError;

/// The prompt or resource template of an argument to complete (MCP `ref`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionReference<'a> {
    /// The prompt with this public name.
    Prompt(&'a str),
    /// A resource template, as its server lists the template.
    Template {
        /// The URI template.
        uri: &'a str,
        /// The name of the server that lists the template.
        server: &'a str,
    },
}

/// Requests completions for an argument.
pub(crate) async fn complete(
    catalog: &Catalog,
    target: CompletionReference<'_>,
    argument_name: &str,
    value: &str,
    context_arguments: &Map<String, Value>,
    options: CallOptions,
) -> Result<Box<RawValue>, CallError> {
    let prompt;
    let template;
    let (connection, item, reference, timeout) = match target {
        CompletionReference::Prompt(name) => {
            prompt = catalog.prompt(name)?;
            let reference = json!({ "type": "ref/prompt", "name": prompt.name });
            (&*prompt.connection, &*prompt.name, reference, prompt.timeout)
        }
        CompletionReference::Template { uri, server } => {
            template = catalog.resource(uri, Some(server))?;
            let reference = json!({ "type": "ref/resource", "uri": uri });
            (&*template.connection, uri, reference, template.timeout)
        }
    };
    let argument = json!({ "name": argument_name, "value": value });
    let context = json!({ "arguments": context_arguments });
    let members: [Member<'_>; 3] =
        [("ref", &reference), ("argument", &argument), ("context", &context)];
    let members = if context_arguments.is_empty() { &members[..2] } else { &members[..] };
    request_with_params(connection, method::COMPLETION_COMPLETE, item, members, timeout, &options)
        .await
}
