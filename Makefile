# Everything is done by packaging/set_up.py, which also runs without make.
PYTHON ?= python3
COMMANDS := run chat test format gpu-check package set-up

.PHONY: $(COMMANDS)
.DEFAULT_GOAL := run

$(COMMANDS):
	@$(PYTHON) packaging/set_up.py $@ $(ARGS)
