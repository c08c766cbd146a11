"""What is typed behind a command, refused where it makes no sense before a model is loaded."""

from __future__ import annotations

import os

import pytest

from engine.__main__ import main
from engine.console.bench import listed

PROCESSORS = os.cpu_count() or 1


def complaint(capsys, *arguments):
    """What is said of arguments that end the program at once."""
    try:
        status = main([*arguments, "--target", "/no/such/model"])
    except SystemExit as end:
        status = end.code
    assert status in (1, 2)
    *_, last = capsys.readouterr().err.strip().split("\n")
    assert "/no/such/model" not in last
    return last


@pytest.mark.parametrize("threads", [str(PROCESSORS + 1), "100000", "9" * 30])
def test_more_threads_than_processors_are_refused(capsys, threads):
    last = complaint(capsys, "chat", "--threads", threads, "hi")

    assert f"{threads} is more than this machine's processors ({PROCESSORS})" in last


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("chat", "--threads", "0", "hi"), "0 is not at least 1"),
        (("chat", "--threads", "many", "hi"), "'many' is no whole number"),
        (("chat", "--tree-nodes", "-1", "hi"), "-1 is below 0"),
        (("bench", "--repeats", "0"), "0 is not at least 1"),
    ],
)
def test_a_number_that_makes_no_sense_is_named(capsys, arguments, sentence):
    assert sentence in complaint(capsys, *arguments)


@pytest.mark.parametrize("command", [("chat", "hi", "--drafter"), ("bench", "--drafters")])
@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("nosuch", 'There is no drafter "nosuch"'),
        ("lookahead@1x2x1", "n-grams of 3 or more"),
        ("lookahead@9x9x9", "asks for 144"),
        ("lookahead@many", 'not "many"'),
        ("layer-skip@half", 'not "half"'),
        ("ngram:5", 'The drafter "ngram" takes no choice'),
        ("auto@5", '"auto" takes a path behind a colon, as in "auto:PATH"; not "auto@5"'),
        ("suffix+draft-model@5", '"suffix+draft-model" takes a path'),
        ("auto:/no/where", "There is no file or folder at /no/where"),
        ("draft-model:/no/where", "There is no file or folder at /no/where"),
        ("suffix+shared-draft-model:/no/where", "There is no file or folder at /no/where"),
        ("medusa:/no/where", "There is no folder at /no/where"),
        ("eagle:/no/where", "There is no folder at /no/where"),
        ("eagle3:/no/where", "There is no folder at /no/where"),
    ],
)
def test_a_drafter_is_judged_as_far_as_can_be_before_a_model_is_loaded(
    capsys, command, spec, sentence
):
    assert sentence in complaint(capsys, *command, spec)


@pytest.mark.parametrize("spec", ["auto", "eagle", "lookahead@7x5x7", "layer-skip@2"])
def test_a_drafter_that_may_fit_gets_as_far_as_the_model(capsys, spec):
    main(["chat", "hi", "--drafter", spec, "--target", "/no/such/model"])

    assert "There is no file or folder at /no/such/model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "specs"),
    [
        ("ngram,off", ["ngram", "off"]),
        (" ngram , suffix,", ["ngram", "suffix"]),
        ("", []),
        ("draft-model:/a, b/c,d.gguf,ngram", ["draft-model:/a, b/c,d.gguf", "ngram"]),
        ("lookahead@7,5,7,eagle:/x", ["lookahead@7,5,7", "eagle:/x"]),
        (
            "suffix+draft-model:a,suffix+draft-model:b",
            ["suffix+draft-model:a", "suffix+draft-model:b"],
        ),
        ("ngram,nosuch", ["ngram", "nosuch"]),
    ],
)
def test_a_comma_parts_drafters_and_neither_paths_nor_numbers(typed, specs):
    assert listed(typed) == specs
