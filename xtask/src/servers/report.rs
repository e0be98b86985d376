//! The table of servers, times and outcomes.

use super::host::Listing;
use super::list::PublishedServer;

/// The names of the hosts, in the order of the listings.
const HOSTS: [&str; 3] = ["innkeeper", "mcporter", "Inspector"];

/// The outcome of one server.
#[derive(Debug)]
pub(super) struct ServerRow {
    package: String,
    listings: Vec<Listing>,
    call: Option<String>,
    pub(super) innkeeper_leftovers: usize,
}

impl ServerRow {
    pub(super) fn new(
        server: &PublishedServer,
        listings: Vec<Listing>,
        call: Option<String>,
    ) -> Self {
        let innkeeper_leftovers = listings.first().map_or(0, |listing| listing.leftovers);
        Self { package: server.package.clone(), listings, call, innkeeper_leftovers }
    }

    /// Returns one line for the terminal.
    pub(super) fn summary(&self) -> String {
        let cells: Vec<String> = self.listings.iter().map(cell).collect();
        let cause = self.listings.first().and_then(|listing| listing.cause.as_deref());
        format!("{}: {} {}", self.package, cells.join(", "), cause.unwrap_or_default())
    }
}

/// Returns the number of tools and the median time of a listing.
fn cell(listing: &Listing) -> String {
    let seconds = listing.median_seconds();
    match listing.tools {
        Some(tools) if listing.has_no_end => format!("{tools} / no end"),
        Some(tools) => format!("{tools} / {seconds:.1} s"),
        None => format!("failed / {seconds:.1} s"),
    }
}

/// Returns the table of all servers, and the totals.
pub(super) fn markdown(rows: &[ServerRow]) -> String {
    let mut text = String::from(
        "| package | revision | innkeeper | mcporter | Inspector | call, or cause of the failure |\n\
         | --- | --- | ---: | ---: | ---: | --- |\n",
    );
    for row in rows {
        let own = &row.listings[0];
        let outcome = own.cause.as_deref().or(row.call.as_deref()).unwrap_or("not called");
        let cells: Vec<String> = row.listings.iter().map(cell).collect();
        let revision = own.revision.as_deref().unwrap_or("");
        text.push_str(&format!(
            "| `{}` | {revision} | {} | {outcome} |\n",
            row.package,
            cells.join(" | ")
        ));
    }
    text.push('\n');
    text.push_str(&totals(rows));
    text
}

/// Returns the totals of each host. The median time is that of the servers that all hosts list.
fn totals(rows: &[ServerRow]) -> String {
    let by_all: Vec<&ServerRow> =
        rows.iter().filter(|row| row.listings.iter().all(|it| it.tools.is_some())).collect();
    let mut text = String::from(
        "| host | servers listed | median listing | servers with processes left behind |\n\
         | --- | ---: | ---: | ---: |\n",
    );
    for (index, host) in HOSTS.iter().enumerate() {
        let listings = || rows.iter().filter_map(|row| row.listings.get(index));
        let listed = listings().filter(|listing| listing.tools.is_some()).count();
        let left = listings().filter(|listing| listing.leftovers > 0).count();
        let mut times: Vec<f64> =
            by_all.iter().map(|row| row.listings[index].median_seconds()).collect();
        times.sort_unstable_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
        let total = rows.len();
        text.push_str(&format!("| {host} | {listed} of {total} | {median:.2} s | {left} |\n"));
    }
    text
}
