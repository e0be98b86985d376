//! Connections that a client opens and closes itself, with negotiated features: the connection
//! service of document 003, beside MCP.
//!
//! A connection is known by its id and lives in a store, so that it can outlive the process.

mod error;
mod features;
mod lifecycle;
mod message;
mod options;
mod state;
mod version;

pub mod store;

mod service;

mod extract;

pub(crate) use extract::{connection_id, rejection_response};
pub(crate) use service::{MAX_INITIALIZE_BYTES, MAX_INITIALIZE_VALUES};

pub use error::{ConnectionError, ErrorCode};
pub use extract::{Connection, ConnectionAccess, ExtractError, FeatureName, RequireFeature};
pub use features::{
    CapabilityRegistry, ClientCapabilities, ClientFeature, Feature, FeatureCapabilityLevel,
    FeatureError,
};
pub use lifecycle::{ConnectionLifecycleState, InvalidTransition, LifecycleMessage};
pub use message::{
    ConnectionMessage, JsonRpcBatchRequest, JsonRpcBatchResponse, JsonRpcParams, JsonRpcRequest,
    JsonRpcResponse, MessageCategory, MessageDirection, MessageMetadata, MessagePayload,
    MessageType,
};
pub use options::{
    CONNECTION_ID_COOKIE, CONNECTION_ID_HEADER, ConnectionOptions, CookieSecure, InvalidPathPrefix,
    PathPrefix,
};
pub use service::{
    ConnectionService, ConnectionServiceBuilder, InitializeRequest, InitializeResponse,
    PROTOCOL_VERSION, ServerInfo,
};
pub use state::{ClientInfo, ConnectionId, ConnectionState, InvalidConnectionId};
pub use version::{FeatureVersion, InvalidVersion, VersionCompatibility};
