//! Requests of the application to servers, and the callback registration.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Host;
use crate::call::{self, CallOptions, CompletionReference, ToolResult};
use crate::callback::{Callback, CallbackCapabilities};
use crate::error::CallError;

impl Host {
    /// Calls the tool `{server}.{tool}` and returns the result as the server sent it.
    ///
    /// Dropping the future cancels the call on the server. A later response is discarded.
    ///
    /// # Errors
    ///
    /// See [`CallError`]. A result with `isError` is a result, not an error.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Into<Value>,
    ) -> Result<ToolResult, CallError> {
        self.call_tool_with(name, arguments, CallOptions::default()).await
    }

    /// Calls a tool with options, for example a timeout or progress.
    ///
    /// # Errors
    ///
    /// See [`Host::call_tool`].
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Into<Value>,
        options: CallOptions,
    ) -> Result<ToolResult, CallError> {
        call::call_tool(&self.catalog(), name, arguments.into(), options).await
    }

    /// Gets the prompt `{server}.{prompt}` as the server sent it.
    ///
    /// The result may come from the cache and be up to `cache.ttl` old; [`CallOptions::fresh`]
    /// bypasses the cache. Concurrent calls for the same prompt share one request. While the server
    /// is unavailable, the host returns the cached result of any age with `stale: true` and
    /// `ageSeconds` in `_meta`. If `guard.results` enables scanning, the host also scans cached
    /// results that were not scanned clean before.
    ///
    /// # Errors
    ///
    /// See [`CallError`]. A missing required argument is a validation error.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::get_prompt(&self.catalog(), name, arguments, options).await
    }

    /// Reads a resource from the named server, else from the server that lists the URI, else from a
    /// server with a matching template. The cache works as for [`Host::get_prompt`].
    ///
    /// # Errors
    ///
    /// See [`CallError`]. A URI that several servers offer requires `server`.
    pub async fn read_resource(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::read_resource(&self.catalog(), uri, server, options).await
    }

    /// Subscribes to the changes of a resource ([`HostEvent::ResourceUpdated`]), until the server
    /// stops or [`Host::unsubscribe_resource`] ends the subscription. At most 1,024 subscriptions
    /// per server.
    ///
    /// # Errors
    ///
    /// See [`Host::read_resource`].
    ///
    /// [`HostEvent::ResourceUpdated`]: crate::HostEvent::ResourceUpdated
    pub async fn subscribe_resource(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<(), CallError> {
        call::subscribe(&self.catalog(), uri, server, true, options).await
    }

    /// Ends the subscription of [`Host::subscribe_resource`].
    ///
    /// # Errors
    ///
    /// See [`Host::read_resource`].
    pub async fn unsubscribe_resource(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<(), CallError> {
        call::subscribe(&self.catalog(), uri, server, false, options).await
    }

    /// Requests completions for an argument of a prompt or template. `argument` is the name and the
    /// partial value; `context_arguments` are the arguments with known values. Returns the result
    /// as the server sent it.
    ///
    /// # Errors
    ///
    /// See [`CallError`]. A server without completions responds with an error.
    pub async fn complete(
        &self,
        reference: CompletionReference<'_>,
        argument: (&str, &str),
        context_arguments: &Map<String, Value>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::complete(&self.catalog(), reference, argument, context_arguments, options).await
    }

    /// Replaces the callback for these requests of servers; `None` removes the callback.
    ///
    /// The capabilities from the handshake stay: a server without a declared capability sends no
    /// such request until its restart.
    pub fn set_callback(
        &self,
        capabilities: &CallbackCapabilities,
        callback: Option<&Arc<dyn Callback>>,
    ) {
        self.0.launcher.callbacks.set(capabilities, callback);
    }
}
