"""The document tools: one core, and a library's own words and rules in a `KBConfig` each."""
