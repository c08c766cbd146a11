"""The window: a chat that shows speculation at work; EngineThread is its way to the engine."""
