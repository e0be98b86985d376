//! Connections that a client opens and closes itself, with negotiated features: the connection
//! service of document 003, beside MCP.
//!
//! A connection is known by its id and lives in a store, so that it can outlive the process.

mod error;
mod features;
mod lifecycle;
mod message;
mod state;
pub mod store;
mod version;

pub use error::{ConnectionError, ErrorCode};
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
pub use state::{ClientInfo, ConnectionId, ConnectionState, InvalidConnectionId};
pub use version::{FeatureVersion, InvalidVersion, VersionCompatibility};
