//! `call`: starts one server and what it depends on, makes one call, prints the result object.

use innkeeper_host::error::RoutingError;
use innkeeper_host::{CallError, Host};
use serde_json::Value;

use super::Context;
use crate::args::CallArgs;
use crate::arguments;
use crate::configuration::{for_item, load};
use crate::exit::{Code, Failure};
use crate::hosting::with_host;
use crate::output::{Output, Tone};

pub(super) async fn run(context: &mut Context, args: &CallArgs) -> Result<(), Failure> {
    let config = load(context)?;
    let (config, _) = for_item(&config, &args.target)?;
    let given = given(args)?;
    let work = async |host: &Host, output: &mut Output| {
        let schema = input_schema(host, &args.target);
        let typed = arguments::typed(&schema, &args.pairs, &given).map_err(|problems| {
            let mut failure = Failure::usage(format!("arguments of `{}` do not fit", args.target));
            for problem in problems {
                failure = failure.detail(problem.to_string());
            }
            failure
        })?;
        let all = serde_json::to_value(arguments::merged(given, typed))
            .map_err(|error| Failure::failed("the arguments cannot be written").because(error))?;
        let result = host.call_tool(&args.target, all).await.map_err(|error| refuse(&error))?;
        let is_error = result.is_error();
        output.value(&result)?;
        if let Some(problem) = result.misfit() {
            let text = format!("the result is not as `{}` promised: {problem}", args.target);
            output.label(Tone::Note, "warning", &text)?;
        }
        if is_error { Err(Failure::silent(Code::Failed)) } else { Ok(()) }
    };
    with_host(context, config, work).await.map(drop)
}

fn given(args: &CallArgs) -> Result<arguments::Arguments, Failure> {
    match &args.given {
        None => Ok(arguments::Arguments::default()),
        Some(typed) => {
            let given = arguments::Given::new(typed);
            arguments::read_given(&given, std::io::stdin().lock())
                .map_err(|error| Failure::usage("the arguments cannot be read").because(error))
        }
    }
}

/// What the tool declares; a tool that is not there takes anything, and the call says so.
fn input_schema(host: &Host, target: &str) -> Value {
    let catalog = host.catalog();
    let owner = owners(host, target);
    let tool = owner.first().filter(|_| owner.len() == 1).and_then(|(server, name)| {
        let mut tools = catalog.server(server)?.offer()?.tools.iter();
        tools.find(|tool| tool.view.name == *name)
    });
    tool.and_then(|tool| serde_json::from_str(tool.view.input_schema.get()).ok())
        .unwrap_or(Value::Bool(true))
}

/// Which servers offer a tool of this name, each with the tool's name there: the one that the name
/// begins with, else all that have one of the bare name.
pub(super) fn owners(host: &Host, target: &str) -> Vec<(String, String)> {
    let catalog = host.catalog();
    let is_server = |name: &str| catalog.server(name).is_some();
    let has = |server: &str, tool: &str| {
        let offer = catalog.server(server).and_then(|server| server.offer());
        offer.is_some_and(|offer| offer.tools.iter().any(|offered| offered.view.name == tool))
    };
    if let Some((server, tool)) = innkeeper_host::split_name(target, is_server)
        && has(server, tool)
    {
        return vec![(server.to_owned(), tool.to_owned())];
    }
    let bare = catalog.servers().map(|(server, _)| server).filter(|server| has(server, target));
    bare.map(|server| (server.to_owned(), target.to_owned())).collect()
}

/// A call that has no result, with the exit code of its class.
pub(super) fn refuse(error: &CallError) -> Failure {
    match error {
        CallError::Routing(RoutingError::ToolChanged { .. } | RoutingError::ItemRefused { .. }) => {
            Failure::usage(error.to_string())
        }
        CallError::Routing(_) => {
            Failure::usage(error.to_string()).hint("`innkeeper tools` lists what there is")
        }
        CallError::Validation { item, problems } => {
            let mut failure = Failure::usage(format!("arguments of `{item}` do not fit"));
            for problem in problems {
                failure = failure.detail(problem.to_string());
            }
            failure.hint("nothing was sent")
        }
        CallError::Timeout { .. } => {
            Failure::failed(error.to_string()).hint("`--timeout SECONDS` allows more time")
        }
        CallError::Unavailable { may_have_run: true, .. } => {
            Failure::failed(error.to_string()).hint("the request may have run")
        }
        CallError::Unavailable { may_have_run: false, .. } | CallError::Server { .. } => {
            Failure::failed(error.to_string())
        }
        CallError::Protocol { source, .. } => {
            Failure::failed(error.to_string()).detail(source.to_string())
        }
        CallError::Withheld { .. } => {
            Failure::failed(error.to_string()).hint("do not repeat it: it would run again")
        }
    }
}
