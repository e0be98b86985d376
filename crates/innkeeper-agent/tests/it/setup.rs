//! What the tests here start from: tools in memory, answers of a model, everything an answer gives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use innkeeper_agent::chat::{Answer, Executed, Part, Token};
use innkeeper_agent::tools::Running;
use innkeeper_agent::{Chat, Hints, Offered, Output, RunError, Settings, ToolRunner};
use innkeeper_toolcall::Tool;
use serde_json::{Value, json};

/// Tools in memory, and what was asked of them.
#[derive(Debug, Default)]
pub(crate) struct Shop {
    begun: Mutex<Vec<(String, Value)>>,
    ended: Mutex<Vec<String>>,
}

impl Shop {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The calls that were begun, with their arguments.
    pub(crate) fn begun(&self) -> Vec<(String, Value)> {
        self.begun.lock().unwrap().clone()
    }

    /// The calls that came to their end.
    pub(crate) fn ended(&self) -> Vec<String> {
        self.ended.lock().unwrap().clone()
    }

    /// A chat over these tools.
    pub(crate) fn chat(self: &Arc<Self>, settings: Settings) -> Chat {
        Chat::new(self.clone(), settings).unwrap()
    }
}

fn offered(name: &str, properties: &Value, required: &[&str], hints: Hints) -> Offered {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Offered { tool: Tool::new(name, format!("Does {name}."), schema), hints }
}

impl ToolRunner for Shop {
    fn offered(&self) -> Vec<Offered> {
        let string = json!({"type": "string"});
        let none = Hints::default();
        let reads = Hints { read_only: true, idempotent: false };
        let again = Hints { read_only: false, idempotent: true };
        vec![
            offered("echo", &json!({"message": string}), &["message"], none),
            offered("sleep", &json!({"ms": {"type": "integer"}}), &["ms"], none),
            offered("big", &json!({"bytes": {"type": "integer"}}), &["bytes"], none),
            offered("read", &json!({"path": string, "line": {"type": "integer"}}), &[], reads),
            offered("set", &json!({"to": string}), &[], again),
            offered("fail", &json!({}), &[], reads),
            offered("panic", &json!({}), &[], none),
            offered("broken", &json!({}), &[], none),
        ]
    }

    fn run<'r>(&'r self, name: &'r str, arguments: Value) -> Running<'r> {
        self.begun.lock().unwrap().push((name.to_owned(), arguments.clone()));
        Box::pin(async move {
            let text = match name {
                "sleep" => {
                    let ms = arguments["ms"].as_u64().unwrap();
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    "slept".to_owned()
                }
                "big" => "x".repeat(arguments["bytes"].as_u64().unwrap() as usize),
                "read" => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    format!("read {}", self.begun.lock().unwrap().len())
                }
                "panic" => panic!("as asked"),
                "broken" => {
                    let source = std::io::Error::other("as asked").into();
                    return Err(RunError::Runner { tool: name.to_owned(), source });
                }
                _ => arguments.to_string(),
            };
            self.ended.lock().unwrap().push(name.to_owned());
            let failed = name == "fail";
            let result = json!({"content": [{"type": "text", "text": text}], "isError": failed});
            Ok(Output::new(serde_json::value::to_raw_value(&result).unwrap(), failed))
        })
    }
}

/// A call in the form of the documents.
pub(crate) fn call(tool: &str, params: &Value) -> String {
    json!({"tool": tool, "params": params}).to_string()
}

pub(crate) fn echo(message: &str) -> String {
    call("echo", &json!({"message": message}))
}

/// A model's answer in these pieces.
pub(crate) fn answer_of<P: Into<String>>(
    pieces: impl IntoIterator<Item = P>,
) -> impl Stream<Item = String> + Send + Unpin + 'static {
    let pieces: Vec<String> = pieces.into_iter().map(Into::into).collect();
    stream::iter(pieces)
}

/// A text cut into pieces of this many characters.
pub(crate) fn cut(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// Everything an answer gives.
#[derive(Debug, Default)]
pub(crate) struct All {
    pub(crate) tokens: Vec<Token>,
    pub(crate) executed: Vec<Executed>,
}

impl All {
    pub(crate) async fn of(answer: &mut Answer) -> Self {
        let mut all = Self::default();
        while let Some(part) = answer.next().await {
            match part {
                Part::Token(token) => all.tokens.push(token),
                Part::Executed(executed) => all.executed.push(executed),
            }
        }
        all
    }

    /// Reads one answer with default settings.
    pub(crate) async fn read<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        let chat = Shop::new().chat(Settings::default());
        Self::of(&mut chat.turn().answer(answer_of(pieces)).unwrap()).await
    }

    /// What the reader sees.
    pub(crate) fn shown(&self) -> String {
        self.tokens.iter().filter_map(Token::shown).collect()
    }

    /// The input as the tokens have it.
    pub(crate) fn input(&self) -> String {
        self.tokens.iter().map(Token::text).collect()
    }
}

/// The text a tool answered with.
pub(crate) fn text(executed: &Executed) -> String {
    let raw = executed.outcome.as_ref().unwrap().raw().get();
    let result: Value = serde_json::from_str(raw).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

pub(crate) fn error(executed: &Executed) -> String {
    executed.outcome.as_ref().unwrap_err().to_string()
}

/// The model's end of an answer that goes on until this is dropped.
pub(crate) struct Pen(tokio::sync::mpsc::Sender<String>);

impl Pen {
    pub(crate) async fn send(&self, piece: &str) {
        self.0.send(piece.to_owned()).await.unwrap();
    }

    /// Whether somebody took the piece.
    pub(crate) async fn try_send(&self, piece: &str) -> bool {
        self.0.send(piece.to_owned()).await.is_ok()
    }
}

/// An answer that is written piece by piece.
pub(crate) fn open_stream() -> (Pen, impl Stream<Item = String> + Send + Unpin + 'static) {
    let (to, from) = tokio::sync::mpsc::channel(1);
    let pieces = stream::unfold(from, |mut from| async { Some((from.recv().await?, from)) });
    (Pen(to), Box::pin(pieces))
}
