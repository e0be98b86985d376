//! What a client's program does: reads its work, runs it on the runtime asked for, prints one line.

use std::process::ExitCode;

use serde_json::Value;

use crate::bare;
use crate::client::{self, Client};
use crate::work::{Case, Work};

/// The whole program of an ordinary client.
pub fn client<C: Client>(peer: &str) -> ExitCode {
    run(async |work| {
        if work.case == Case::Start {
            client::start::<C>(work).await.report(peer, work)
        } else {
            client::calls::<C>(work).await.report(peer, work)
        }
    })
}

/// The whole program of the bare loop.
pub fn bare() -> ExitCode {
    run(async |work| {
        if work.case == Case::Start {
            bare::start(work).await.report("bare", work)
        } else {
            bare::calls(work).await.report("bare", work)
        }
    })
}

fn run(measure: impl AsyncFnOnce(&Work) -> Value) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let measured = Work::parse(&arguments).and_then(|work| {
        let mut runtime = if work.threads {
            tokio::runtime::Builder::new_multi_thread()
        } else {
            tokio::runtime::Builder::new_current_thread()
        };
        let runtime = runtime.enable_all().build().map_err(|error| error.to_string())?;
        Ok(runtime.block_on(measure(&work)))
    });
    match measured {
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
