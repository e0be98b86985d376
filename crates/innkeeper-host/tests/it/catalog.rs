//! The catalog: lists, changes and excluded items.

mod change;
mod list;
mod lossless;
mod missing_lists;
mod notifications;
mod quarantine;
mod security_warning;

use innkeeper_host::{Catalog, HostEvent};

/// Returns the names of a server's tools without the server name.
pub(crate) fn tools(catalog: &Catalog, server: &str) -> Vec<String> {
    let listing = catalog.server(server).unwrap().listing().unwrap();
    listing.tools.iter().map(|tool| tool.view.name.clone()).collect()
}

fn is_catalog_change(event: &HostEvent) -> bool {
    matches!(event, HostEvent::CatalogChanged { .. })
}
