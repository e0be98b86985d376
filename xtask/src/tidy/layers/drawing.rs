//! Reads the drawings of module layers in ARCHITECTURE.md.

use std::collections::BTreeMap;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::super::Violation;
use super::MAP_PATH;

/// The first word of the info string of a drawing.
const INFO_WORD: &str = "layers";

/// The layers of the modules of one crate, or of the submodules of one module.
#[derive(Debug)]
pub(super) struct Drawing {
    /// The line of the opening fence in ARCHITECTURE.md.
    pub(super) line: usize,
    /// The crate with the path of the module, as in the info string: `innkeeper-host/server`.
    pub(super) target: String,
    /// Each module with its line in ARCHITECTURE.md; a lower layer has a greater line.
    pub(super) layers: BTreeMap<String, usize>,
}

impl Drawing {
    /// Reads all drawings of a page.
    pub(super) fn parse_page(page: &str) -> (Vec<Self>, Vec<Violation>) {
        let (mut drawings, mut violations) = (Vec::<Self>::new(), Vec::new());
        for (event, range) in Parser::new(page).into_offset_iter() {
            let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) = event else { continue };
            let mut words = info.split_whitespace();
            if words.next() != Some(INFO_WORD) {
                continue;
            }
            let line = page[..range.start].matches('\n').count() + 1;
            let (Some(target), None) = (words.next(), words.next()) else {
                let message = format!("write the crate after `{INFO_WORD}`: `{INFO_WORD} CRATE`");
                violations.push(Violation::new(MAP_PATH, line, message));
                continue;
            };
            if drawings.iter().any(|drawing| drawing.target == target) {
                let message = format!("draws the layers of `{target}` a second time");
                violations.push(Violation::new(MAP_PATH, line, message));
                continue;
            }
            let mut drawing = Self { line, target: target.to_owned(), layers: BTreeMap::new() };
            violations.extend(drawing.read_layers(&page[range]));
            drawings.push(drawing);
        }
        (drawings, violations)
    }

    /// Reads the lines between the fences of `block`.
    fn read_layers(&mut self, block: &str) -> Vec<Violation> {
        let mut violations = Vec::new();
        let lines = block.lines().enumerate().skip(1);
        for (at, layer) in lines.filter(|(_, line)| !line.trim_start().starts_with("```")) {
            let line = self.line + at;
            for module in layer.split_whitespace() {
                if self.layers.insert(module.to_owned(), line).is_some() {
                    let message =
                        format!("the layers of `{}` contain `{module}` twice", self.target);
                    violations.push(Violation::new(MAP_PATH, line, message));
                }
            }
        }
        violations
    }

    /// The name of the crate.
    pub(super) fn crate_name(&self) -> &str {
        self.target.split('/').next().unwrap_or(&self.target)
    }

    /// The path of the module whose submodules are drawn; empty for the modules of the crate.
    pub(super) fn parent(&self) -> Vec<String> {
        self.target.split('/').skip(1).map(str::to_owned).collect()
    }
}
