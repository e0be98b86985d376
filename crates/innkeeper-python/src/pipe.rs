//! A connection to the servers of a host inside this process, for the clients of other packages.
//!
//! The other end is a gateway of its own, with this connection as its only client. It uses the running
//! host: no process starts, and pins, limits, logs and metrics are the host's. The gateway ends with
//! the pipe.

use std::io;
use std::sync::Arc;

use innkeeper::error::RoutingError;
use innkeeper::{CallError, Host as LibraryHost};
use innkeeper_gateway::{Gateway, GatewayBuilder, GatewayOptions, Principal};
use innkeeper_host::config::NameStyle;
use memchr::{memchr_iter, memrchr};
use pyo3::prelude::*;
use serde_json::value::RawValue;
use tokio::io::{
    AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::host::Host;
use crate::json::Tape;
use crate::operation::{Operation, Output};

/// Size in bytes of the buffer of one direction: what the other side can write ahead.
const BUFFER_BYTES: usize = 256 << 10;

/// Room in bytes for one read.
const READ_BYTES: usize = 64 << 10;

/// The client's end of a connection.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct Pipe(Arc<PipeEnd>);

struct PipeEnd {
    pid: u32,
    incoming: Mutex<Incoming>,
    outgoing: Mutex<WriteHalf<DuplexStream>>,
    /// `None` after the close.
    serving: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        // The task of a parent process is not this one's to end.
        if self.pid == std::process::id()
            && let Some(serving) = self.serving.get_mut()
        {
            serving.abort();
        }
    }
}

#[pymethods]
impl Pipe {
    /// Opens a connection to one server under its own names, or to all servers.
    #[staticmethod]
    #[pyo3(signature = (host, server, flat_names))]
    fn open(
        py: Python<'_>,
        host: &Host,
        server: Option<String>,
        flat_names: bool,
    ) -> PyResult<Operation> {
        let host = host.running(py)?;
        Ok(Operation::new(async move {
            let end = PipeEnd::connect(host, server, flat_names)?;
            Ok(Output::Object(Box::new(|py| Ok(Py::new(py, Self(Arc::new(end)))?.into_any()))))
        }))
    }

    /// Sends one message: JSON text without line breaks. The result is whether the connection is open.
    fn send(&self, message: &[u8]) -> Operation {
        let end = self.0.clone();
        let line = [message, b"\n"].concat();
        Operation::new(async move {
            end.check_process()?;
            let is_sent = end.outgoing.lock().await.write_all(&line).await.is_ok();
            Ok(Output::Object(Box::new(move |py| {
                Ok(is_sent.into_pyobject(py)?.to_owned().into_any().unbind())
            })))
        })
    }

    /// Waits for messages. The result is a list of all that have arrived, and `None` at the end.
    fn receive(&self) -> Operation {
        let end = self.0.clone();
        Operation::new(async move {
            end.check_process()?;
            let messages = end.incoming.lock().await.next().await;
            let messages = messages.map_err(|error| Failure::Internal(error.to_string()))?;
            Ok(messages.map_or(Output::None, |messages| Output::Json(Tape::new(messages))))
        })
    }

    /// Ends the connection; calls in flight are cancelled at their servers. A child after `fork` leaves
    /// its parent's connection alone.
    fn close(&self) -> Operation {
        let end = self.0.clone();
        Operation::new(async move {
            if end.check_process().is_err() {
                return Ok(Output::None);
            }
            // Taken under the lock and awaited there: a second close waits for the end, too.
            let mut serving = end.serving.lock().await;
            if let Some(task) = &mut *serving {
                task.abort();
                // An aborted task ends with an error.
                task.await.ok();
                *serving = None;
            }
            Ok(Output::None)
        })
    }
}

impl PipeEnd {
    fn connect(
        host: LibraryHost,
        server: Option<String>,
        flat_names: bool,
    ) -> Result<Self, Failure> {
        let mut options = GatewayOptions::default();
        if flat_names {
            options.endpoint.names = NameStyle::Flat;
        }
        if let Some(name) = &server {
            if !host.status().contains_key(&**name) {
                let name = name.as_str().into();
                let error = RoutingError::UnknownServer { name, suggestion: None };
                return Err(Failure::Call(CallError::Routing(error)));
            }
            options.connection_servers = vec![name.clone()];
        }
        let gateway = GatewayBuilder::for_one_client(options).build(host);
        let (client, gateway_end) = duplex(BUFFER_BYTES);
        let (reader, writer) = split(client);
        let serving = serve(gateway, server, gateway_end);
        Ok(Self {
            pid: std::process::id(),
            incoming: Mutex::new(Incoming::new(reader)),
            outgoing: Mutex::new(writer),
            serving: Mutex::new(Some(Handle::current().spawn(serving))),
        })
    }

    fn check_process(&self) -> Result<(), Failure> {
        if self.pid == std::process::id() { Ok(()) } else { Err(Failure::OtherProcess) }
    }
}

async fn serve(gateway: Gateway, server: Option<String>, stream: DuplexStream) {
    let (reader, writer) = split(stream);
    let principal = Principal::local_user();
    let served = match &server {
        Some(server) => gateway.serve_server_connection(principal, server, reader, writer).await,
        None => gateway.serve_connection(principal, reader, writer).await,
    };
    if let Err(error) = served {
        tracing::debug!(%error, "pipe ended");
    }
}

/// The messages from the gateway, one per line.
struct Incoming {
    reader: ReadHalf<DuplexStream>,
    /// The start of a JSON array of the messages, with line breaks in place of commas: text in JSON
    /// has no line breaks of its own.
    buffer: Vec<u8>,
    /// The length of the part without a line break.
    searched: usize,
}

impl Incoming {
    fn new(reader: ReadHalf<DuplexStream>) -> Self {
        Self { reader, buffer: vec![b'['], searched: 0 }
    }

    /// Returns the messages that have arrived as a JSON array; `None` at the end. Dropping the future
    /// loses no message.
    async fn next(&mut self) -> io::Result<Option<Box<RawValue>>> {
        loop {
            if let Some(end) = memrchr(b'\n', &self.buffer[self.searched..]) {
                return self.take(self.searched + end).map(Some);
            }
            self.searched = self.buffer.len();
            self.buffer.reserve(READ_BYTES);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Takes the messages up to the line break at `end`.
    fn take(&mut self, end: usize) -> io::Result<Box<RawValue>> {
        let mut rest = vec![b'['];
        rest.extend_from_slice(&self.buffer[end + 1..]);
        let mut messages = std::mem::replace(&mut self.buffer, rest);
        self.searched = 0;
        messages.truncate(end + 1);
        let breaks: Vec<usize> = memchr_iter(b'\n', &messages[..end]).collect();
        for line_break in breaks {
            messages[line_break] = b',';
        }
        messages[end] = b']';
        let text = String::from_utf8(messages)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(RawValue::from_string(text)?)
    }
}
