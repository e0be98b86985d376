//! A plain HTTP/1.1 client: one connection per request, bodies in chunks.

use std::future::Future;

use innkeeper_testkit::{RemoteServer, ScriptedLlm};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::RECEIVE_TIMEOUT;

pub(crate) trait HttpStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> HttpStream for T {}

/// A server with an origin.
pub(crate) trait HasOrigin {
    fn origin(&self) -> &str;
}

impl HasOrigin for RemoteServer {
    fn origin(&self) -> &str {
        Self::origin(self)
    }
}

impl HasOrigin for ScriptedLlm {
    fn origin(&self) -> &str {
        Self::origin(self)
    }
}

impl HasOrigin for String {
    fn origin(&self) -> &str {
        self
    }
}

/// A response whose body is read in chunks.
pub(crate) struct HttpExchange {
    pub(crate) stream: Box<dyn HttpStream>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// The unread part of the received body.
    body: Vec<u8>,
    body_ended: bool,
}

/// An event of a stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SseEvent {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) data: String,
}

impl SseEvent {
    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// Panics with a message instead of hanging.
pub(crate) async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(RECEIVE_TIMEOUT, future).await.expect("nothing came")
}

impl HttpExchange {
    pub(crate) async fn connect(remote: &impl HasOrigin) -> Box<dyn HttpStream> {
        match remote.origin().strip_prefix("http://") {
            Some(address) => Box::new(TcpStream::connect(address).await.unwrap()),
            None => Box::new(UnixStream::connect(remote.origin()).await.unwrap()),
        }
    }

    /// Sends a request on a new connection without reading the response.
    pub(crate) async fn send(
        remote: &impl HasOrigin,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Self {
        let mut stream = Self::connect(remote).await;
        let body = body.map_or_else(String::new, Value::to_string);
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(head.as_bytes()).await.unwrap();
        let (buffer, headers, body) = (Vec::new(), Vec::new(), Vec::new());
        Self { stream, buffer, status: 0, headers, body, body_ended: false }
    }

    /// Sends a request and reads the head of its response.
    pub(crate) async fn request(
        remote: &impl HasOrigin,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Self {
        let mut http = Self::send(remote, method, path, headers, body).await;
        within_timeout(http.read_head()).await.unwrap();
        http
    }

    /// Reads the response head; returns an error if the connection ends before.
    pub(crate) async fn read_head(&mut self) -> std::io::Result<()> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                let head = String::from_utf8(head).unwrap();
                let mut lines = head.trim_end().split("\r\n");
                self.status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
                let pairs = lines.map(|line| line.split_once(':').unwrap());
                self.headers =
                    pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
                return Ok(());
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> std::io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let matched = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        matched.map(|(_, value)| value.as_str())
    }

    /// Reads more of the body; returns false at the end.
    async fn read_body_chunk(&mut self) -> std::io::Result<bool> {
        if self.body_ended {
            return Ok(false);
        }
        if let Some(length) = self.header("content-length") {
            let length: usize = length.parse().unwrap();
            while self.buffer.len() < length {
                self.fill().await?;
            }
            self.body.extend(self.buffer.drain(..length));
            self.body_ended = true;
            return Ok(length > 0);
        }
        let line = loop {
            match find(&self.buffer, b"\r\n") {
                Some(end) => break end,
                None => self.fill().await?,
            }
        };
        let size = String::from_utf8(self.buffer[..line].to_vec()).unwrap();
        let size = usize::from_str_radix(&size, 16).unwrap();
        while self.buffer.len() < line + 2 + size + 2 {
            self.fill().await?;
        }
        self.body.extend_from_slice(&self.buffer[line + 2..line + 2 + size]);
        self.buffer.drain(..line + 2 + size + 2);
        self.body_ended = size == 0;
        Ok(!self.body_ended)
    }

    /// Returns the next event; none at the regular end, an error if the stream breaks off.
    pub(crate) async fn next_event(&mut self) -> std::io::Result<Option<SseEvent>> {
        let end = loop {
            match find(&self.body, b"\n\n") {
                Some(end) => break end,
                None if self.read_body_chunk().await? => {}
                None => return Ok(None),
            }
        };
        let text: Vec<u8> = self.body.drain(..end + 2).collect();
        let mut event = SseEvent::default();
        let mut data = Vec::new();
        for line in String::from_utf8_lossy(&text).trim_end_matches('\n').split('\n') {
            let (field, value) = line.split_once(": ").unwrap_or((line, ""));
            match field {
                "id" => event.id = Some(value.to_owned()),
                "event" => event.name = Some(value.to_owned()),
                "retry" => event.retry = Some(value.to_owned()),
                "data" => data.push(value.to_owned()),
                other => panic!("a field `{other}`"),
            }
        }
        event.data = data.join("\n");
        Ok(Some(event))
    }

    /// Returns the next event, which must exist.
    pub(crate) async fn expect_event(&mut self) -> SseEvent {
        within_timeout(self.next_event()).await.unwrap().expect("an event")
    }

    /// Checks that the stream ends regularly.
    pub(crate) async fn assert_ended(&mut self) {
        assert_eq!(within_timeout(self.next_event()).await.unwrap(), None);
    }

    /// Returns the received part of a body that stalls or breaks off.
    pub(crate) async fn partial_body(&mut self) -> (String, Option<std::io::Error>) {
        let error = loop {
            let more =
                tokio::time::timeout(std::time::Duration::from_millis(300), self.read_body_chunk());
            match more.await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) | Err(_) => break None,
                Ok(Err(error)) => break Some(error),
            }
        };
        (String::from_utf8_lossy(&self.body).into_owned(), error)
    }

    /// Returns the complete body.
    pub(crate) async fn bytes(&mut self) -> Vec<u8> {
        while within_timeout(self.read_body_chunk()).await.unwrap() {}
        std::mem::take(&mut self.body)
    }

    /// Returns the complete body in its chunks.
    pub(crate) async fn body_chunks(&mut self) -> Vec<Vec<u8>> {
        let mut chunks = Vec::new();
        while within_timeout(self.read_body_chunk()).await.unwrap() {
            chunks.push(std::mem::take(&mut self.body));
        }
        chunks
    }

    /// Returns the complete body as JSON.
    pub(crate) async fn json(&mut self) -> Value {
        serde_json::from_slice(&self.bytes().await).unwrap()
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
