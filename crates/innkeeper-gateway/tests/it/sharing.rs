//! Servers shared by clients, or one process for each.
