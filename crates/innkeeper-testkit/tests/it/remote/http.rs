//! A plain HTTP/1.1 client: one connection for each request, bodies as they come.

use std::future::Future;

use innkeeper_testkit::{Remote, ScriptedLlm};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::PATIENCE;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A server that is asked.
pub(crate) trait Origin {
    fn origin(&self) -> &str;
}

impl Origin for Remote {
    fn origin(&self) -> &str {
        Self::origin(self)
    }
}

impl Origin for ScriptedLlm {
    fn origin(&self) -> &str {
        Self::origin(self)
    }
}

impl Origin for String {
    fn origin(&self) -> &str {
        self
    }
}

/// A response whose body is read bit by bit.
pub(crate) struct Http {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// The body as far as it was read and not yet taken.
    body: Vec<u8>,
    ended: bool,
}

/// An event of a stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// Fails by name instead of hanging.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing came")
}

impl Http {
    pub(crate) async fn connect(remote: &impl Origin) -> Box<dyn Stream> {
        match remote.origin().strip_prefix("http://") {
            Some(address) => Box::new(TcpStream::connect(address).await.unwrap()),
            None => Box::new(UnixStream::connect(remote.origin()).await.unwrap()),
        }
    }

    /// Sends a request on a connection of its own, without reading anything.
    pub(crate) async fn send(
        remote: &impl Origin,
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
        Self { stream, buffer, status: 0, headers, body, ended: false }
    }

    /// Sends a request and reads the head of its response.
    pub(crate) async fn ask(
        remote: &impl Origin,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Self {
        let mut http = Self::send(remote, method, path, headers, body).await;
        soon(http.head()).await.unwrap();
        http
    }

    /// Reads the head; an error when the connection ends before.
    pub(crate) async fn head(&mut self) -> std::io::Result<()> {
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
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Reads more of the body; false at its end.
    async fn more(&mut self) -> std::io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if let Some(length) = self.header("content-length") {
            let length: usize = length.parse().unwrap();
            while self.buffer.len() < length {
                self.fill().await?;
            }
            self.body.extend(self.buffer.drain(..length));
            self.ended = true;
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
        self.ended = size == 0;
        Ok(!self.ended)
    }

    /// The next event; none when the stream ends as it should, an error when it breaks off.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Event>> {
        let end = loop {
            match find(&self.body, b"\n\n") {
                Some(end) => break end,
                None if self.more().await? => {}
                None => return Ok(None),
            }
        };
        let text: Vec<u8> = self.body.drain(..end + 2).collect();
        let mut event = Event::default();
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

    /// The next event, which there must be.
    pub(crate) async fn event(&mut self) -> Event {
        soon(self.next()).await.unwrap().expect("an event")
    }

    /// Proves that the stream ends as it should.
    pub(crate) async fn assert_ended(&mut self) {
        assert_eq!(soon(self.next()).await.unwrap(), None);
    }

    /// What has come of a body that does not go on.
    pub(crate) async fn half(&mut self) -> (String, Option<std::io::Error>) {
        let error = loop {
            let more = tokio::time::timeout(std::time::Duration::from_millis(300), self.more());
            match more.await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) | Err(_) => break None,
                Ok(Err(error)) => break Some(error),
            }
        };
        (String::from_utf8_lossy(&self.body).into_owned(), error)
    }

    /// The whole body.
    pub(crate) async fn bytes(&mut self) -> Vec<u8> {
        while soon(self.more()).await.unwrap() {}
        std::mem::take(&mut self.body)
    }

    /// The whole body in the pieces in which it was sent.
    pub(crate) async fn pieces(&mut self) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        while soon(self.more()).await.unwrap() {
            pieces.push(std::mem::take(&mut self.body));
        }
        pieces
    }

    /// The whole body as JSON.
    pub(crate) async fn json(&mut self) -> Value {
        serde_json::from_slice(&self.bytes().await).unwrap()
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
