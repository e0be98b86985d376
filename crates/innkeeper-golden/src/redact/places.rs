//! Every place of a golden that can hold a secret.
//!
//! Each structure is taken apart completely, so that a new member does not compile before it has its
//! place here.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::RedactError;
use crate::file::{
    AgentInput, Answer, AnswerRecord, ApprovalRecord, Chunk, Exchange, Golden, HttpRequestRecord,
    HttpResponseRecord, Input, NotificationRecord, Offer, Outcome, ProgressRecord, QuestionRecord,
    ReplyRecord, ServedRecord, ServerRecord, StreamEnd, ToolCallRecord, ToolRecord,
    UnavailableRecord,
};

/// What stands at a place.
pub(super) enum Value<'g> {
    Text(&'g mut String),
    /// A URL of the model.
    Url(&'g mut String),
    Json(&'g mut Box<RawValue>),
    Body(&'g mut [Chunk]),
}

/// What is done at each place, which has a JSON pointer.
pub(super) type Visit<'v> = dyn FnMut(&str, Value<'_>) -> Result<(), RedactError> + 'v;

type Visited = Result<(), RedactError>;

pub(super) fn visit(golden: &mut Golden, visit: &mut Visit<'_>) -> Visited {
    let Golden {
        version: _,
        test_name,
        origin: _,
        category: _,
        recorded_at,
        program,
        input,
        golden_output,
        provider_responses,
        servers,
        tools,
        offers,
        tool_calls,
        approvals,
        questions,
        served,
        jitter: _,
        // Written by hand, after the recording.
        rules: _,
        accepted: _,
    } = golden;
    visit("/test_name", Value::Text(test_name))?;
    visit("/recorded_at", Value::Text(recorded_at))?;
    visit("/program", Value::Text(program))?;
    visit_input(input, visit)?;
    visit("/golden_output", Value::Json(golden_output))?;
    for (at, exchange) in provider_responses.iter_mut().enumerate() {
        visit_exchange(&format!("/provider_responses/{at}"), exchange, visit)?;
    }
    visit_servers(servers, visit)?;
    for (at, tool) in tools.iter_mut().enumerate() {
        visit_tool(&format!("/tools/{at}"), tool, visit)?;
    }
    for (at, Offer { requests: _, calls: _, tools: _, unavailable }) in
        offers.iter_mut().enumerate()
    {
        for (tool, UnavailableRecord { name, server, reason }) in unavailable.iter_mut().enumerate()
        {
            let place = format!("/offers/{at}/unavailable/{tool}");
            visit(&format!("{place}/name"), Value::Text(name))?;
            visit(&format!("{place}/server"), Value::Text(server))?;
            visit(&format!("{place}/reason"), Value::Text(reason))?;
        }
    }
    for (at, call) in tool_calls.iter_mut().enumerate() {
        visit_call(&format!("/tool_calls/{at}"), call, visit)?;
    }
    for (at, approval) in approvals.iter_mut().enumerate() {
        visit_approval(&format!("/approvals/{at}"), approval, visit)?;
    }
    for (at, record) in served.iter_mut().enumerate() {
        visit_served(&format!("/served/{at}"), record, visit)?;
    }
    for (at, question) in questions.iter_mut().enumerate() {
        let QuestionRecord { server, method, params, answer, call: _ } = question;
        let place = format!("/questions/{at}");
        visit(&format!("{place}/server"), Value::Text(server))?;
        visit(&format!("{place}/method"), Value::Text(method))?;
        visit(&format!("{place}/params"), Value::Json(params))?;
        visit_json(&format!("{place}/answer"), answer, visit)?;
    }
    Ok(())
}

fn visit_text(place: &str, text: Option<&mut String>, visit: &mut Visit<'_>) -> Visited {
    text.map_or(Ok(()), |text| visit(place, Value::Text(text)))
}

fn visit_json(place: &str, json: &mut Option<Box<RawValue>>, visit: &mut Visit<'_>) -> Visited {
    json.as_mut().map_or(Ok(()), |json| visit(place, Value::Json(json)))
}

fn visit_input(input: &mut Input, visit: &mut Visit<'_>) -> Visited {
    let Input {
        server_config,
        system_prompt,
        provider,
        model,
        api,
        base_url,
        user_prompt,
        further_prompts,
        namespace,
        streaming: _,
        settings,
        agent,
    } = input;
    if let Some(AgentInput { command, base_urls }) = agent {
        for (at, argument) in command.iter_mut().enumerate() {
            visit(&format!("/input/agent/command/{at}"), Value::Text(argument))?;
        }
        for (provider, base_url) in base_urls.iter_mut() {
            visit(&format!("/input/agent/base_urls/{provider}"), Value::Url(base_url))?;
        }
    }
    visit("/input/server_config", Value::Json(server_config))?;
    visit("/input/system_prompt", Value::Text(system_prompt))?;
    visit("/input/provider", Value::Text(provider))?;
    visit("/input/model", Value::Text(model))?;
    visit("/input/api", Value::Text(api))?;
    visit("/input/base_url", Value::Url(base_url))?;
    visit("/input/user_prompt", Value::Text(user_prompt))?;
    for (at, prompt) in further_prompts.iter_mut().enumerate() {
        visit(&format!("/input/further_prompts/{at}"), Value::Text(prompt))?;
    }
    visit("/input/namespace", Value::Text(namespace))?;
    visit("/input/settings", Value::Json(settings))
}

fn visit_exchange(place: &str, exchange: &mut Exchange, visit: &mut Visit<'_>) -> Visited {
    let Exchange { iteration: _, request, response, token_usage } = exchange;
    let HttpRequestRecord { method, url, body, begin_ms: _ } = request;
    visit(&format!("{place}/request/method"), Value::Text(method))?;
    visit(&format!("{place}/request/url"), Value::Url(url))?;
    visit_json(&format!("{place}/request/body"), body, visit)?;
    visit_json(&format!("{place}/token_usage"), token_usage, visit)?;
    match response {
        ReplyRecord::Http(response) => {
            visit_response(&format!("{place}/response/http"), response, visit)
        }
        ReplyRecord::Failed { ms: _, kind, message } => {
            visit(&format!("{place}/response/failed/kind"), Value::Text(kind))?;
            visit(&format!("{place}/response/failed/message"), Value::Text(message))
        }
        ReplyRecord::Silent {} => Ok(()),
    }
}

fn visit_response(
    place: &str,
    response: &mut HttpResponseRecord,
    visit: &mut Visit<'_>,
) -> Visited {
    let HttpResponseRecord { status: _, ms: _, headers, chunks, end } = response;
    for (at, (name, value)) in headers.iter_mut().enumerate() {
        visit(&format!("{place}/headers/{at}/0"), Value::Text(name))?;
        visit(&format!("{place}/headers/{at}/1"), Value::Text(value))?;
    }
    visit(&format!("{place}/chunks"), Value::Body(chunks))?;
    match end {
        StreamEnd::Failed { ms: _, kind, message } => {
            visit(&format!("{place}/end/failed/kind"), Value::Text(kind))?;
            visit(&format!("{place}/end/failed/message"), Value::Text(message))
        }
        StreamEnd::Complete { ms: _ } | StreamEnd::Unread {} => Ok(()),
    }
}

fn visit_servers(servers: &mut BTreeMap<String, ServerRecord>, visit: &mut Visit<'_>) -> Visited {
    for (mut name, mut record) in std::mem::take(servers) {
        let ServerRecord { ready: _, reason } = &mut record;
        // The name can be a secret, which the pointer must not show.
        visit("/servers", Value::Text(&mut name))?;
        visit_text(&format!("/servers/{name}/reason"), reason.as_mut(), visit)?;
        if servers.insert(name.clone(), record).is_some() {
            return Err(RedactError::SameName { name });
        }
    }
    Ok(())
}

fn visit_tool(place: &str, tool: &mut ToolRecord, visit: &mut Visit<'_>) -> Visited {
    let ToolRecord { name, hash, from_server: _, refusal, definition } = tool;
    visit(&format!("{place}/name"), Value::Text(name))?;
    visit_text(&format!("{place}/refusal"), refusal.as_mut(), visit)?;
    let before = definition.get().to_owned();
    visit(&format!("{place}/definition"), Value::Json(definition))?;
    if definition.get() != before {
        *hash = ToolRecord::hash_of(definition);
    }
    Ok(())
}

fn visit_call(place: &str, call: &mut ToolCallRecord, visit: &mut Visit<'_>) -> Visited {
    let ToolCallRecord {
        name,
        arguments,
        round: _,
        begin_ms: _,
        end_ms: _,
        ended_before: _,
        progress,
        outcome,
        served: _,
        params,
    } = call;
    visit(&format!("{place}/name"), Value::Text(name))?;
    visit(&format!("{place}/arguments"), Value::Json(arguments))?;
    for (at, ProgressRecord { ms: _, params }) in progress.iter_mut().enumerate() {
        visit(&format!("{place}/progress/{at}/params"), Value::Json(params))?;
    }
    visit_json(&format!("{place}/params"), params, visit)?;
    visit_outcome(&format!("{place}/outcome"), outcome, visit)
}

fn visit_outcome(place: &str, outcome: &mut Outcome, visit: &mut Visit<'_>) -> Visited {
    match outcome {
        Outcome::Result(result) => visit(&format!("{place}/result"), Value::Json(result)),
        Outcome::ToolError(result) => visit(&format!("{place}/tool_error"), Value::Json(result)),
        Outcome::Failed { class, message, may_have_run: _ } => {
            visit(&format!("{place}/failed/class"), Value::Text(class))?;
            visit(&format!("{place}/failed/message"), Value::Text(message))
        }
        Outcome::Error(error) => visit(&format!("{place}/error"), Value::Json(error)),
        Outcome::Abandoned {} => Ok(()),
    }
}

fn visit_served(place: &str, served: &mut ServedRecord, visit: &mut Visit<'_>) -> Visited {
    let ServedRecord { arguments, server_config, answers, notifications } = served;
    for (at, argument) in arguments.iter_mut().enumerate() {
        visit(&format!("{place}/arguments/{at}"), Value::Text(argument))?;
    }
    visit(&format!("{place}/server_config"), Value::Json(server_config))?;
    for (at, answer) in answers.iter_mut().enumerate() {
        let AnswerRecord { method, params, outcome, tools: _ } = answer;
        let place = format!("{place}/answers/{at}");
        visit(&format!("{place}/method"), Value::Text(method))?;
        visit_json(&format!("{place}/params"), params, visit)?;
        visit_outcome(&format!("{place}/outcome"), outcome, visit)?;
    }
    for (at, notification) in notifications.iter_mut().enumerate() {
        let NotificationRecord { method, params, requests: _, begun: _, calls: _, answers: _ } =
            notification;
        let place = format!("{place}/notifications/{at}");
        visit(&format!("{place}/method"), Value::Text(method))?;
        visit_json(&format!("{place}/params"), params, visit)?;
    }
    Ok(())
}

fn visit_approval(place: &str, approval: &mut ApprovalRecord, visit: &mut Visit<'_>) -> Visited {
    let ApprovalRecord { tool, arguments, answer } = approval;
    visit(&format!("{place}/tool"), Value::Text(tool))?;
    visit(&format!("{place}/arguments"), Value::Json(arguments))?;
    match answer {
        Answer::Approved {} => Ok(()),
        Answer::Changed(arguments) => {
            visit(&format!("{place}/answer/changed"), Value::Json(arguments))
        }
        Answer::Denied(reason) => visit(&format!("{place}/answer/denied"), Value::Text(reason)),
    }
}
