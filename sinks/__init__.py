"""The ends of the streams: Discord, the archive, the topics, the index, records and the terminal."""
