//! Implementations of the fuzz targets. The fuzzer's `main` functions are in `fuzz/`. A test in
//! this crate replays the stored inputs with the ordinary build of the workspace.

mod client_request;
mod client_text;
mod config;
mod envelope;
mod framing;
mod golden;
mod golden_rules;
mod input_required;
mod sse;
mod stream_parser;

pub use client_request::client_request;
pub use client_text::client_text;
pub use config::config;
pub use envelope::envelope;
pub use framing::framing;
pub use golden::golden;
pub use golden_rules::golden_rules;
pub use input_required::input_required;
pub use sse::sse;
pub use stream_parser::stream_parser;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Name and function of a target.
    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 10] = [
        ("client_request", super::client_request),
        ("client_text", super::client_text),
        ("config", super::config),
        ("envelope", super::envelope),
        ("framing", super::framing),
        ("golden", super::golden),
        ("golden_rules", super::golden_rules),
        ("input_required", super::input_required),
        ("stream_parser", super::stream_parser),
        ("sse", super::sse),
    ];

    /// Targets implemented in other crates, because their functions are private there. Those crates
    /// replay the inputs.
    const EXTERNAL_TARGETS: [&str; 5] =
        ["codecs", "connection_request", "gateway_request", "http_response", "sealed_state"];

    fn fuzz_dir(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
    }

    fn files(dir: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{dir:?}: {error}"));
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    #[test]
    fn every_corpus_input_passes_its_target() {
        for (name, target) in TARGETS {
            let inputs = files(&fuzz_dir("corpus").join(name));
            assert!(!inputs.is_empty(), "`{name}` keeps no input");
            for input in inputs {
                println!("{}", input.display());
                target(&fs::read(input).unwrap());
            }
        }
    }

    #[test]
    fn every_target_of_the_fuzzer_is_replayed_and_has_its_main() {
        let manifest = fs::read_to_string(fuzz_dir("Cargo.toml")).unwrap();
        let mains = files(&fuzz_dir("fuzz_targets"));
        assert_eq!(mains.len(), TARGETS.len() + EXTERNAL_TARGETS.len());
        for name in TARGETS.iter().map(|target| target.0).chain(EXTERNAL_TARGETS) {
            let main = format!("fuzz_targets/{name}.rs");
            assert!(manifest.contains(&format!("path = \"{main}\"")), "{main}");
            let text = fs::read_to_string(fuzz_dir(&main)).unwrap();
            assert!(text.contains(&format!("{name}(input)")), "{main} does not call it");
        }
    }
}
