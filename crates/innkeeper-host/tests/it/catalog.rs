//! The catalog: what servers list, how it is kept whole and true, and what is left out of it.

mod change;
mod doubt;
mod left_out;
mod list;
mod lossless;
mod told;

use innkeeper_host::{Catalog, Event};

/// The names of a server's tools, as they are called.
pub(crate) fn tools(catalog: &Catalog, server: &str) -> Vec<String> {
    let offer = catalog.server(server).unwrap().offer().unwrap();
    offer.tools.iter().map(|tool| tool.view.name.clone()).collect()
}

fn is_change(event: &Event) -> bool {
    matches!(event, Event::CatalogChanged { .. })
}
