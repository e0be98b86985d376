//! Offers the servers of an MCP host as one MCP server to remote and local clients of any protocol
//! revision.
//!
//! The modules stand from the bottom up.

mod host_name;
mod listener;
mod principal;
mod quota;
mod tasks;

mod rejection;

pub mod auth;
pub mod origin;

mod http_access;

pub mod item_names;
pub mod policy;
pub mod rate_limits;

#[cfg(test)]
mod test_config;

mod error;
mod json_text;
mod metrics;
mod options;

mod audit_log;
mod call_monitor;

mod gateway_tools;

mod process_limits;
mod sealed_state;
mod stored_results;
mod task_ids;

mod store_error;

mod redis_client;

mod replica_router;
mod replicas;

mod event_stream;
mod sink;
mod stream_log;

mod owned_calls;
mod response_memory;

pub mod connections;
pub mod pending_questions;

mod client;
mod question_owners;
mod sole_client;
mod waiting_calls;

mod server_use;
mod upstream;

mod offering;
mod view;

mod parked_calls;
mod subscribers;

mod bindings;

mod servers;

mod caller;
mod request;

mod offers;

mod calls;
mod subscriptions;

mod methods;

mod state;

mod transport;

mod rest;

mod connection_routes;

mod console;

mod router;
mod server;

mod gateway;

#[cfg(doctest)]
mod pages;

pub use bindings::{Binding, Bindings};
pub use calls::{AnswerOutcome, OperatorAnswer};
pub use gateway::{Gateway, GatewayBuilder};
pub use http_access::HttpAccess;
pub use listener::GatewayListener;
pub use options::{ClientLimits, ConsoleOptions, EndpointOptions, GatewayOptions, ServerLimits};
pub use principal::Principal;
pub use redis_client::RedisClient;
pub use rejection::Rejection;
pub use replicas::{ReplicaOptions, Replicas};
pub use store_error::{StoreError, StoreFuture};

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use connection_routes::fuzz_connection_request;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use sealed_state::fuzz_sealed_state;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use transport::fuzz_gateway_request;
