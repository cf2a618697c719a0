"""Where the streams end: Discord, the archive, the topics, the index, the terminal."""
