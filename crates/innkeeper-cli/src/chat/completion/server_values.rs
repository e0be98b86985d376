//! Values that servers propose for arguments of prompts and variables of resource templates.

use std::time::Duration;

use innkeeper_host::{CallOptions, CompletionReference, Host};
use innkeeper_protocol::skim;
use serde_json::{Map, Value};

use super::super::listings::prompt_list;
use super::template::typed_variable;
use super::{CompletionValue, Completions, MAX_VALUES};

/// Timeout of a request for values: a person continues to type meanwhile.
const VALUES_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of templates whose servers are asked at once.
const MAX_TEMPLATES: usize = 4;

/// Returns the prompts, their arguments, or the values of an argument, for the argument of `/prompt`,
/// such as `notes.find title=ci`. The earlier arguments are the context of the values.
pub(super) async fn of_prompt(host: &Host, argument: &str) -> Completions {
    let start = last_word_start(argument);
    let (before, word) = argument.split_at(start);
    let words = shlex::split(before).unwrap_or_default();
    let Some((name, pairs)) = words.split_first() else {
        return Completions::of_names(word, prompt_list(host).into_iter().map(|it| it.public_name));
    };
    let Some((key, typed)) = word.split_once('=') else {
        let prompt = prompt_list(host).into_iter().find(|prompt| prompt.public_name == *name);
        let arguments = prompt.map(|prompt| prompt.arguments).unwrap_or_default();
        let keys = arguments.into_iter().map(|(key, _)| format!("{key}="));
        let open = keys.filter(|key| !pairs.iter().any(|pair| pair.starts_with(key)));
        return Completions::of_names(word, open);
    };
    let typed: String = typed.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
    let context = pairs.iter().filter_map(|pair| pair.split_once('='));
    let context = context.map(|(key, value)| (key.to_owned(), Value::from(value))).collect();
    let values = values_of(host, CompletionReference::Prompt(name), key, &typed, &context).await;
    let values = values.into_iter().map(|value| {
        let quoted = shlex::try_quote(&value).unwrap_or_default().into_owned();
        CompletionValue {
            text: format!("{key}={quoted}"),
            label: format!("{key}={value}"),
            ..CompletionValue::default()
        }
    });
    Completions { replaced: word.to_owned(), values: values.collect() }
}

/// Returns the URIs with the values of the template variable at the end of a URI.
pub(super) async fn of_templates(host: &Host, uri: &str) -> Vec<CompletionValue> {
    let mut values = Vec::new();
    for (server, template) in templates_of(host, uri) {
        let Some(variable) = typed_variable(&template, uri) else { continue };
        let reference = CompletionReference::Template { uri: &template, server: &server };
        let proposed =
            values_of(host, reference, variable.name, &variable.value, &variable.context).await;
        values.extend(proposed.into_iter().map(|value| {
            let purpose = format!("{} of {template}", variable.name);
            CompletionValue::new(variable.uri_with(&value), purpose)
        }));
    }
    values
}

/// Returns the templates that a URI belongs to, with their servers.
fn templates_of(host: &Host, uri: &str) -> Vec<(String, String)> {
    let catalog = host.catalog();
    let mut templates = Vec::new();
    for (server, entry) in catalog.servers() {
        let listed = entry.listing().map(|listing| &*listing.resource_templates);
        for template in listed.unwrap_or_default() {
            let template = &template.view.uri_template;
            if templates.len() < MAX_TEMPLATES && typed_variable(template, uri).is_some() {
                templates.push((server.to_owned(), template.clone()));
            }
        }
    }
    templates
}

/// Requests the values of an argument. Returns no values if the server has none.
async fn values_of(
    host: &Host,
    reference: CompletionReference<'_>,
    argument: &str,
    typed: &str,
    context: &Map<String, Value>,
) -> Vec<String> {
    let options =
        CallOptions { timeout: Some(VALUES_TIMEOUT), retries: Some(0), ..CallOptions::default() };
    let Ok(result) = host.complete(reference, argument, typed, context, options).await else {
        return Vec::new();
    };
    let values = skim::member(result.get(), "completion")
        .and_then(|completion| skim::member(completion, "values"))
        .unwrap_or("[]");
    let values = skim::elements(values).filter_map(skim::decode_string);
    values.take(MAX_VALUES).map(Into::into).collect()
}

/// Returns the position of the last word of a text; spaces inside quotes do not end a word.
fn last_word_start(text: &str) -> usize {
    let mut start = 0;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match (character, quote) {
            _ if is_escaped => is_escaped = false,
            ('\\', None | Some('"')) => is_escaped = true,
            ('"' | '\'', None) => quote = Some(character),
            (end, Some(open)) if end == open => quote = None,
            (space, None) if space.is_whitespace() => start = at + space.len_utf8(),
            _ => {}
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_quotes_is_one_word() {
        let word = |text: &'static str| &text[last_word_start(text)..];
        assert_eq!(word("a.b title=two"), "title=two");
        assert_eq!(word("a.b title='two w"), "title='two w");
        assert_eq!(word(r#"a.b title="it's "x"#), r#"title="it's "x"#);
        assert_eq!(word(r"a.b title=two\ w"), r"title=two\ w");
        assert_eq!(word("a.b\u{3000}"), "");
    }
}
