"""The parts of the scale drill: the traffic, the world around the program, the watch on its log, and the judge."""
