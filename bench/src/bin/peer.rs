//! One client in a process of its own: `peer bare|rmcp|innkeeper --case … --echo …`.

use std::process::ExitCode;

use innkeeper_bench::bare;
use innkeeper_bench::client::{self, Client};
use innkeeper_bench::sdk::Sdk;
use innkeeper_bench::work::{Case, Work};
use serde_json::Value;

fn main() -> ExitCode {
    #[cfg(feature = "ours")]
    if let Some(code) = innkeeper_bench::ours::supervise() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let run = arguments
        .split_first()
        .ok_or_else(|| "usage: peer bare|rmcp|innkeeper --case CASE --echo PROGRAM".to_owned())
        .and_then(|(peer, rest)| measure(peer, &Work::parse(rest)?));
    match run {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn measure(peer: &str, work: &Work) -> Result<Value, String> {
    let mut runtime = if work.threads {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = runtime.enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        match peer {
            "bare" if work.case == Case::Start => Ok(bare::start(work).await.report(peer, work)),
            "bare" => Ok(bare::calls(work).await.report(peer, work)),
            "rmcp" => Ok(client::<Sdk>(peer, work).await),
            #[cfg(feature = "ours")]
            "innkeeper" => Ok(client::<innkeeper_bench::ours::Ours>(peer, work).await),
            _ => Err(format!("`{peer}` is no peer of this program")),
        }
    })
}

async fn client<C: Client>(peer: &str, work: &Work) -> Value {
    if work.case == Case::Start {
        client::start::<C>(work).await.report(peer, work)
    } else {
        client::calls::<C>(work).await.report(peer, work)
    }
}
