//! Tool calls in the text of a model, as the text arrives (document 001).

use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_toolcall::{
    Format, IncompleteReason, ParseEvent, ParserOptions, TextEnd, ToolCallParser, Tools,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::chat_messages::to_application_tools;
use crate::failure::Failure;
use crate::json::{Tape, parameter_json};

/// A parser of one text.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct Interceptor(Mutex<ToolCallParser>);

/// One event.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum TextEvent {
    Text { text: String },
    Reasoning { text: String },
    Call { name: String, arguments: Box<RawValue>, repairs: Vec<String> },
    Rejected { text: String, name: String, reason: String, suggestions: Vec<String> },
    Incomplete { text: String, reason: &'static str },
}

#[pymethods]
impl Interceptor {
    #[new]
    fn new(
        tools: &Bound<'_, PyAny>,
        model: Option<&str>,
        format: Option<&str>,
        prompt: Option<String>,
    ) -> PyResult<Self> {
        let json = parameter_json(tools, "tools")?;
        let tools = to_application_tools(&json).map_err(PyValueError::new_err)?;
        let format = match (format, model) {
            (Some(name), _) => Format::from_name(name)
                .ok_or_else(|| PyValueError::new_err(format!("unknown format `{name}`")))?,
            (None, Some(model)) => Format::for_model(model),
            (None, None) => Format::Detect,
        };
        let tools: Tools = tools.into_iter().collect();
        let options = ParserOptions { format, prompt, ..ParserOptions::default() };
        Ok(Self(Mutex::new(ToolCallParser::new(Arc::new(tools), &options))))
    }

    /// Reads more of the text, and returns the events that it completes.
    fn push(&self, py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
        self.read(py, |parser, events| {
            parser.push_bytes(text.as_bytes(), &mut |event| add(events, &event));
        })
    }

    /// Ends the text, and returns the last events.
    fn finish(&self, py: Python<'_>, reason: Option<&str>) -> PyResult<Py<PyAny>> {
        let end = match reason {
            Some("stop") => TextEnd::Stop,
            Some("length") => TextEnd::Length,
            // Nobody says why the text ended, so no open call is completed.
            None => TextEnd::Interrupted,
            Some(other) => {
                let message = format!("unknown reason `{other}`: use stop or length");
                return Err(PyValueError::new_err(message));
            }
        };
        self.read(py, |parser, events| parser.finish(end, &mut |event| add(events, &event)))
    }
}

impl Interceptor {
    fn read(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&mut ToolCallParser, &mut Vec<TextEvent>),
    ) -> PyResult<Py<PyAny>> {
        let mut events = Vec::new();
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), &mut events);
        let json = to_raw_value(&events)
            .map_err(|error| Failure::Internal(error.to_string()).into_error(py))?;
        Tape::new(json).into_python(py)
    }
}

fn add(events: &mut Vec<TextEvent>, event: &ParseEvent<'_>) {
    match event {
        ParseEvent::Text(text) => add_text(events, text),
        ParseEvent::Reasoning(more) => match events.last_mut() {
            Some(TextEvent::Reasoning { text }) => text.push_str(more),
            _ => events.push(TextEvent::Reasoning { text: (*more).to_owned() }),
        },
        ParseEvent::Call { call, .. } => events.push(TextEvent::Call {
            name: call.name.clone(),
            arguments: RawValue::from_string(call.arguments.to_string()).unwrap_or_default(),
            repairs: call.repairs.iter().map(ToString::to_string).collect(),
        }),
        ParseEvent::Rejected { rejected, text, .. } => events.push(TextEvent::Rejected {
            text: (*text).to_owned(),
            name: rejected.name.clone(),
            reason: rejected.to_string(),
            suggestions: rejected.suggestions.clone(),
        }),
        ParseEvent::Incomplete { reason, text, .. } => events.push(TextEvent::Incomplete {
            text: (*text).to_owned(),
            reason: match reason {
                IncompleteReason::Stopped => "stopped",
                IncompleteReason::Length => "length",
                IncompleteReason::Interrupted => "interrupted",
                IncompleteReason::EndedEarly => "ended_early",
            },
        }),
        ParseEvent::Markup(_) | ParseEvent::CallStart { .. } | ParseEvent::Arguments { .. } => {}
    }
}

fn add_text(events: &mut Vec<TextEvent>, more: &str) {
    if let Some(TextEvent::Text { text }) = events.last_mut() {
        text.push_str(more);
    } else if !more.is_empty() {
        events.push(TextEvent::Text { text: more.to_owned() });
    }
}
