//! Lists the tools of all servers of a configuration and calls one tool.
//!
//! `cargo run --example call_a_tool -- mcp.json files.read_text_file '{"path": "a.txt"}'`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use innkeeper::text::display_safe;
use innkeeper::{Config, Host};
use innkeeper_protocol::view::ContentBlock;
use serde_json::value::RawValue;

const USAGE: &str = "usage: call_a_tool CONFIG [SERVER.TOOL [ARGUMENTS]]";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (config, call) = words.split_first().ok_or(USAGE)?;
    let host = Host::start(Config::from_file(config)?).await?;
    for tool in host.catalog().tools() {
        let description = tool.definition.view.description.as_deref().unwrap_or_default();
        let line = description.lines().next().unwrap_or_default();
        println!("{}: {}", tool.public_name, display_safe(line));
    }
    if let Some((tool, arguments)) = call.split_first() {
        call_tool(&host, tool, arguments.first().map_or("{}", String::as_str)).await?;
    }
    for server in host.shutdown().await.servers {
        println!("`{}` stopped after {:?}", server.server, server.took);
    }
    Ok(())
}

/// Calls a tool and prints the result. The server receives the arguments as they are written here.
async fn call_tool(host: &Host, tool: &str, arguments: &str) -> Result<(), Box<dyn Error>> {
    let arguments = RawValue::from_string(arguments.to_owned())?;
    let result = host.call_tool(tool, arguments).await?;
    // A failure that the tool reports is a result too.
    println!("`{tool}` {}:", if result.is_error() { "failed" } else { "succeeded" });
    for block in result.view()?.content {
        match block {
            ContentBlock::Text { text, .. } => println!("{}", display_safe(&text)),
            ContentBlock::Image { raw }
            | ContentBlock::Audio { raw }
            | ContentBlock::Resource { raw }
            | ContentBlock::ResourceLink { raw }
            | ContentBlock::Unknown { raw, .. } => println!("{} bytes of JSON", raw.get().len()),
        }
    }
    Ok(())
}
