//! The arguments of `record` and `replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Arguments of `record`.
#[derive(Args, Debug)]
pub(crate) struct RecordRunArgs {
    /// File of the recording
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Base URL of the real model, for all providers or for one (`openai`, `anthropic`, `gemini`,
    /// `ollama`)
    ///
    /// Default: the base URL that the agent would use: that of `OPENAI_BASE_URL`,
    /// `ANTHROPIC_BASE_URL`, `GOOGLE_GEMINI_BASE_URL` or `OLLAMA_HOST`, else that of the provider.
    #[arg(long, value_name = "[PROVIDER=]URL")]
    pub(crate) upstream: Vec<String>,
    /// The agent with its arguments
    #[arg(last = true, required = true, value_name = "AGENT")]
    pub(crate) agent: Vec<OsString>,
}

/// Arguments of `replay`.
#[derive(Args, Debug)]
pub(crate) struct ReplayRunArgs {
    /// File of the recording
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The agent with its arguments
    #[arg(last = true, required = true, value_name = "AGENT")]
    pub(crate) agent: Vec<OsString>,
}
