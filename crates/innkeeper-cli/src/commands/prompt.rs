//! `prompt`: gets one prompt.

use innkeeper_host::{CallOptions, Host};
use serde_json::{Map, Value};

use super::Context;
use super::call::refuse;
use crate::args::PromptArgs;
use crate::configuration::{for_item, load};
use crate::exit::Failure;
use crate::hosting::with_host;
use crate::output::Output;

pub(super) async fn run(context: &mut Context, args: &PromptArgs) -> Result<(), Failure> {
    let config = load(context)?;
    let (config, _) = for_item(&config, &args.target)?;
    let pairs = args.pairs.iter().map(|pair| (pair.key.clone(), Value::from(pair.text.clone())));
    let arguments: Map<String, Value> = pairs.collect();
    let work = async |host: &Host, output: &mut Output| {
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
