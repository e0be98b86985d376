//! One client on a connection with one message per line: stdio, or a Unix socket.

use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use innkeeper_protocol::framing::{Frame, LineFramer};
use innkeeper_protocol::{Incoming, MalformedKind, Message, envelope, skim};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::incoming::{self, Connected, JsonRpcRequest};
use crate::client::{Client, MAX_REQUESTS_IN_FLIGHT};
use crate::error::RpcError;
use crate::metrics::ClientTransport;
use crate::owned_calls::request_json;
use crate::principal::Principal;
use crate::quota::Reservation;
use crate::sink::MessageSink;
use crate::state::GatewayState;
use crate::tasks::GatewayTasks;

/// Number of messages that wait until the client reads them.
const MAX_QUEUED_MESSAGES: usize = 256;

/// Maximum number of bytes that one write takes from the queue.
const MAX_WRITE_BYTES: usize = 256 << 10;

/// Maximum number of requests of one connection whose responses the client has not read. A client
/// with so many is read no further.
const MAX_UNANSWERED_REQUESTS: usize = MAX_REQUESTS_IN_FLIGHT + MAX_QUEUED_MESSAGES;

/// Maximum size in bytes of the id in an error for which the responses of the client leave no room.
const MAX_UNCOUNTED_ID_BYTES: usize = 1 << 10;

/// Serves one client until the end of its output.
pub(crate) async fn serve(
    gateway: &Arc<GatewayState>,
    principal: Principal,
    endpoint: usize,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin,
) -> io::Result<()> {
    let (connection, messages) = Connection::new(gateway, principal, endpoint);
    let client = connection.client.clone();
    if let Some(sole_client) = gateway.servers.sole_client() {
        sole_client.connect(client.clone());
    }
    let finish_input = || {
        // Nobody answers requests of servers any more.
        if let Some(sole_client) = gateway.servers.sole_client() {
            sole_client.end();
        }
        client.finish_input();
    };
    let reading = async {
        let result = connection.read(reader).await;
        finish_input();
        result
    };
    let finishing = async {
        tokio::select! {
            () = client.input_ended() => {}
            () = connection.refuses_requests() => {}
        }
        // Requests in flight after this time get no response.
        let _ = timeout(gateway.options.drain_timeout, connection.requests.join()).await;
    };
    let reading = async {
        tokio::pin!(reading, finishing);
        // While requests finish, the client may still cancel them and answer requests of servers.
        let result = tokio::select! {
            biased;
            () = &mut finishing => {
                finish_input();
                Ok(())
            }
            result = &mut reading => {
                finishing.await;
                result
            }
        };
        connection.end();
        result
    };
    let writing = write(messages, writer);
    tokio::pin!(writing);
    tokio::select! {
        biased;
        written = &mut writing => {
            client.disconnect();
            connection_ended(written)
        }
        read = reading => {
            drop(connection);
            drop(client);
            read?;
            connection_ended(writing.await)
        }
    }
}

/// A client that closed its input has ended the connection in order.
fn connection_ended(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Where the messages of a client come from.
#[derive(Debug)]
pub(super) enum MessageSource {
    /// A line of a connection, which no rate counts.
    Line,
    /// A request over HTTP, with the memory of its body. The rate counts its messages.
    Post(Reservation),
}

/// One client with a queue of messages to the client.
#[derive(Debug)]
pub(super) struct Connection {
    gateway: Arc<GatewayState>,
    pub(super) client: Arc<Client>,
    sink: MessageSink,
    subscription: OnceLock<Arc<crate::subscribers::Subscription>>,
    pub(super) requests: GatewayTasks,
    unanswered: Arc<Semaphore>,
}

/// The end of a connection, also if its future is dropped.
impl Drop for Connection {
    fn drop(&mut self) {
        self.requests.abort();
        if let Some(subscription) = self.subscription.get() {
            self.gateway.methods.subscriptions.end(subscription);
        }
        self.gateway.servers.end_client(&self.client);
    }
}

impl Connection {
    /// Creates a connection, and the queue of the messages to the client.
    pub(super) fn new(
        gateway: &Arc<GatewayState>,
        principal: Principal,
        endpoint: usize,
    ) -> (Self, mpsc::Receiver<Bytes>) {
        let (queue, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let sink = MessageSink::Queue(queue);
        let general = sink.clone().counted(&gateway.traffic.responses, &principal);
        let client = Arc::new(Client::new(principal, endpoint, general));
        let connection = Self {
            gateway: gateway.clone(),
            client,
            sink,
            subscription: OnceLock::new(),
            requests: GatewayTasks::default(),
            unanswered: Arc::new(Semaphore::new(MAX_UNANSWERED_REQUESTS)),
        };
        (connection, messages)
    }

    /// Reads messages until the end of the input.
    async fn read(&self, mut reader: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut framer = LineFramer::new(self.gateway.options.limits.max_body_bytes);
        loop {
            let count = reader.read_buf(framer.read_buffer()).await?;
            while let Some(frame) = framer.next_frame() {
                match frame {
                    Frame::Line(line) => self.receive(line).await,
                    Frame::TooLong { head } => self.reject_long_line(head).await,
                }
            }
            if count == 0 {
                if let Some(Frame::Line(line)) = framer.finish() {
                    self.receive(line).await;
                }
                return Ok(());
            }
        }
    }

    async fn reject_long_line(&self, head: &[u8]) {
        let limit = self.gateway.options.limits.max_body_bytes;
        let error = RpcError::new(
            envelope::code::INVALID_REQUEST,
            format!("message longer than {limit} bytes"),
        );
        let (id, _) = skim::recover_top_level_id(head);
        self.sink.send(incoming::error_line(id.as_ref(), &error)).await;
    }

    async fn receive(&self, line: &[u8]) {
        match envelope::parse(line) {
            Ok(message) => self.accept(message, MessageSource::Line).await,
            Err(malformed) => self.reject(&malformed).await,
        }
    }

    /// Accepts messages of the client, and handles requests at the same time as the next messages.
    /// Waits while the client does not read its responses.
    pub(super) async fn accept(&self, message: Message<'_>, source: MessageSource) {
        let memory = match source {
            MessageSource::Line => None,
            MessageSource::Post(memory) => Some(Arc::new(memory)),
        };
        match message {
            Message::Single(message) => self.receive_message(message, memory).await,
            Message::Batch(messages) => {
                let revision = self.client.settings.identity().map(|identity| identity.revision);
                if !revision.is_none_or(innkeeper_protocol::Revision::allows_batches) {
                    let error = RpcError::new(
                        envelope::code::INVALID_REQUEST,
                        "this protocol revision has no batches",
                    );
                    self.sink.send(incoming::error_line(None, &error)).await;
                    return;
                }
                if let Some(Err(malformed)) = messages.last()
                    && malformed.kind == MalformedKind::BatchTooLarge
                {
                    self.reject(malformed).await;
                    return;
                }
                for (index, message) in messages.into_iter().enumerate() {
                    // No rate counts lines.
                    let counted = match memory {
                        Some(_) => {
                            self.gateway.traffic.count_batched(&self.client.principal, index)
                        }
                        None => Ok(()),
                    };
                    match (message, counted) {
                        (Ok(Incoming::Request { id, .. }), Err(exceeded)) => {
                            let error = RpcError::from_rate(exceeded);
                            self.sink.send(incoming::error_line(Some(&id), &error)).await;
                        }
                        // A message above the rate that is no request starts no work.
                        (Ok(message), _) => self.receive_message(message, memory.clone()).await,
                        (Err(malformed), _) => self.reject(&malformed).await,
                    }
                }
            }
        }
    }

    async fn reject(&self, malformed: &innkeeper_protocol::MalformedMessage) {
        let error = incoming::malformed_error(malformed);
        self.sink.send(incoming::error_line(malformed.id.as_ref(), &error)).await;
    }

    async fn receive_message(&self, message: Incoming<'_>, memory: Option<Arc<Reservation>>) {
        let Incoming::Request { id, method, params } = message else {
            incoming::accept(&self.gateway, &self.client, message);
            return;
        };
        let gateway = self.gateway.clone();
        let sink = self.sink.clone();
        let method = method.into_owned();
        let params: Option<Box<RawValue>> = params.map(ToOwned::to_owned);
        let is_initialize = method == innkeeper_protocol::method::INITIALIZE;
        if is_initialize && let Err(error) = self.add_subscriber().await {
            self.sink.send(incoming::error_line(Some(&id), &error)).await;
            return;
        }
        let connected = Connected {
            transport: ClientTransport::Connection,
            client: self.client.clone(),
            subscription: self.subscription.get().cloned(),
            header_trace: None,
            calls: None,
        };
        // A connection with lines has one client, which waits for its own responses.
        let room = match &memory {
            None => None,
            Some(_) => {
                match self.gateway.traffic.responses.reserve(&self.client.principal, [&id]) {
                    Ok(room) => Some(room),
                    Err(full) => {
                        // The error counts nowhere, so it repeats no long id.
                        let shown = (request_json(&id).get().len() <= MAX_UNCOUNTED_ID_BYTES)
                            .then_some(&id);
                        self.sink.send(incoming::error_line(shown, &full.into())).await;
                        return;
                    }
                }
            }
        };
        // The semaphore is never closed.
        let unanswered = self.unanswered.clone().acquire_owned().await;
        // No await between this check and the spawn: the shutdown waits for each accepted request.
        if self.gateway.servers.sole_client().is_some() && self.gateway.tasks.closing.initialized()
        {
            self.sink.send(incoming::error_line(Some(&id), &RpcError::closing())).await;
            return;
        }
        // The next message may cancel the request.
        let started = self.client.start_request(&id);
        let request_sink = sink.clone().counted(&gateway.traffic.responses, &self.client.principal);
        let responding = async move {
            let _held = (unanswered, memory);
            let request = JsonRpcRequest { id: &id, method: &method, params: params.as_deref() };
            let responding =
                incoming::respond_started(&gateway, &connected, started, &request_sink, request);
            if let Some(line) = responding.await {
                let line = match room {
                    Some(room) => room.hold(line, |error| incoming::error_line(Some(&id), error)),
                    None => line,
                };
                // A closed connection needs no response.
                sink.send(line).await;
            }
        };
        if is_initialize {
            // The identity must be known before the next message.
            Box::pin(responding).await;
        } else {
            self.requests.spawn(responding);
        }
    }

    /// Waits until the gateway closes, if this connection is its only one. The owner of other
    /// connections ends them: a command on a Unix socket sends several requests.
    async fn refuses_requests(&self) {
        if self.gateway.servers.sole_client().is_none() {
            std::future::pending::<()>().await;
        }
        self.gateway.drained().await;
    }

    /// Adds the client to the receivers of change notifications.
    async fn add_subscriber(&self) -> Result<(), RpcError> {
        if self.subscription.get().is_none() {
            let subscription = self.gateway.methods.subscriptions.add_legacy(&self.client)?;
            // Only the reader of the connection sets the cell.
            let _ = self.subscription.set(Arc::new(subscription));
        }
        Ok(())
    }
    /// Cancels the requests of the client.
    pub(super) fn end(&self) {
        self.client.disconnect();
    }
}

/// Writes the messages of the queue until all senders are gone.
async fn write(
    mut messages: mpsc::Receiver<Bytes>,
    mut writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(message) = messages.recv().await {
        if messages.is_empty() {
            writer.write_all(&message).await?;
        } else {
            buffer.extend_from_slice(&message);
            while buffer.len() < MAX_WRITE_BYTES
                && let Ok(message) = messages.try_recv()
            {
                buffer.extend_from_slice(&message);
            }
            writer.write_all(&buffer).await?;
            buffer.clear();
            buffer.shrink_to(MAX_WRITE_BYTES);
        }
        writer.flush().await?;
    }
    writer.shutdown().await
}
