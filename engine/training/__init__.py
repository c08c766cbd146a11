"""Trains drafters for a target, from text that the target writes itself."""
