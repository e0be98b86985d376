//! This system has no Unix sockets, so no run of an agent records or replays `serve --stdio`.

use innkeeper_host::Config;
use tokio::io::DuplexStream;

use crate::cli::ServeArgs;
use crate::context::CommandContext;
use crate::exit::CliError;

#[derive(Debug)]
pub(super) struct Recorded;

/// No lines that a run sees.
#[derive(Debug)]
pub(super) struct PassedLines;

impl Recorded {
    pub(super) async fn join(
        _: &mut CommandContext,
        _: &ServeArgs,
    ) -> Result<Option<Self>, CliError> {
        Ok(Some(Self))
    }

    pub(super) async fn configure(&mut self, _: &Config) -> Result<(), CliError> {
        Ok(())
    }

    pub(super) fn pass(
        self,
        stdin: DuplexStream,
        stdout: DuplexStream,
    ) -> (PassedLines, DuplexStream, DuplexStream) {
        (PassedLines, stdin, stdout)
    }
}

impl PassedLines {
    pub(super) async fn finish(self) {}
}
