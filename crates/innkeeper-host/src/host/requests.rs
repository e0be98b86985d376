//! What an application asks of servers, and who answers what they ask of it.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Host;
use crate::call::{self, CallOptions, CompletionOf, ToolResult};
use crate::callback::{Answers, Callback};
use crate::error::CallError;

impl Host {
    /// Calls the tool `{server}.{tool}` and gives its result as the server sent it.
    ///
    /// Dropping the future cancels the call at the server; an answer that comes later is dropped.
    ///
    /// # Errors
    ///
    /// See [`CallError`]; a tool that answers `isError` is a result, not an error.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Into<Value>,
    ) -> Result<ToolResult, CallError> {
        self.call_tool_with(name, arguments, CallOptions::default()).await
    }

    /// Calls a tool with a time limit of its own or with progress.
    ///
    /// # Errors
    ///
    /// As [`Host::call_tool`].
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Into<Value>,
        options: CallOptions,
    ) -> Result<ToolResult, CallError> {
        call::tool(&self.catalog(), name, arguments.into(), options).await
    }

    /// Gets the prompt `{server}.{prompt}` as the server sent it, now or up to `cache.ttl` ago;
    /// [`CallOptions::fresh`] asks in any case. The same prompt asked for at the same time by
    /// several callers is one request. While the server is unavailable, what is kept is given
    /// however old it is, with `stale: true` and `ageSeconds` in its `_meta`. Where `guard.results` has
    /// contents looked at, so are copies, unless that was done and nothing was found.
    ///
    /// # Errors
    ///
    /// See [`CallError`]; a required argument that is missing is a validation error.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::prompt(&self.catalog(), name, arguments, options).await
    }

    /// Reads a resource from the server that lists its URI, or has a template for it, or is named;
    /// kept and shared as [`Host::get_prompt`] says.
    ///
    /// # Errors
    ///
    /// See [`CallError`]; a URI that several servers offer needs `server`.
    pub async fn read_resource(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::resource(&self.catalog(), uri, server, options).await
    }

    /// Asks a server to tell of changes of a resource ([`Event::ResourceUpdated`]), until it is
    /// stopped or [`Host::unsubscribe_resource`] takes it back. At most 1,024 per server.
    ///
    /// # Errors
    ///
    /// As [`Host::read_resource`].
    ///
    /// [`Event::ResourceUpdated`]: crate::Event::ResourceUpdated
    pub async fn subscribe_resource(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<(), CallError> {
        call::subscribe(&self.catalog(), uri, server, true, options).await
    }

    /// Takes [`Host::subscribe_resource`] back.
    ///
    /// # Errors
    ///
    /// As [`Host::read_resource`].
    pub async fn unsubscribe_resource(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<(), CallError> {
        call::subscribe(&self.catalog(), uri, server, false, options).await
    }

    /// Asks a server what values an argument of a prompt or a template may have: the name and what
    /// is written of it so far, beside the arguments that are given already. Gives its result as it
    /// was sent.
    ///
    /// # Errors
    ///
    /// See [`CallError`]; a server that completes nothing answers with an error.
    pub async fn complete(
        &self,
        of: CompletionOf<'_>,
        argument: (&str, &str),
        given: &Map<String, Value>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::complete(&self.catalog(), of, argument, given, options).await
    }

    /// Has `callback` answer these requests of servers from now on; `None` has nobody answer.
    ///
    /// What servers were told in their handshake stays: one that was told of nothing asks nothing
    /// until it is started again.
    pub fn set_callback(&self, answers: &Answers, callback: Option<&Arc<dyn Callback>>) {
        self.0.launcher.callbacks.set(answers, callback);
    }
}
