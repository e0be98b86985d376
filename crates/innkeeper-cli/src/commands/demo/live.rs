//! `demo --model local`: the small local model calls the tools of the demo's servers.

use std::sync::Arc;

use innkeeper_agent::agent::{Agent, Report, Settings, Step};
use innkeeper_agent::conversation::Budget;
use innkeeper_agent::provider::Wire;
use innkeeper_agent::result::Outcome;
use innkeeper_agent::transport::{Endpoint, HttpProvider};
use innkeeper_host::{Config, Host};
use serde_json::{Value, json};

use super::{short, stopped};
use crate::commands::Context;
use crate::exit::Failure;
use crate::hosting::with_host;
use crate::model::{Model, Serving, place};
use crate::output::{Output, Tone};

/// What the model is asked, each by itself: it is too small for two things at once, and these are among
/// the few that it manages.
const QUESTIONS: [&str; 2] = [
    "Search the files for the text wine.",
    "Add a note with the title `cider` and the text `twelve casks`.",
];

/// How much history and answer there is room for; the model reads 8,192 tokens.
const HISTORY: usize = 6000;
const ANSWER: u32 = 200;

pub(super) async fn run(context: &mut Context, config: Config) -> Result<(), Failure> {
    let dir = place(&context.environment);
    let missing = || {
        Failure::failed("the small local model is not in place")
            .hint("`innkeeper model fetch` puts it there, 161 MB")
    };
    let dir = dir.ok_or_else(missing)?;
    let model = Model::installed(&dir)?.ok_or_else(missing)?;
    if !context.output.is_json() {
        context.output.data(&format!(
            "Starting `{}`, a language model of 135 million weights, on this machine. It is real and \
             small:\nexpect wrong words around right calls, and now and then a wrong call.\n",
            model.name()
        ))?;
    }
    let serving = model.serve(None).await?;
    let provider = Arc::new(provider(&serving).await?);
    let mut reports = Vec::new();
    let asked = async |host: &Host, output: &mut Output| {
        let settings = Settings {
            budget: Some(Budget { tokens: HISTORY }),
            max_tokens: ANSWER,
            temperature: Some(0.0),
            ..Settings::default()
        };
        let mut agent = Agent::new(provider.clone(), Arc::new(host.clone()), settings);
        for question in QUESTIONS {
            agent.clear();
            let report = agent.run(question).await;
            if !output.is_json() {
                show(output, question, &report)?;
            }
            reports.push(report);
        }
        Ok(())
    };
    let ((), report) = with_host(context, config, asked).await?;
    serving
        .stop()
        .await
        .map_err(|error| Failure::failed("the model did not end").because(error))?;
    let output = &mut context.output;
    let called =
        reports.iter().flat_map(|report| &report.steps).filter(|step| step.success).count();
    if output.is_json() {
        let answers: Vec<_> = QUESTIONS
            .iter()
            .zip(&reports)
            .map(|(question, report)| {
                json!({"question": question, "result": Outcome::new(report, &*provider, 0)})
            })
            .collect();
        let model = Value::from(model.name());
        output.value(&json!({
            "scripted": false, "model": model, "answers": answers, "shutdown": stopped(&report),
        }))?;
    } else {
        let took = report.took.as_secs_f64() * 1000.0;
        output.data(&format!(
            "{called} calls that the model made were run; all servers and the model gone after \
             {took:.0} ms."
        ))?;
    }
    match called {
        0 => Err(Failure::failed("the model made no call that could be run")),
        _ => Ok(()),
    }
}

async fn provider(serving: &Serving) -> Result<HttpProvider, Failure> {
    let endpoint = Endpoint {
        base_url: serving.base_url(),
        ..Endpoint::new("local", Wire::OpenAiChat, serving.model_name())
    };
    let mut provider = HttpProvider::new(endpoint);
    let looked = provider.look().await;
    looked.map_err(|error| Failure::failed("the model cannot be asked").because(error))?;
    Ok(provider)
}

fn show(output: &mut Output, question: &str, report: &Report) -> std::io::Result<()> {
    let asked = output.paint(Tone::Strong, "asked");
    output.data(&format!("{asked}  {question}"))?;
    for Step { tool, arguments, told, mechanism, .. } in &report.steps {
        let tool = output.paint(Tone::Good, tool);
        output.data(&format!("     → {tool} {}", short(&arguments.to_string())))?;
        output.data(&format!("     ← {} ({})", short(told), mechanism.name()))?;
    }
    let text = if report.text.is_empty() { "(no words)" } else { &report.text };
    output.data(&format!("said   {}\n", short(text)))
}
