"""The parts, put together from the settings: each module builds one branch of the graph, or what runs beside it."""
