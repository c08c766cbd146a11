"""What `python -m engine train` refuses, in a sentence and before it has written anything."""

from __future__ import annotations

import shutil

import pytest

from engine.__main__ import main


@pytest.fixture(scope="module")
def trained(llama_folder, tmp_path_factory):
    """A small drafter's folder with its checkpoint and its work."""
    folder = tmp_path_factory.mktemp("trained") / "medusa"
    assert train(llama_folder, folder, "medusa") == 0
    return folder


def train(target, out, kind, *more):
    options = ["--target", target, "--kind", kind, "--out", out, "--device", "cpu"]
    return main(["train", *map(str, [*options, "--text", 300, "--tokens", 500, *more])])


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def complaint(capsys):
    said = capsys.readouterr().err.strip().splitlines()
    assert not [line for line in said if line.startswith("Writing")]
    assert said[-1].startswith("draftlight: ")
    return said[-1]


# Folders.


def test_the_target_itself_is_never_written_over(llama_folder, tmp_path, capsys):
    target = tmp_path / "model"
    shutil.copytree(llama_folder, target)
    before = contents(target)

    assert train(target, target, "medusa") == 1

    assert "which is of no drafter that was trained here" in complaint(capsys)
    assert contents(target) == before
    assert set(target.rglob("*")) == set(before)


def test_a_drafter_whose_checkpoint_was_deleted_is_trained_anew(trained, llama_folder, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(trained, out)
    (out / "learning.safetensors").unlink()

    assert train(llama_folder, out, "medusa") == 0


@pytest.mark.parametrize("option", ["--out", "--work"])
@pytest.mark.parametrize("under", ["", "deeper"])
def test_a_file_where_a_folder_should_be_is_seen_at_once(
    option, under, llama_folder, tmp_path, capsys
):
    file = tmp_path / "notes.txt"
    file.write_text("mine", encoding="utf-8")

    assert train(llama_folder, tmp_path / "out", "medusa", option, file / under) == 1

    said = complaint(capsys)
    assert "Choose a" in said
    assert str(file) in said
    assert file.read_text(encoding="utf-8") == "mine"


def test_a_name_that_no_folder_can_have_is_seen_at_once(llama_folder, tmp_path, capsys):
    assert train(llama_folder, tmp_path / ("long" * 200), "medusa") == 1

    assert "can't be written to" in complaint(capsys)


# What belongs to something else.


def test_another_targets_checkpoint_is_seen_before_texts_are_written(
    trained, gemma_folder, tmp_path, capsys
):
    assert train(gemma_folder, trained, "medusa", "--work", tmp_path / "new") == 1

    assert "belongs to other learning: its target is" in complaint(capsys)
    assert contents(tmp_path) == {}


def test_another_targets_work_is_refused(trained, gemma_folder, tmp_path, capsys):
    assert train(gemma_folder, tmp_path / "out", "medusa", "--work", trained / "work") == 1

    assert "another model" in complaint(capsys)


def test_work_for_other_layers_is_refused_before_texts_are_written(
    trained, llama_folder, tmp_path, capsys
):
    before = contents(trained)
    more = ["--work", trained / "work", "--text", 2000]

    assert train(llama_folder, tmp_path / "out", "eagle3", *more) == 1

    assert "are of other layers" in complaint(capsys)
    assert contents(trained) == before


@pytest.mark.parametrize(
    ("kind", "more", "sentence"),
    [
        ("eagle", [], "its kind is medusa, not eagle"),
        ("medusa", ["--seed", 1], "its seed is 0, not 1"),
        ("medusa", ["--vocabulary", 50], "its vocabulary is 16384, not 50"),
    ],
)
def test_another_recipes_checkpoint_is_seen_before_texts_are_written(
    kind, more, sentence, trained, llama_folder, tmp_path, capsys
):
    assert train(llama_folder, trained, kind, "--work", tmp_path / "new", *more) == 1

    assert sentence in complaint(capsys)
    assert contents(tmp_path) == {}


def test_layers_are_seen_before_anything_is_written(llama_folder, tmp_path, capsys):
    assert train(llama_folder, tmp_path / "out", "eagle", "--layers", "1,2,3") == 1

    assert "--layers is for eagle3 and draft-model" in complaint(capsys)
    assert list(tmp_path.iterdir()) == []


# Options.


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        *(
            ("--disk-gb", value, f"{value} does not lie between 0.1 and 1,000,000")
            for value in ("0", "-1", "inf", "nan", "1e300")
        ),
        ("--disk-gb", "much", "'much' is no number"),
        *(
            ("--minutes", value, f"{value} does not lie between 0.01 and 1,000,000")
            for value in ("nan", "-5", "0", "inf")
        ),
        ("--seed", "9" * 23, f"seed is {'9' * 23}; it must lie between 0 and 9,223,372,036,"),
        ("--seed", "-1", "seed is -1; it must lie between 0 and"),
        ("--seed", "x", "'x' is no whole number"),
        ("--layers", "a,b", "'a,b' is no list of whole numbers such as 0,5,9"),
        ("--text", "lots", "'lots' is no whole number"),
        ("--tokens", "0", "0 is not at least 1"),
        ("--vocabulary", "1.5", "'1.5' is no whole number"),
    ],
)
def test_a_bad_value_is_a_sentence_while_options_are_read(option, value, sentence, capsys):
    with pytest.raises(SystemExit):
        main(["train", "--kind", "medusa", "--out", "out", "--target", "/no", option, value])

    said = capsys.readouterr().err.splitlines()[-1]
    assert sentence in said
    assert ".." not in said
    assert f"argument {option}: " in said
    assert "_" not in said


def test_an_unknown_kind_is_told_which_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--kind", "foo", "--out", "out"])

    said = capsys.readouterr().err.splitlines()[-1]
    assert "DrafterKind" not in said
    for kind in ("medusa", "eagle", "eagle3", "draft-model"):
        assert kind in said
