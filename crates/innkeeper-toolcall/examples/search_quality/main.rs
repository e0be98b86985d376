//! Measures the search for tools on two public benchmarks, beside plain BM25.
//!
//! `search_quality BFCL_DATA LIVEMCPBENCH_DATA OUT [--tuning]` writes one JSON object per measured
//! kind of query to the file `rows.jsonl` of the directory `OUT`, and the tools with the queries of
//! each benchmark to further files. `--tuning` measures the half for tuning.

mod benchmark;
mod plain_bm25;

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::Path;

use innkeeper_toolcall::ToolIndex;
use serde_json::{Value, json};

use benchmark::{Benchmark, Half, Query};
use plain_bm25::PlainBm25;

/// Number of the first results that count, and a second number for comparison.
const FIRST: usize = 5;
const FIRST_TEN: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bfcl, live, out, options @ ..] = arguments.as_slice() else {
        return Err("expected BFCL_DATA LIVEMCPBENCH_DATA OUT [--tuning]".into());
    };
    let half = if options.is_empty() { Half::Report } else { Half::Tuning };
    let out = Path::new(out);
    let mut rows = String::new();
    for benchmark in [Benchmark::bfcl(Path::new(bfcl))?, Benchmark::live(Path::new(live))?] {
        for kind in benchmark.kinds() {
            rows.push_str(&format!("{}\n", measure(&benchmark, kind, half)));
        }
        let queries = benchmark.queries.iter().filter(|query| query.half == half);
        let queries: Vec<Value> = queries.map(Query::to_json).collect();
        let text = json!({"tools": benchmark.tools, "queries": queries}).to_string();
        fs::write(out.join(format!("{}.json", benchmark.name)), text)?;
    }
    fs::write(out.join("rows.jsonl"), rows)?;
    Ok(())
}

/// Returns the counts of one kind of query.
fn measure(benchmark: &Benchmark, kind: &str, half: Half) -> Value {
    let index = ToolIndex::new(&benchmark.tools);
    let plain = PlainBm25::new(&benchmark.tools);
    let (mut tasks, mut needed) = (0, 0);
    let mut found = [0; 4];
    let mut complete = [0; 4];
    let is_measured = |query: &&Query| query.kind == kind && query.half == half;
    for query in benchmark.queries.iter().filter(is_measured) {
        let mut results: [HashSet<&str>; 4] = std::array::from_fn(|_| HashSet::new());
        for text in &query.texts {
            let plain = plain.search(text, FIRST_TEN);
            let innkeeper = index.search(text, FIRST_TEN);
            let lists = [
                (&plain, FIRST),
                (&innkeeper, FIRST),
                (&plain, FIRST_TEN),
                (&innkeeper, FIRST_TEN),
            ];
            for (result, (list, count)) in results.iter_mut().zip(lists) {
                result.extend(list.iter().take(count).map(|name| benchmark.own_name(name)));
            }
        }
        tasks += 1;
        needed += query.needed.len();
        for (at, result) in results.iter().enumerate() {
            let count = query.needed.iter().filter(|name| result.contains(name.as_str())).count();
            found[at] += count;
            complete[at] += usize::from(count == query.needed.len());
        }
    }
    json!({
        "benchmark": benchmark.name, "kind": kind, "tools": benchmark.tools.len(),
        "tasks": tasks, "needed": needed, "found": found, "complete": complete,
    })
}
