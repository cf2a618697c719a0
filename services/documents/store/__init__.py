"""Where documents are kept: one protocol, a store of SQLite files behind it, and Chroma where processes share one."""
