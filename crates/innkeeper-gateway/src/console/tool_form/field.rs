//! A field of a form, as HTML.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::html::{FieldValue, Html, Name, html};
use super::super::request::Fields;
use super::{FieldKind, LineKind, boolean, json_string, key, number, with_line_feeds};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FormField {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) is_required: bool,
    pub(super) kind: FieldKind,
    pub(super) default: Option<Value>,
}

impl FormField {
    /// Returns the value as JSON text; `None` for a field without a value.
    pub(super) fn read(&self, index: usize, values: &Fields) -> Result<Option<String>, String> {
        let key = key(index);
        let text = with_line_feeds(values.get(&key).unwrap_or_default());
        let is_empty = text.trim().is_empty();
        match &self.kind {
            // An empty text is a value of a required argument.
            FieldKind::Text if text.is_empty() && !self.is_required => Ok(None),
            FieldKind::Text => Ok(Some(json_string(&text))),
            FieldKind::Lines(_) | FieldKind::Choices(_) if self.is_required && is_empty => {
                Ok(Some("[]".to_owned()))
            }
            _ if is_empty && self.is_required => Err("required".to_owned()),
            _ if is_empty => Ok(None),
            FieldKind::Number => number(&text, false).map(Some),
            FieldKind::Integer => number(&text, true).map(Some),
            FieldKind::Boolean => boolean(&text).map(Some),
            FieldKind::Choice(options) => option(options, &text).map(Some),
            FieldKind::Choices(options) => {
                let chosen = values.all(&key).map(|text| option(options, text));
                Ok(Some(list(&chosen.collect::<Result<Vec<_>, _>>()?)))
            }
            FieldKind::Lines(kind) => {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                let items = lines.enumerate().map(|(at, line)| {
                    let item = match kind {
                        LineKind::Text => Ok(json_string(line)),
                        LineKind::Number => number(line, false),
                        LineKind::Integer => number(line, true),
                        LineKind::Boolean => boolean(line),
                    };
                    item.map_err(|problem| format!("item {}: {problem}", at + 1))
                });
                Ok(Some(list(&items.collect::<Result<Vec<_>, _>>()?)))
            }
            FieldKind::Json => json(&text).map(Some),
        }
    }

    pub(super) fn write(
        &self,
        out: &mut Html,
        index: usize,
        values: &Fields,
        problem: Option<&str>,
    ) {
        let is_group = matches!(self.kind, FieldKind::Choices(_));
        let label = self.title.as_deref().unwrap_or(&self.name);
        html!(out, "<div class=\"field\">");
        if is_group {
            html!(out, "<fieldset aria-describedby=\"f{}-notes\"><legend>{}", index, Name(label));
        } else {
            html!(out, "<label for=\"f{}\">{}", index, Name(label));
        }
        if self.title.is_some() {
            html!(out, " <code>{}</code>", Name(&self.name));
        }
        html!(out, " <span class=\"dim\">{}</span>", self.kind_name());
        if self.is_required {
            html!(out, " <span class=\"required\">required</span>");
        }
        if is_group {
            html!(out, "</legend>");
        } else {
            html!(out, "</label>");
        }
        self.write_control(out, index, values, problem.is_some());
        if is_group {
            html!(out, "</fieldset>");
        }
        html!(out, "<div id=\"f{}-notes\">", index);
        if let Some(problem) = problem {
            html!(out, "<p class=\"problem\">{}</p>", problem);
        }
        if let Some(description) = &self.description {
            html!(out, "<p class=\"hint\">{}</p>", description);
        }
        html!(out, "</div></div>\n");
    }

    fn kind_name(&self) -> &'static str {
        match &self.kind {
            FieldKind::Text => "text",
            FieldKind::Number => "number",
            FieldKind::Integer => "whole number",
            FieldKind::Boolean => "true or false",
            FieldKind::Choice(_) => "one of",
            FieldKind::Choices(_) => "any of",
            FieldKind::Lines(LineKind::Text) => "texts, one on each line",
            FieldKind::Lines(LineKind::Number) => "numbers, one on each line",
            FieldKind::Lines(LineKind::Integer) => "whole numbers, one on each line",
            FieldKind::Lines(LineKind::Boolean) => "`true` or `false` on each line",
            FieldKind::Json => "JSON",
        }
    }

    fn write_control(&self, out: &mut Html, index: usize, values: &Fields, has_problem: bool) {
        let key = key(index);
        let value = values.get(&key).unwrap_or_default();
        let invalid = if has_problem { "true" } else { "false" };
        let required = if self.is_required { "true" } else { "false" };
        match &self.kind {
            FieldKind::Number | FieldKind::Integer => html!(
                out,
                "<input id=\"f{}\" name=\"f{}\" value=\"{}\" inputmode=\"decimal\" autocomplete=\"off\" \
                 aria-describedby=\"f{}-notes\" aria-invalid=\"{}\" aria-required=\"{}\">",
                index,
                index,
                FieldValue(value),
                index,
                invalid,
                required
            ),
            FieldKind::Boolean => {
                let options = [("true", "true"), ("false", "false")];
                write_select(out, index, value, options, invalid, required);
            }
            FieldKind::Choice(options) => {
                let positions: Vec<String> = (0..options.len()).map(|at| at.to_string()).collect();
                let options =
                    positions.iter().zip(options).map(|(at, (label, _))| (&**at, &**label));
                write_select(out, index, value, options, invalid, required);
            }
            FieldKind::Choices(options) => {
                for (at, (label, _)) in options.iter().enumerate() {
                    let is_chosen = values.all(&key).any(|chosen| chosen == at.to_string());
                    let mut checked = Html::new();
                    if is_chosen {
                        html!(checked, " checked");
                    }
                    html!(
                        out,
                        "<label class=\"check\"><input type=\"checkbox\" name=\"f{}\" value=\"{}\"{}> \
                         {}</label>",
                        index,
                        at,
                        checked,
                        Name(label)
                    );
                }
            }
            FieldKind::Text | FieldKind::Lines(_) | FieldKind::Json => {
                let rows = match self.kind {
                    FieldKind::Text => value.lines().count().clamp(1, 12),
                    _ => value.lines().count().clamp(3, 12),
                };
                // A parser of HTML omits the first line break of the content.
                html!(
                    out,
                    "<textarea id=\"f{}\" name=\"f{}\" rows=\"{}\" spellcheck=\"false\" \
                     autocomplete=\"off\" aria-describedby=\"f{}-notes\" aria-invalid=\"{}\" \
                     aria-required=\"{}\">\n{}</textarea>",
                    index,
                    index,
                    rows,
                    index,
                    invalid,
                    required,
                    FieldValue(value)
                );
            }
        }
    }
}

fn write_select<'o>(
    out: &mut Html,
    index: usize,
    chosen: &str,
    options: impl IntoIterator<Item = (&'o str, &'o str)>,
    invalid: &str,
    required: &str,
) {
    html!(
        out,
        "<select id=\"f{}\" name=\"f{}\" aria-describedby=\"f{}-notes\" aria-invalid=\"{}\" \
         aria-required=\"{}\"><option value=\"\">not set</option>",
        index,
        index,
        index,
        invalid,
        required
    );
    for (value, label) in options {
        if value == chosen {
            html!(out, "<option value=\"{}\" selected>{}</option>", value, Name(label));
        } else {
            html!(out, "<option value=\"{}\">{}</option>", value, Name(label));
        }
    }
    html!(out, "</select>");
}

pub(super) fn option(options: &[(String, Value)], text: &str) -> Result<String, String> {
    let chosen = text.trim().parse::<usize>().ok().and_then(|at| options.get(at));
    chosen.map(|(_, value)| value.to_string()).ok_or_else(|| "choose one of the values".to_owned())
}

fn list(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// Checks JSON text. The text stays as it is, apart from space around it.
pub(crate) fn json(text: &str) -> Result<String, String> {
    let text = text.trim();
    let checked = serde_json::from_str::<&RawValue>(text);
    checked.map(|_| text.to_owned()).map_err(|error| format!("no valid JSON: {error}"))
}
