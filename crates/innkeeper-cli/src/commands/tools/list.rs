//! Text of the catalog: a table of all servers, or the definitions of one server.

use std::io;

use innkeeper_host::{CatalogServer, Host, MissingList, SecurityWarning, ServerListing};
use innkeeper_protocol::method;

use super::definition::{DefinitionWriter, one_line, shell_words};
use crate::hosting::failed_servers;
use crate::output::{Output, Style, Table, escape_inline};

/// Prints one line per tool, prompt, resource and template of each server.
pub(super) fn print_catalog(
    host: &Host,
    output: &mut Output,
    transports: &[(String, Option<&'static str>)],
) -> io::Result<()> {
    let catalog = host.catalog();
    for (name, _) in transports {
        match catalog.server(name) {
            Some(server) => {
                print_server_line(output, name, server)?;
                if let Some(listing) = server.listing() {
                    print_missing_lists(output, listing)?;
                    let mut table = item_table();
                    add_tools_and_prompts(&mut table, name, listing);
                    add_resources(&mut table, listing);
                    if !table.is_empty() {
                        output.print_table(&table)?;
                    }
                }
                print_findings(host, output, |finding| *finding.server == **name)?;
            }
            None => print_unavailable(host, output, name)?,
        }
    }
    Ok(())
}

/// Prints the definitions of all tools and prompts of a server, and its resources.
pub(super) fn print_server_definitions(
    host: &Host,
    output: &mut Output,
    name: &str,
    program: &str,
) -> io::Result<()> {
    let catalog = host.catalog();
    let Some(server) = catalog.server(name) else {
        return print_unavailable(host, output, name);
    };
    print_server_line(output, name, server)?;
    let Some(listing) = server.listing() else { return Ok(()) };
    print_missing_lists(output, listing)?;
    let writer = DefinitionWriter { output, program, server: name };
    let tools = listing.tools.iter().map(|tool| writer.tool(&tool.view));
    let prompts = listing.prompts.iter().map(|prompt| writer.prompt(&prompt.view));
    let texts: Vec<String> = tools.chain(prompts).collect();
    for text in texts {
        output.print_data(&format!("\n{text}"))?;
    }
    let mut table = item_table();
    add_resources(&mut table, listing);
    if !table.is_empty() {
        let line = format!("{program} {} URI", shell_words(&["read", "--server", name]));
        let line = output.paint(Style::Hint, &escape_inline(&line));
        output.print_data("")?;
        output.print_table(&table)?;
        output.print_data(&format!("\n  {line}"))?;
    }
    print_findings(host, output, |finding| *finding.server == *name)
}

pub(super) fn print_tool_definition(
    host: &Host,
    output: &mut Output,
    name: &str,
    tool: &str,
    program: &str,
) -> io::Result<()> {
    let catalog = host.catalog();
    let Some(listing) = catalog.server(name).and_then(CatalogServer::listing) else {
        return print_unavailable(host, output, name);
    };
    let writer = DefinitionWriter { output, program, server: name };
    let found = listing.tools.iter().find(|listed| listed.view.name == tool);
    if let Some(text) = found.map(|found| writer.tool(&found.view)) {
        output.print_data(&text)?;
    }
    print_findings(host, output, |finding| {
        *finding.server == *name && finding.tool.as_deref() == Some(tool)
    })
}

fn print_server_line(output: &mut Output, name: &str, server: &CatalogServer) -> io::Result<()> {
    let name = output.paint(Style::Strong, &escape_inline(name));
    let revision = server.protocol_version().unwrap_or("?");
    output.print_data(&format!("{name}: ready, {revision}"))
}

fn print_unavailable(host: &Host, output: &mut Output, name: &str) -> io::Result<()> {
    let mask = output.secret_mask().clone();
    for server in failed_servers(host).iter().filter(|server| *server.name == *name) {
        let name = output.paint(Style::Strong, &escape_inline(name));
        output.print_message(&format!("{name}: {}", escape_inline(&mask.apply(&server.reason))))?;
        for hint in &server.hints {
            let label = output.paint(Style::Hint, "hint");
            output.print_message(&format!("  {label}: {}", escape_inline(&mask.apply(hint))))?;
        }
    }
    Ok(())
}

/// Prints a warning for each list that the server declares and that could not be read, or that nothing
/// is listed.
fn print_missing_lists(output: &mut Output, listing: &ServerListing) -> io::Result<()> {
    let ServerListing { tools, prompts, resources, resource_templates, missing, .. } = listing;
    if tools.is_empty()
        && prompts.is_empty()
        && resources.is_empty()
        && resource_templates.is_empty()
        && missing.is_empty()
    {
        output.print_message("  no tools, prompts or resources")?;
    }
    for MissingList { list, reason } in &listing.missing {
        output.print_message(&format!(
            "  {}: could not list its {}: {}",
            output.paint(Style::Note, "warning"),
            list_noun(list),
            escape_inline(&output.secret_mask().apply(reason))
        ))?;
    }
    Ok(())
}

/// Returns the items of a list method.
fn list_noun(list: &str) -> &str {
    match list {
        method::PROMPTS_LIST => "prompts",
        method::RESOURCES_LIST => "resources",
        method::RESOURCES_TEMPLATES_LIST => "resource templates",
        other => other,
    }
}

/// Prints the security warnings and guard findings that `is_shown` selects.
fn print_findings(
    host: &Host,
    output: &mut Output,
    is_shown: impl Fn(&SecurityWarning) -> bool,
) -> io::Result<()> {
    let catalog = host.catalog();
    let findings = catalog.warnings().into_iter().chain(catalog.guard_findings());
    for finding in findings.filter(is_shown) {
        let subject = finding.tool.as_deref().or(finding.item.as_deref()).unwrap_or("instructions");
        output.print_message(&format!(
            "  {}: {}: {}",
            output.paint(Style::Note, "warning"),
            escape_inline(subject),
            escape_inline(&finding.reason)
        ))?;
    }
    Ok(())
}

fn item_table() -> Table {
    Table::without_headings()
        .with_column_styles([None, Some(Style::Strong), Some(Style::Dim)])
        .with_shortened_last_column()
}

fn add_tools_and_prompts(table: &mut Table, server: &str, listing: &ServerListing) {
    for tool in &listing.tools {
        let name = format!("{server}.{}", tool.view.name);
        add_item(table, "tool", &name, tool.view.description.as_ref());
    }
    for prompt in &listing.prompts {
        let name = format!("{server}.{}", prompt.view.name);
        add_item(table, "prompt", &name, prompt.view.description.as_ref());
    }
}

fn add_resources(table: &mut Table, listing: &ServerListing) {
    for resource in &listing.resources {
        add_item(table, "resource", &resource.view.uri, resource.view.description.as_ref());
    }
    for template in &listing.resource_templates {
        let view = &template.view;
        add_item(table, "template", &view.uri_template, view.description.as_ref());
    }
}

fn add_item(table: &mut Table, kind: &str, name: &str, description: Option<&String>) {
    let description = description.map(|text| one_line(text)).unwrap_or_default();
    table.add_row([kind, name, &description]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture;

    #[test]
    fn a_server_that_offers_nothing_says_so_unless_a_list_is_missing() {
        let missing = MissingList { list: method::PROMPTS_LIST, reason: "timed out".to_owned() };
        for (missing, line) in [
            (vec![], "  no tools, prompts or resources\n"),
            (vec![missing], "  warning: could not list its prompts: timed out\n"),
        ] {
            let mut listing = ServerListing::default();
            listing.missing = missing;
            let (mut output, out, _) = capture::captured_output(false, false);
            print_missing_lists(&mut output, &listing).unwrap();
            assert_eq!(out.text(), line);
        }
    }
}
