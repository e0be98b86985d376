//! Cycles in the dependencies of servers.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

/// Maximum number of reported cycles; more would not help the reader.
const MAX_CYCLES: usize = 16;

/// Returns the cycles in `edges`, each as a path of names.
pub(crate) fn find_cycles<'a>(edges: &IndexMap<&'a str, Vec<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut done: HashSet<&str> = HashSet::new();
    let mut cycles = Vec::new();
    for start in edges.keys() {
        find_cycles_from(edges, start, &mut done, &mut cycles);
    }
    cycles
}

/// Follows the edges depth first, without recursion: a chain may be as long as the file allows.
fn find_cycles_from<'a>(
    edges: &IndexMap<&'a str, Vec<&'a str>>,
    start: &'a str,
    done: &mut HashSet<&'a str>,
    cycles: &mut Vec<Vec<&'a str>>,
) {
    let mut path: Vec<(&str, usize)> = vec![(start, 0)];
    let mut positions: HashMap<&str, usize> = HashMap::from([(start, 0)]);
    while let Some((name, next)) = path.last_mut() {
        let name = *name;
        let edge = *next;
        *next += 1;
        let target = match edges.get(name).and_then(|targets| targets.get(edge)) {
            Some(target) if !done.contains(name) => *target,
            _ => {
                done.insert(name);
                positions.remove(name);
                path.pop();
                continue;
            }
        };
        if let Some(from) = positions.get(target) {
            if cycles.len() < MAX_CYCLES {
                cycles.push(path[*from..].iter().map(|(name, _)| *name).collect());
            }
        } else if edges.contains_key(target) && !done.contains(target) {
            positions.insert(target, path.len());
            path.push((target, 0));
        }
    }
}
