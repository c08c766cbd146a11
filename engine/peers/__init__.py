"""Other engines, measured beside ours: the same prompts, file and threads, one after the other."""
