//! Models: a client of a provider for Python, and a provider that an application wrote in Python.

use std::sync::Arc;

use async_trait::async_trait;
use innkeeper::Environment;
use innkeeper::auth::Secret;
use innkeeper::provider::{LlmError, LlmErrorKind, LlmProvider, Request, Response};
use innkeeper::transport::{HttpProvider, ModelSelector, get_llm_client};
use pyo3::prelude::*;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::callback::{ServerCall, Withdrawal};
use crate::chat_messages::{
    ChatMessage, aliases, completion_json, to_application_tools, to_messages, to_request,
    to_response, to_tools,
};
use crate::failure::Failure;
use crate::ghost::error_chain;
use crate::json::{Tape, parameter_json};
use crate::loop_queue::{LoopQueue, Message, Messages};
use crate::operation::{Operation, Output};

/// A model of a provider.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct LlmClient(Arc<HttpProvider>);

impl LlmClient {
    pub(crate) fn provider_handle(&self) -> Arc<dyn LlmProvider> {
        self.0.clone()
    }
}

#[pymethods]
impl LlmClient {
    #[new]
    #[pyo3(signature = (provider, model, api_key, base_url))]
    fn new(
        py: Python<'_>,
        provider: String,
        model: Option<String>,
        api_key: Option<String>,
        base_url: Option<String>,
    ) -> PyResult<Self> {
        let key = api_key.map(Secret::new);
        let selector = ModelSelector { provider, model, base_url, key, ..ModelSelector::default() };
        let client = get_llm_client(&selector, &Environment::from_process());
        let client = client.map_err(|error| Failure::Model(error_chain(&error)).into_error(py))?;
        Ok(Self(Arc::new(client)))
    }

    #[getter]
    fn model(&self) -> String {
        self.0.model().to_owned()
    }

    #[getter]
    fn provider(&self) -> String {
        self.0.name().to_owned()
    }

    /// Sends one request; see `LLMClient.create_completion`.
    fn create_completion(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: &Bound<'_, PyAny>,
        temperature: Option<f64>,
        max_tokens: Option<u32>,
    ) -> PyResult<Operation> {
        let invalid = |error: String| Failure::Model(error).into_error(py);
        let messages = parameter_json(messages, "messages")?;
        let tools = parameter_json(tools, "tools")?;
        let messages: Vec<ChatMessage> = serde_json::from_str(messages.get())
            .map_err(|error| invalid(format!("invalid messages: {error}")))?;
        let tools = to_application_tools(&tools).map_err(invalid)?;
        let mut request = to_request(messages, tools).map_err(invalid)?;
        request.temperature = temperature;
        request.max_tokens = max_tokens;
        let client = self.0.clone();
        Ok(Operation::new(async move {
            let names = aliases(&request);
            let response = client.generate(request).await;
            let response = response.map_err(|error| Failure::Model(error_chain(&error)))?;
            let completion = to_raw_value(&completion_json(&response, &names));
            let completion = completion.map_err(|error| Failure::Internal(error.to_string()))?;
            Ok(Output::Json(Tape::new(completion)))
        }))
    }
}

/// A provider that an application wrote in Python, on the loop of the run.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct PythonModel(Arc<PythonProvider>);

impl PythonModel {
    pub(crate) fn provider(&self) -> Arc<dyn LlmProvider> {
        self.0.clone()
    }
}

#[pymethods]
impl PythonModel {
    /// `respond(request, reply)` starts the completion of `request`, a dict with `messages`, `tools`,
    /// `temperature` and `max_tokens`.
    #[new]
    fn new(
        respond: Py<PyAny>,
        queue: &Bound<'_, LoopQueue>,
        name: String,
        model: String,
        supports_tools: bool,
    ) -> Self {
        let respond = Arc::new(respond);
        let messages = queue.get().messages();
        Self(Arc::new(PythonProvider { respond, messages, name, model, supports_tools }))
    }
}

struct PythonProvider {
    respond: Arc<Py<PyAny>>,
    messages: Arc<Messages>,
    name: String,
    model: String,
    supports_tools: bool,
}

impl PythonProvider {
    fn error(&self, message: impl Into<Box<str>>) -> LlmError {
        LlmError::new(&self.name, LlmErrorKind::InvalidRequest, message)
    }
}

#[async_trait]
impl LlmProvider for PythonProvider {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let names = aliases(&request);
        let members = json!({
            "messages": to_messages(&request, &names),
            "tools": to_tools(&request, &names),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        });
        let (reply, answer) = oneshot::channel();
        let id = self.messages.next_id();
        let make_request = Box::new(move |py: Python<'_>| request_dict(py, &members));
        let call = ServerCall::new(id, make_request, reply, self.respond.clone());
        self.messages.push(Message::Ask(call));
        let _withdrawal = Withdrawal::new(id, self.messages.clone());
        let answer = answer.await.map_err(|_| self.error("the provider gave no answer"))?;
        let completion = answer.map_err(|error| self.error(error.message))?;
        let completion: Value = serde_json::from_str(completion.get())
            .map_err(|error| self.error(error.to_string()))?;
        to_response(&completion, &names).map_err(|problem| {
            self.error(format!("`create_completion` returned no completion: {problem}"))
        })
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn supports_tools(&self) -> bool {
        self.supports_tools
    }
}

fn request_dict(py: Python<'_>, members: &Value) -> PyResult<Py<PyAny>> {
    let json = to_raw_value(members)
        .map_err(|error| Failure::Internal(error.to_string()).into_error(py))?;
    Tape::new(json).into_python(py)
}
