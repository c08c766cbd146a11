"""The console: what its commands take, how they load a target, and what they print."""
