//! A model whose response is a stream of tokens at a constant rate.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

/// Interval between two writes.
const WRITE_INTERVAL: Duration = Duration::from_millis(4);

/// Starts a model on a free port; returns its address. Each request gets the same number of tokens.
pub(super) fn serve_tokens(count: usize, per_second: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            // The client closes the connection when it leaves.
            thread::spawn(move || respond(stream, count, per_second).unwrap_or_default());
        }
    });
    origin
}

fn respond(mut stream: TcpStream, count: usize, per_second: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let path = read_request(&stream)?;
    if !path.ends_with("/chat/completions") {
        return stream.write_all(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
    )?;
    let start = Instant::now();
    let mut sent = 0;
    while sent < count {
        let due = (start.elapsed().as_secs_f64() * per_second as f64) as usize;
        let chunk: String = (sent..due.min(count)).map(|number| event(&token(number))).collect();
        stream.write_all(chunk.as_bytes())?;
        sent = due.min(count);
        thread::sleep(WRITE_INTERVAL);
    }
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    stream.write_all(format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes())
}

/// Returns a word; every twentieth ends a paragraph, and code blocks and lists are among the
/// paragraphs.
fn token(number: usize) -> String {
    match number % 400 {
        0 => "\n\n```rust\nfn main() {\n".to_owned(),
        40 => "\n}\n```\n\n".to_owned(),
        100 | 120 | 140 => format!("\n- item **{number}** "),
        count if count % 50 == 49 => format!("word{number}.\n\n"),
        _ => format!("word{number} "),
    }
}

fn event(text: &str) -> String {
    let delta = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {delta}\n\n")
}

/// Reads a request; returns its path.
fn read_request(stream: &TcpStream) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    Ok(path)
}
