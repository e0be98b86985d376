//! The rule about links between pages: each file exists, each anchor is a heading of its page.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::Violation;
use crate::repository::Repository;

/// Checks every relative link of every Markdown page.
pub(super) fn check_links(repository: &Repository) -> Vec<Violation> {
    let pages: BTreeMap<&str, Page> = repository
        .texts()
        .filter(|(path, _)| path.ends_with(".md") && is_page(path))
        .map(|(path, text)| (path, Page::parse(text)))
        .collect();
    let mut violations = Vec::new();
    for (path, page) in &pages {
        for (line, target) in &page.links {
            let problem = broken_link(repository, &pages, path, target);
            violations.extend(problem.map(|text| Violation::new(path, *line, text)));
        }
    }
    violations
}

/// Whether a file is a page of the project: other Markdown is data.
fn is_page(path: &str) -> bool {
    path.starts_with("docs/") || !path.contains('/')
}

/// The links and the anchors of one page.
struct Page {
    /// The line and the target of each link and image.
    links: Vec<(usize, String)>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn parse(text: &str) -> Self {
        let mut page = Self { links: Vec::new(), anchors: BTreeSet::new() };
        let mut heading: Option<String> = None;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = anchor(&heading.take().unwrap_or_default());
                    let count = counts.entry(slug.clone()).or_default();
                    page.anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
                    *count += 1;
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = text[..range.start].matches('\n').count() + 1;
                    page.links.push((line, dest_url.into_string()));
                }
                _ => {}
            }
        }
        page
    }
}

/// The anchor that GitHub makes from a heading.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase)
        .map(|character| if character == ' ' { '-' } else { character })
        .collect()
}

/// What is wrong with a link, if anything.
fn broken_link(
    repository: &Repository,
    pages: &BTreeMap<&str, Page>,
    from: &str,
    target: &str,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) =
        target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) };
    let Some(path) = path.filter(|path| exists(repository, path)) else {
        return Some(format!("links to `{target}`, which does not exist"));
    };
    let anchor = anchor?;
    let is_known = pages.get(path.as_str()).is_some_and(|page| page.anchors.contains(anchor));
    (!is_known).then(|| format!("links to `{target}`, and `{path}` has no such heading"))
}

/// The path of a link's target from the root; `None` if it leaves the repository.
fn resolve(from: &str, file: &str) -> Option<String> {
    let mut segments: Vec<&str> = from.split('/').collect();
    segments.pop();
    for segment in file.trim_end_matches('/').split('/') {
        match segment {
            "." => {}
            ".." => drop(segments.pop()?),
            _ => segments.push(segment),
        }
    }
    Some(segments.join("/"))
}

fn exists(repository: &Repository, path: &str) -> bool {
    let dir = format!("{path}/");
    repository.text(path).is_some() || repository.texts().any(|(file, _)| file.starts_with(&dir))
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn missing_files_and_anchors_are_caught() {
        let pages = [
            (
                "docs/a.md",
                "# A\n[b](b.md), [c](sub/c.md#part-one), [up](../README.md)\n[x](x.md)\n",
            ),
            ("docs/b.md", "# B\n[here](#b), [there](a.md#part), [out](../../etc)\n"),
            ("docs/sub/c.md", "# C\n## Part `one`\n## Part one\n[two](#part-one-1), [docs](..)\n"),
            ("README.md", "[web](https://example.org/x.md) `[code](x.md)`\n```\n[y](y.md)\n```\n"),
        ];
        let found = violations(check_links, &pages);
        let expected = [
            "docs/a.md:3: links to `x.md`, which does not exist",
            "docs/b.md:2: links to `a.md#part`, and `docs/a.md` has no such heading",
            "docs/b.md:2: links to `../../etc`, which does not exist",
        ];
        assert_eq!(found, expected);
    }
}
