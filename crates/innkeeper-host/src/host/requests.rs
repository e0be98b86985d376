//! Requests of the application to servers, and the callback registration.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Host;
use crate::call::{self, Arguments, CallOptions, CompletionReference, ToolResult};
use crate::callback::{Callback, CallbackCapabilities};
use crate::error::CallError;

impl Host {
    /// Calls the tool `{server}.{tool}` (`tools/call`) and returns the result as the server sent it.
    /// The arguments are a JSON object; `null` stands for an object without members. A request of
    /// more than 8 MiB is a validation error, a response of more than 16 MiB a protocol error.
    ///
    /// The server's `timeout` applies (default: 30 s). Progress restarts the timeout, up to the
    /// server's `maxTotalTimeout` (default: 10 minutes). Dropping the future cancels the call on
    /// the server. A later response is discarded.
    ///
    /// # Errors
    ///
    /// See [`CallError`]. A result with `isError` is a result, not an error.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(host: innkeeper_host::Host) {
    /// match host.call_tool("files.read", serde_json::json!({"path": "a.txt"})).await {
    ///     Ok(result) if result.is_error() => println!("failed: {}", result.raw()),
    ///     Ok(result) => println!("{}", result.raw()),
    ///     Err(error) => println!("no result: {error}"),
    /// }
    /// # }
    /// ```
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<ToolResult, CallError> {
        self.call_tool_with(name, arguments, CallOptions::default()).await
    }

    /// Calls a tool with options, for example a timeout or progress. Dropping the future cancels
    /// the call, as for [`Host::call_tool`].
    ///
    /// # Errors
    ///
    /// See [`Host::call_tool`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use innkeeper_host::{CallError, CallOptions, Host};
    /// # async fn example(host: Host) -> Result<(), CallError> {
    /// let (progress, mut steps) = tokio::sync::mpsc::channel(16);
    /// let timeout = Some(std::time::Duration::from_secs(120));
    /// let options = CallOptions { timeout, progress: Some(progress), ..CallOptions::default() };
    /// let call = host.call_tool_with("files.index", serde_json::json!({}), options);
    /// let show = async {
    ///     while let Some(step) = steps.recv().await {
    ///         println!("{} of {:?}", step.progress, step.total);
    ///     }
    /// };
    /// let (result, ()) = tokio::join!(call, show);
    /// println!("{}", result?.raw());
    /// # Ok(()) }
    /// ```
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Into<Arguments>,
        options: CallOptions,
    ) -> Result<ToolResult, CallError> {
        call::call_tool(&self.catalog(), name, &arguments.into(), options).await
    }

    /// Gets the prompt `{server}.{prompt}` as the server sent it (`prompts/get`). The values of the
    /// arguments are strings. The time limits are those of [`Host::call_tool`].
    ///
    /// The result may come from the cache and be up to `cache.ttl` old; [`CallOptions::fresh`]
    /// bypasses the cache. Concurrent calls for the same prompt share one request, and later calls
    /// the result, within the limits of [`RemoteClient::principal`](crate::RemoteClient::principal). While the server is unavailable, the host returns the cached result of any age with `stale: true` and
    /// `ageSeconds` in `_meta`. If `guard.results` enables scanning, the host also scans cached
    /// results that were not scanned clean before.
    ///
    /// Dropping the future cancels the request that this call sent. A concurrent call that waits
    /// for the same result then sends its own request.
    ///
    /// # Errors
    ///
    /// See [`CallError`]. A missing required argument, and an argument that is no string, are
    /// validation errors.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::get_prompt(&self.catalog(), name, arguments, options).await
    }

    /// Reads a resource from the named server, else from the server that lists the URI, else from a
    /// server with a matching template (`resources/read`). The cache, the time limits and a dropped
    /// future have the same effect as for [`Host::get_prompt`].
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
    /// In the legacy era the host sends `resources/subscribe` and waits for the response. In the
    /// modern era the host adds the URI to the subscription of the server (`subscriptions/listen`)
    /// and returns at once. Dropping the future cancels the request; the server may have subscribed
    /// already.
    ///
    /// # Errors
    ///
    /// See [`Host::read_resource`]. A failed request adds no subscription.
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

    /// Ends the subscription of [`Host::subscribe_resource`] (`resources/unsubscribe` in the legacy
    /// era). Dropping the future cancels the request; the server may have ended the subscription
    /// already.
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

    /// Requests completions for an argument of a prompt or template (`completion/complete`).
    /// `value` is what the user has typed of the argument; `context_arguments` are the arguments with
    /// known values. Returns the result as the server sent it, without a cache. The time limits are
    /// those of [`Host::call_tool`]. Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// See [`CallError`]. A server without completions responds with an error.
    pub async fn complete(
        &self,
        reference: CompletionReference<'_>,
        argument_name: &str,
        value: &str,
        context_arguments: &Map<String, Value>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        let catalog = self.catalog();
        call::complete(&catalog, reference, argument_name, value, context_arguments, options).await
    }

    /// Sends a request with a method for which the host has no function, and returns the result as
    /// the server sent it. The host never repeats the request. The guard scans the result only for
    /// `tasks/*`, with which the application polls the tasks of [`TaskMode::PassThrough`].
    ///
    /// The result may have any `resultType`. If a server of the modern era requests input
    /// (`input_required`), the host runs no callback: the application sends the request again with
    /// `inputResponses` and `requestState` in the parameters. The host rejects a form that asks
    /// for a secret, also in the result of `tasks/get`.
    ///
    /// A message of the server about the task of `tasks/result` belongs to that request.
    ///
    /// `_meta` belongs into [`CallOptions::meta`]. The timeout is that of the server, unless the
    /// options set another one. Dropping the future cancels the request, as for
    /// [`Host::call_tool`].
    ///
    /// # Errors
    ///
    /// See [`CallError`]. These are validation errors: a method that the host handles itself, for
    /// example `tools/call` or `initialize`; a method that is longer than 256 bytes or has
    /// characters other than visible ASCII; parameters that are no object, have a duplicate key or
    /// have `_meta`.
    ///
    /// [`TaskMode::PassThrough`]: crate::TaskMode::PassThrough
    pub async fn request(
        &self,
        server: &str,
        method: &str,
        params: Option<&RawValue>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::request(&self.catalog(), server, method, params, options).await
    }

    /// Queues a notification with a method for which the host has no function, and returns at once.
    /// A server that does not read loses the notification. The parameters may contain `_meta`.
    ///
    /// # Errors
    ///
    /// See [`Host::request`]. The method must start with `notifications/`, and must not be a
    /// notification that the host sends itself, for example `notifications/cancelled`. A
    /// notification of more than 8 MiB is a validation error.
    pub fn notify(
        &self,
        server: &str,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), CallError> {
        call::notify(&self.catalog(), server, method, params)
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
        self.0.launcher.host.callbacks.set(capabilities, callback);
    }
}
