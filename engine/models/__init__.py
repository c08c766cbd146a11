"""How a model is found, loaded and run."""
