//! The connection service: opens, finds and ends connections, and sends notifications to them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use chrono::Utc;
use futures_util::future::BoxFuture;
use innkeeper_host::display_safe;
use serde_json::{Map, Value, json};

use super::error::{ConnectionError, ErrorCode};
use super::features::{CapabilityRegistry, ClientCapabilities};
use super::lifecycle::{ConnectionLifecycleState, LifecycleMessage};
use super::message::{JsonRpcParams, JsonRpcRequest};
use super::options::ConnectionOptions;
use super::state::{ClientInfo, ConnectionId, ConnectionState};
use super::store::{ConnectionStore, Created, Lookup};
use super::version::{FeatureVersion, VersionCompatibility};
use crate::principal::Principal;
use crate::store_error::StoreError;

/// The protocol version of the service.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Maximum size in bytes of the parameters of `initialize`, because the store keeps them.
pub(crate) const MAX_INITIALIZE_BYTES: usize = 64 << 10;

/// Maximum number of JSON values in the parameters of `initialize`: a value of a few bytes takes some
/// hundred bytes of memory for the time of its connection.
pub(crate) const MAX_INITIALIZE_VALUES: usize = 1_024;

/// A method of the application: its connection and the parameters in, the result out. The service
/// drops the future if the client leaves.
type MethodHandler = Arc<
    dyn Fn(ConnectionState, Option<Value>) -> BoxFuture<'static, Result<Value, ConnectionError>>
        + Send
        + Sync,
>;

/// What a client sends with `initialize`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct InitializeRequest {
    /// The protocol version of the client.
    pub protocol_version: String,
    /// The program of the client.
    pub client: ClientInfo,
    /// The features of the client.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
}

/// What the server responds to `initialize`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct InitializeResponse {
    /// The protocol version of the server.
    pub protocol_version: String,
    /// The program of the server.
    pub server: ServerInfo,
    /// The features of the server.
    pub capabilities: Map<String, Value>,
}

/// The program of the server.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServerInfo {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}

/// The connections of a server with their store. Clones share the service.
#[derive(Clone, Debug)]
pub struct ConnectionService(Arc<ServiceParts>);

#[derive(Debug)]
struct ServiceParts {
    options: ConnectionOptions,
    registry: CapabilityRegistry,
    store: Arc<dyn ConnectionStore>,
    methods: Methods,
}

#[derive(Clone, Default)]
struct Methods(HashMap<String, MethodHandler>);

impl fmt::Debug for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Prepares a [`ConnectionService`].
#[derive(Debug)]
pub struct ConnectionServiceBuilder(ServiceParts);

impl ConnectionServiceBuilder {
    /// Creates a builder for a service without methods of the application.
    pub fn new(
        options: ConnectionOptions,
        registry: CapabilityRegistry,
        store: Arc<dyn ConnectionStore>,
    ) -> Self {
        Self(ServiceParts { options, registry, store, methods: Methods::default() })
    }

    /// Adds a method. The methods of the lifecycle and those of the gateway (`tools/…`, `prompts/…`
    /// and `resources/…`) have precedence.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use innkeeper_gateway::connections::store::{MemoryStore, StoreOptions};
    /// use innkeeper_gateway::connections::{
    ///     CapabilityRegistry, ConnectionOptions, ConnectionServiceBuilder,
    /// };
    ///
    /// let store = Arc::new(MemoryStore::new(StoreOptions::default()));
    /// let registry = CapabilityRegistry::with_core_features();
    /// let service = ConnectionServiceBuilder::new(ConnectionOptions::default(), registry, store)
    ///     .method("echo", |_connection, params| async move { Ok(params.unwrap_or_default()) })
    ///     .build();
    /// ```
    #[must_use]
    pub fn method<F>(
        mut self,
        name: impl Into<String>,
        handler: impl Fn(ConnectionState, Option<Value>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Value, ConnectionError>> + Send + 'static,
    {
        let handler: MethodHandler =
            Arc::new(move |connection, params| Box::pin(handler(connection, params)));
        self.0.methods.0.insert(name.into(), handler);
        self
    }

    /// Creates the service.
    pub fn build(self) -> ConnectionService {
        ConnectionService(Arc::new(self.0))
    }
}

impl ConnectionService {
    /// Returns the options.
    pub fn options(&self) -> &ConnectionOptions {
        &self.0.options
    }

    pub(crate) fn store(&self) -> &dyn ConnectionStore {
        &*self.0.store
    }

    /// Opens a connection for a user. `current` is the id that the client sent, if any.
    ///
    /// # Errors
    ///
    /// Returns an error if the client has an open connection, if its protocol version or its
    /// capabilities do not fit (every reason is in the data), if there are too many connections, or
    /// if the store is not available.
    pub async fn initialize(
        &self,
        request: InitializeRequest,
        user: &Principal,
        current: Option<ConnectionId>,
    ) -> Result<(ConnectionState, InitializeResponse), ConnectionError> {
        let InitializeRequest { protocol_version, client, capabilities } = request;
        if let Some(id) = current {
            // The store is not asked again when it is not available: each attempt takes its time.
            let found = existing(self.store().find(id).await?);
            if found.and_then(|connection| owned(connection, user)).is_ok() {
                let message = "the connection is open; send `shutdown` and `exit` first";
                return Err(ConnectionError::new(ErrorCode::ConnectionAlreadyExists, message));
            }
        }
        self.check_version(&protocol_version)?;
        let reasons = self.0.registry.incompatibilities(&capabilities);
        if !reasons.is_empty() {
            let message = "the capabilities of the client do not fit those of the server";
            let error = ConnectionError::new(ErrorCode::IncompatibleCapabilities, message);
            return Err(error.with_data(json!(reasons)));
        }
        let now = Utc::now();
        let connection = ConnectionState {
            id: ConnectionId::random(),
            client_info: client,
            client_capabilities: capabilities,
            state: ConnectionLifecycleState::Initializing,
            user_id: Some(user.id().as_ref().to_owned()),
            session_data: Map::new(),
            created_at: now,
            last_activity: now,
        };
        let options = self.options();
        match self.store().create(&connection).await? {
            Created::Added => {}
            Created::AlreadyExists => {
                return Err(ConnectionError::new(
                    ErrorCode::ConnectionAlreadyExists,
                    "a connection has this id; send `initialize` again",
                ));
            }
            Created::UserLimit | Created::TotalLimit => {
                return Err(ConnectionError::new(
                    ErrorCode::TransportError,
                    "there are too many connections; send `shutdown` and `exit` on one, or try \
                     again later",
                ));
            }
        }
        let server = ServerInfo {
            name: options.server_name.clone(),
            version: options.server_version.clone(),
        };
        let response = InitializeResponse {
            protocol_version: PROTOCOL_VERSION.to_owned(),
            server,
            capabilities: self.0.registry.declaration(),
        };
        Ok((connection, response))
    }

    fn check_version(&self, client: &str) -> Result<(), ConnectionError> {
        let own = PROTOCOL_VERSION.parse::<FeatureVersion>().ok();
        let fits = own
            .zip(client.parse().ok())
            .is_some_and(|(ours, theirs)| VersionCompatibility::Compatible.accepts(&ours, &theirs));
        if fits {
            return Ok(());
        }
        let shown: String = client.chars().take(64).collect();
        let message = format!(
            "protocol version mismatch: the client has `{}`, the server has `{PROTOCOL_VERSION}`",
            display_safe(&shown)
        );
        Err(ConnectionError::new(ErrorCode::ProtocolVersionMismatch, message))
    }

    /// Moves a connection of a user by `initialized`, `shutdown` or `exit`.
    ///
    /// # Errors
    ///
    /// Returns an error if the user has no such connection, if its state does not permit the
    /// message, or if the store is not available.
    pub async fn advance(
        &self,
        id: ConnectionId,
        user: &Principal,
        message: LifecycleMessage,
    ) -> Result<ConnectionState, ConnectionError> {
        // The user of a connection never changes.
        self.find(id, user).await?;
        let advanced = self.store().advance(id, message).await?;
        existing(advanced)?.map_err(|error| {
            ConnectionError::new(ErrorCode::InvalidConnectionState, error.to_string())
        })
    }

    /// Returns a connection of a user, and renews its expiry.
    ///
    /// # Errors
    ///
    /// Returns an error if the user has no such connection, or if the store is not available.
    pub async fn connection(
        &self,
        id: ConnectionId,
        user: &Principal,
    ) -> Result<ConnectionState, ConnectionError> {
        let touched = self.store().touch(id, Some(user.id())).await?;
        owned(existing(touched)?, user)
    }

    /// Returns an active connection of a user, and renews its expiry.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::connection`], and an error for a connection in another state.
    pub async fn active_connection(
        &self,
        id: ConnectionId,
        user: &Principal,
    ) -> Result<ConnectionState, ConnectionError> {
        let connection = self.connection(id, user).await?;
        match connection.state {
            ConnectionLifecycleState::Active => Ok(connection),
            state => {
                let message = format!("the connection is not active: its state is `{state}`");
                Err(ConnectionError::new(ErrorCode::InvalidConnectionState, message))
            }
        }
    }

    async fn find(
        &self,
        id: ConnectionId,
        user: &Principal,
    ) -> Result<ConnectionState, ConnectionError> {
        let found = self.store().find(id).await?;
        owned(existing(found)?, user)
    }

    /// Returns whether a connection can use a feature: the server has the feature, and the client
    /// declared it.
    pub fn is_feature_enabled(&self, name: &str, connection: &ConnectionState) -> bool {
        self.0.registry.is_feature_enabled(name, &connection.client_capabilities)
    }

    /// Sends a notification to the event stream of a connection. A client that reads no events gets
    /// the newest 256 later. Returns whether the connection is active.
    ///
    /// # Errors
    ///
    /// Returns an error with the code -32100 if the store is not available.
    pub async fn send_notification(
        &self,
        id: ConnectionId,
        method: &str,
        params: Option<JsonRpcParams>,
    ) -> Result<bool, ConnectionError> {
        let message = notification(method, params);
        Ok(self.store().publish(id, message).await?)
    }

    /// Sends a notification to all active connections. Returns for each whether it was still active.
    ///
    /// # Errors
    ///
    /// Returns an error with the code -32100 if the store is not available; some connections may
    /// have the notification.
    pub async fn broadcast(
        &self,
        method: &str,
        params: Option<JsonRpcParams>,
    ) -> Result<HashMap<ConnectionId, bool>, ConnectionError> {
        let message = notification(method, params);
        let mut sent = HashMap::new();
        for id in self.store().active().await? {
            let is_sent = self.store().publish(id, message.clone()).await?;
            sent.insert(id, is_sent);
        }
        Ok(sent)
    }

    /// Sets a member of the data of the application; `None` removes the member. Returns whether the
    /// connection exists and has not ended.
    ///
    /// # Errors
    ///
    /// Returns an error with the code -32100 if the store is not available.
    pub async fn set_session_data(
        &self,
        id: ConnectionId,
        key: &str,
        value: Option<Value>,
    ) -> Result<bool, ConnectionError> {
        Ok(self.store().set_session_data(id, key, value).await?)
    }

    /// Calls a method of the application; `None` if it has no such method.
    pub(crate) fn call_method(
        &self,
        name: &str,
        connection: &ConnectionState,
        params: Option<Value>,
    ) -> Option<BoxFuture<'static, Result<Value, ConnectionError>>> {
        let handler = self.0.methods.0.get(name)?;
        Some(handler(connection.clone(), params))
    }
}

fn notification(method: &str, params: Option<JsonRpcParams>) -> Bytes {
    let notification = JsonRpcRequest::notification(method, params);
    // Strings and JSON values always serialize.
    serde_json::to_vec(&notification).unwrap_or_default().into()
}

fn existing<T>(lookup: Lookup<T>) -> Result<T, ConnectionError> {
    match lookup {
        Lookup::Found(found) => Ok(found),
        Lookup::Expired => Err(ConnectionError::expired()),
        Lookup::Unknown => Err(ConnectionError::unknown()),
    }
}

/// Returns a connection if it belongs to the user and has not ended. The connection of another user
/// is unknown.
fn owned(
    connection: ConnectionState,
    user: &Principal,
) -> Result<ConnectionState, ConnectionError> {
    if connection.user_id.as_deref() != Some(&**user.id()) {
        return Err(ConnectionError::unknown());
    }
    match connection.state {
        ConnectionLifecycleState::Terminated => Err(ConnectionError::expired()),
        _ => Ok(connection),
    }
}

impl From<StoreError> for ConnectionError {
    /// The reason goes to the log, and not to the client.
    fn from(error: StoreError) -> Self {
        tracing::warn!(error = %error, "the store of connections is not available");
        let message = "the store of connections is not available; try again later";
        Self::new(ErrorCode::TransportError, message)
    }
}

#[cfg(test)]
mod tests;
