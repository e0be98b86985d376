"""Other packages' names for a host. Each module imports its package, and nothing else imports it."""
