//! The native module `innkeeper._core` of the Python package `innkeeper`.
//!
//! The Python files of the package are thin: they have the documented signatures, and pass each call
//! to a class of this module. Every call becomes an [`Operation`](operation::Operation), which Python
//! awaits on an event loop or waits for on a thread.

mod config;
mod host;

mod agent_events;
mod chat;
mod chat_messages;
mod ghost;
mod golden;
mod interceptor;
mod model;
mod tool_names;

mod call_task;
mod callback;
mod events;

mod operation;

mod failure;
mod json;
mod logging;
mod loop_queue;
mod per_process;
mod runtime;

mod pipe;
mod serve;

use pyo3::prelude::*;

/// The native module; the free-threaded builds of Python use it without the lock.
#[pymodule(name = "_core", gil_used = false)]
mod core {
    #[pymodule_export]
    use super::agent_events::RunStream;
    #[pymodule_export]
    use super::callback::Reply;
    #[pymodule_export]
    use super::chat::{Chat, ChatResponse, PromptHost};
    #[pymodule_export]
    use super::config::Config;
    #[pymodule_export]
    use super::events::EventStream;
    #[pymodule_export]
    use super::ghost::GhostRun;
    #[pymodule_export]
    use super::golden::Golden;
    #[pymodule_export]
    use super::host::Host;
    #[pymodule_export]
    use super::interceptor::Interceptor;
    #[pymodule_export]
    use super::logging::{log_level, next_log_records, stop_logging};
    #[pymodule_export]
    use super::loop_queue::LoopQueue;
    #[pymodule_export]
    use super::model::{LlmClient, PythonModel};
    #[pymodule_export]
    use super::operation::Operation;
    #[cfg(debug_assertions)]
    #[pymodule_export]
    use super::operation::panicking_operation;
    #[pymodule_export]
    use super::pipe::Pipe;
    #[pymodule_export]
    use super::runtime::{after_fork_in_parent, before_fork, has_shut_down, shut_down};
    #[pymodule_export]
    use super::serve::GatewayServer;
    #[pymodule_export]
    use super::tool_names::{tool_names, tool_schema};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::runtime::silence_panics();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
