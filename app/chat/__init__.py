"""The conversation: its controller, transcript, composer and legend."""
