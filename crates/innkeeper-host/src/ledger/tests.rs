//! The ledger with real processes.
