//! Runs an agent of another program between its model and its MCP servers, to record or to replay
//! both sides.
//!
//! The agent gets the base URLs of a model server on this machine. `innkeeper serve --stdio`, which
//! the agent's MCP clients start, finds the directory of the run in `PATH`: MCP clients pass few other
//! variables on. The directory has a socket that only its user can open, and this program as
//! `innkeeper`.
//!
//! To record, the model server sends each request on to the real one, and `serve` reports each line
//! that passes its stdin and stdout, before it passes it on. To replay, both answer what was recorded,
//! and nothing else starts.

mod agent_process;
mod credentials;
mod join;
mod mcp_recording;
mod mcp_replay;
mod model_server;
mod providers;
mod recording;
mod replay;
mod run_output;
mod run_servers;
mod timeline;
mod tools_socket;
mod upstream;

pub(crate) use agent_process::{AgentEnd, AgentProcess};
pub(crate) use join::{JoinedRun, RecordedPipe, join, without_run};
pub(crate) use providers::Upstreams;
pub(crate) use recording::{RecordRunError, RecordedAgent, RecordedRun};
pub(crate) use replay::ReplayedRun;
pub(crate) use run_servers::RunServers;
