//! Shell blocks of the project's pages, for tests that run or parse the commands.

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// A fenced block of shell commands.
#[derive(Clone, Debug)]
pub struct ShellBlock {
    /// The page and the line of the block, for example `docs/cli.md:12`.
    pub location: String,
    /// The commands, one per line unless a line ends with `\`.
    pub text: String,
}

/// Returns the blocks of all pages that have exactly this info string, for example `sh`.
///
/// # Panics
///
/// A page cannot be read.
pub fn shell_blocks(info: &str) -> Vec<ShellBlock> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = Vec::new();
    collect_pages(&root, false, &mut pages);
    collect_pages(&root.join("docs"), true, &mut pages);
    pages.sort();
    let mut blocks = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).expect("the page is readable");
        let name = page.strip_prefix(&root).unwrap_or(&page).display().to_string();
        let mut open: Option<ShellBlock> = None;
        for (event, range) in Parser::new(&text).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(kind))) if *kind == *info => {
                    let line = text[..range.start].matches('\n').count() + 1;
                    let location = format!("{name}:{line}");
                    open = Some(ShellBlock { location, text: String::new() });
                }
                Event::Text(part) => {
                    if let Some(block) = &mut open {
                        block.text.push_str(&part);
                    }
                }
                Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
                _ => {}
            }
        }
    }
    blocks
}

fn collect_pages(dir: &Path, recursive: bool, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("the directory is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() && recursive {
            collect_pages(&path, true, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_of_the_readme_and_of_the_pages_are_found() {
        let blocks = shell_blocks("sh,no_run");
        let readme = blocks.iter().find(|block| block.location.starts_with("README.md:")).unwrap();
        assert!(readme.text.contains("cargo install --locked"), "{readme:?}");
        assert!(shell_blocks("sh").iter().any(|block| block.location.starts_with("docs/cli.md:")));
        assert_eq!(shell_blocks("sh,none").len(), 0);
    }
}
