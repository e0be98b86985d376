//! Streamable HTTP: sessions, event streams and resumption.
