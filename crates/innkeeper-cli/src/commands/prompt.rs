//! `prompt`: gets one prompt.

use innkeeper_host::{CallOptions, Host};
use serde_json::{Map, Value};

use super::Context;
use super::call::refuse;
use crate::args::PromptArgs;
use crate::arguments::Problem;
use crate::configuration::{for_item, load};
use crate::exit::Failure;
use crate::hosting::with_host;
use crate::output::Output;

pub(super) async fn run(context: &mut Context, args: &PromptArgs) -> Result<(), Failure> {
    let config = load(context)?;
    let (config, _) = for_item(&config, &args.target)?;
    let mut arguments = Map::new();
    for pair in &args.pairs {
        if arguments.insert(pair.key.clone(), Value::from(pair.text.clone())).is_some() {
            return Err(vec![Problem::Repeated { key: pair.key.clone() }].into());
        }
    }
    let work = async |host: &Host, output: &mut Output| {
        known(host, &args.target, &arguments)?;
        let got = host.get_prompt(&args.target, &arguments, CallOptions::default()).await;
        let got = got.map_err(|error| refuse(&error))?;
        if output.is_json() {
            return Ok(output.value(&got)?);
        }
        let value: Value = serde_json::from_str(got.get()).unwrap_or_default();
        for message in value["messages"].as_array().into_iter().flatten() {
            let role = message["role"].as_str().unwrap_or("?");
            let text = match message["content"]["text"].as_str() {
                Some(text) => text.to_owned(),
                None => message["content"].to_string(),
            };
            output.foreign(&format!("{role}: {text}"))?;
        }
        Ok(())
    };
    with_host(context, config, work).await.map(drop)
}

/// Refuses arguments that the prompt does not have; one that is not there is for the host to tell.
fn known(host: &Host, target: &str, arguments: &Map<String, Value>) -> Result<(), Failure> {
    let catalog = host.catalog();
    let is_server = |name: &str| catalog.server(name).is_some();
    let prompt = innkeeper_host::split_name(target, is_server).and_then(|(server, name)| {
        let mut prompts = catalog.server(server)?.offer()?.prompts.iter();
        prompts.find(|prompt| prompt.view.name == name)
    });
    let Some(prompt) = prompt else { return Ok(()) };
    let known: Vec<&str> = prompt.view.arguments.iter().map(|known| &*known.name).collect();
    let unknown = arguments.keys().filter(|key| !known.contains(&key.as_str()));
    let unknown: Vec<_> = unknown.map(|key| format!("`{key}`")).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let known: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
    let takes = if known.is_empty() { "no arguments".to_owned() } else { known.join(", ") };
    Err(Failure::usage(format!("prompt `{target}` does not know {}", unknown.join(", ")))
        .hint(format!("it takes {takes}")))
}
