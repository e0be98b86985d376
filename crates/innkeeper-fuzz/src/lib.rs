//! What each fuzz target does with its input. The fuzzer's mains are in `fuzz/`; the kept inputs are
//! replayed by a test here, with what the workspace has built anyway.

mod config;
mod envelope;
mod framing;
mod input_required;
mod interceptor;
mod sse;

pub use config::config;
pub use envelope::envelope;
pub use framing::framing;
pub use input_required::input_required;
pub use interceptor::interceptor;
pub use sse::sse;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A target: its name and what it does.
    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 6] = [
        ("config", super::config),
        ("envelope", super::envelope),
        ("framing", super::framing),
        ("input_required", super::input_required),
        ("interceptor", super::interceptor),
        ("sse", super::sse),
    ];

    /// Those whose function is where no other crate reaches it, and which replay by themselves.
    const ELSEWHERE: [&str; 2] = ["codecs", "http_answer"];

    fn folder(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    #[test]
    fn every_kept_input_passes_its_target() {
        for (name, target) in TARGETS {
            let inputs = files(&folder("corpus").join(name));
            assert!(!inputs.is_empty(), "`{name}` keeps no input");
            for input in inputs {
                println!("{}", input.display());
                target(&fs::read(input).unwrap());
            }
        }
    }

    #[test]
    fn every_target_of_the_fuzzer_is_replayed_and_has_its_main() {
        let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
        let mains = files(&folder("fuzz_targets"));
        assert_eq!(mains.len(), TARGETS.len() + ELSEWHERE.len());
        for name in TARGETS.iter().map(|target| target.0).chain(ELSEWHERE) {
            let main = format!("fuzz_targets/{name}.rs");
            assert!(manifest.contains(&format!("path = \"{main}\"")), "{main}");
            let text = fs::read_to_string(folder(&main)).unwrap();
            assert!(text.contains(&format!("{name}(input)")), "{main} does not call it");
        }
    }
}
