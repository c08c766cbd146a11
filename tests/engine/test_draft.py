"""Drafts of any shape: paths, depths, positions, and which row sees which."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.draft import (
    NO_DRAFT,
    NO_PASSENGERS,
    ROOT,
    Draft,
    Passengers,
    row_ids,
    row_mask,
    row_positions,
)


@st.composite
def drafts(draw, *, largest=12):
    count = draw(st.integers(0, largest))
    parents = [draw(st.integers(ROOT, node - 1)) for node in range(count)]
    ids = draw(st.lists(st.integers(0, 50), min_size=count, max_size=count))
    return Draft(tuple(ids), tuple(parents), ("toy",) * count, (None,) * count, (None,) * count)


@st.composite
def passenger_rows(draw):
    count = draw(st.integers(0, 4))
    sees = torch.eye(count, dtype=torch.bool)
    for row in range(count):
        for column in range(row):
            sees[row, column] = draw(st.booleans())
    offsets = draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    return Passengers(tuple(range(100, 100 + count)), tuple(offsets), sees)


def ancestors(draft, node):
    """By the parent links alone, nearest first."""
    found = []
    while (node := draft.parents[node]) != ROOT:
        found.append(node)
    return found


@given(drafts())
def test_a_path_runs_from_depth_1_down_to_its_node(draft):
    for node in range(len(draft)):
        path = draft.path(node)

        assert path == (*reversed(ancestors(draft, node)), node)
        assert [draft.depths[step] for step in path] == list(range(1, len(path) + 1))
        assert draft.path_ids(node) == tuple(draft.ids[step] for step in path)
    assert draft.path(ROOT) == ()
    assert draft.path_ids(ROOT) == ()


@given(drafts())
def test_every_node_is_the_child_of_one_place(draft):
    children = draft.children

    assert sorted(node for nodes in children.values() for node in nodes) == list(range(len(draft)))
    for parent, nodes in children.items():
        assert list(nodes) == sorted(nodes)
        assert all(draft.parents[node] == parent for node in nodes)


@given(drafts())
def test_the_first_path_ends_at_a_leaf_and_takes_first_children(draft):
    ids = draft.first_path()

    leaves = [node for node in range(len(draft)) if node not in draft.parents]
    first_leaf = next(
        (
            node
            for node in leaves
            if all(draft.children[draft.parents[step]][0] == step for step in draft.path(node))
        ),
        ROOT,
    )
    assert ids == draft.path_ids(first_leaf)


@given(drafts(), passenger_rows())
def test_a_node_sees_the_root_its_ancestors_and_itself_only(draft, passengers):
    mask = row_mask(draft, passengers)

    rows = 1 + len(draft) + len(passengers)
    assert mask.shape == (rows, rows)
    assert mask.dtype == torch.bool
    assert mask[0].tolist() == [True] + [False] * (rows - 1)
    for node in range(len(draft)):
        seen = {0, 1 + node, *(1 + other for other in ancestors(draft, node))}
        assert set(mask[1 + node].nonzero().flatten().tolist()) == seen


@given(drafts(), passenger_rows())
def test_a_passenger_sees_the_root_and_what_it_asked_for_but_no_node(draft, passengers):
    mask = row_mask(draft, passengers)

    first = 1 + len(draft)
    assert mask[first:, 0].all()
    assert not mask[first:, 1:first].any()
    assert torch.equal(mask[first:, first:], passengers.sees)
    assert not mask[:first, first:].any()


@given(drafts(), passenger_rows(), st.integers(0, 10_000))
def test_a_row_stands_as_far_after_the_root_as_it_is_deep(draft, passengers, root_position):
    positions = row_positions(root_position, draft, passengers)

    mask = row_mask(draft, NO_PASSENGERS)
    assert positions[0] == root_position
    for node in range(len(draft)):
        assert positions[1 + node] - root_position == mask[1 + node].sum() - 1
    assert positions[1 + len(draft) :] == tuple(root_position + o for o in passengers.offsets)


@given(drafts(), passenger_rows())
def test_the_rows_of_a_pass_are_root_nodes_passengers(draft, passengers):
    assert row_ids(7, draft, passengers) == (7, *draft.ids, *passengers.ids)


@given(st.lists(st.integers(0, 50), max_size=8))
def test_a_chain_is_one_path_and_its_mask_is_causal(ids):
    draft = Draft.chain(ids, "toy")

    assert draft.is_chain
    assert draft.first_path() == tuple(ids)
    assert draft.depths == tuple(range(1, len(ids) + 1))
    assert draft.drafters == ("toy",) * len(ids)
    causal = torch.ones(len(ids) + 1, len(ids) + 1, dtype=torch.bool).tril()
    assert torch.equal(row_mask(draft, NO_PASSENGERS), causal)


@given(drafts())
def test_only_a_chain_is_called_one(draft):
    assert draft.is_chain == (list(draft.depths) == list(range(1, len(draft) + 1)))


def test_an_empty_draft_is_the_root_alone():
    assert len(NO_DRAFT) == 0
    assert NO_DRAFT.is_chain
    assert row_ids(3, NO_DRAFT, NO_PASSENGERS) == (3,)
    assert row_positions(9, NO_DRAFT, NO_PASSENGERS) == (9,)
    assert row_mask(NO_DRAFT, NO_PASSENGERS).tolist() == [[True]]


def test_a_chain_keeps_the_rows_that_it_was_drawn_from():
    rows = [torch.tensor([0.5, 0.5]), None]

    draft = Draft.chain([1, 0], "toy", q_rows=rows, q=[0.5, None])

    assert draft.q_rows == (rows[0], None)
    assert draft.q == (0.5, None)


@pytest.mark.parametrize("parents", [(0,), (-2,), (ROOT, 1), (1, ROOT), (ROOT, 0, 5)], ids=str)
def test_a_parent_that_does_not_precede_its_child_is_refused(parents):
    count = len(parents)

    with pytest.raises(ValueError, match="precede"):
        Draft((1,) * count, parents, ("toy",) * count, (None,) * count, (None,) * count)


def test_fields_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="one entry per node"):
        Draft((1, 2), (ROOT,), ("toy",), (None,), (None,))
