//! The first line of each side of a connection.

use std::io;
use std::time::Duration;

use innkeeper_host::{Host, ServerState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};
use tokio::time::timeout;

use super::requested_item::RequestedItem;

/// Maximum size of a first line in bytes: enough for two names.
const MAX_GREETING_BYTES: u64 = 4 << 10;

/// Maximum time for a first line; the other end is on this machine.
const GREETING_TIME: Duration = Duration::from_secs(2);

/// The first line of a command.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Greeting {
    pub(super) server: String,
    pub(super) item: RequestedItem,
}

/// The first line of the gateway.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Welcome {
    /// Whether the gateway can do for the command what servers of its own would do.
    pub(super) ready: bool,
}

/// The last line of the gateway about a restart.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Restarted {
    /// Why the server did not become ready again.
    pub(super) problem: Option<String>,
}

impl Greeting {
    /// Returns whether the server is ready and has the item.
    pub(super) fn is_served_by(&self, host: &Host) -> bool {
        let status = host.status();
        if matches!(self.item, RequestedItem::Process) {
            return status.contains_key(&*self.server);
        }
        let is_ready =
            status.get(&*self.server).is_some_and(|status| status.state == ServerState::Ready);
        let catalog = host.catalog();
        let listing = catalog.server(&self.server).and_then(|server| server.listing());
        is_ready
            && listing.is_some_and(|listing| match &self.item {
                RequestedItem::Tool(name) => {
                    listing.tools.iter().any(|tool| tool.view.name == *name)
                }
                RequestedItem::Prompt(name) => {
                    listing.prompts.iter().any(|prompt| prompt.view.name == *name)
                }
                RequestedItem::Resource | RequestedItem::Process => true,
            })
    }
}

/// Writes a first line.
pub(super) async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    line: &impl Serialize,
) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    timeout(GREETING_TIME, writer.write_all(&text)).await?
}

/// Reads a first line.
pub(super) async fn read<T: DeserializeOwned>(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<T> {
    timeout(GREETING_TIME, read_line(reader)).await?
}

/// Reads a line that can take as long as the gateway needs.
pub(super) async fn read_line<T: DeserializeOwned>(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<T> {
    let mut line = Vec::new();
    reader.take(MAX_GREETING_BYTES).read_until(b'\n', &mut line).await?;
    Ok(serde_json::from_slice(&line)?)
}
