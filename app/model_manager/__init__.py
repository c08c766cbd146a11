"""Choosing a target: the default model, folders, GGUF files, and the device."""
