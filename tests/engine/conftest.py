"""Tiny models in memory and on disk, made once."""

from __future__ import annotations

import pytest
import torch

from engine.models.transformers_lm import TransformersLM
from tests.engine import models_for_tests as tiny
from tests.engine import other_words


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Tiny tensors gain nothing from threads, and other people's tests run beside these."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def models():
    """Targets of three kinds of attention, by name."""
    return {"llama": tiny.llama(1), "mistral": tiny.mistral(2), "gemma": tiny.gemma(3)}


@pytest.fixture(scope="session")
def lms(models):
    """The same as the loop sees them; no end of turn, so that replies have a known length."""
    for model in models.values():
        model.generation_config.eos_token_id = None
    return {name: TransformersLM(model) for name, model in models.items()}


@pytest.fixture(scope="session")
def draft_lm():
    """A model that says other things than the targets."""
    return TransformersLM(tiny.llama(11, layers=1))


@pytest.fixture(scope="session")
def llama_folder(tmp_path_factory):
    """A target as a user has it: float64, grouped-query attention, a chat template."""
    return tiny.write(tmp_path_factory.mktemp("llama"), tiny.llama(2), tiny.tokenizer())


@pytest.fixture(scope="session")
def gemma_folder(tmp_path_factory):
    """A target with a sliding window in half of its layers."""
    return tiny.write(tmp_path_factory.mktemp("gemma"), tiny.gemma(8), tiny.tokenizer())


@pytest.fixture(scope="session")
def draft_folder(tmp_path_factory):
    """A smaller model that fits the targets."""
    model = tiny.llama(11, layers=1)
    return tiny.write(tmp_path_factory.mktemp("draft"), model, tiny.tokenizer())


@pytest.fixture(scope="session")
def padded_draft_folder(tmp_path_factory):
    """The same ids, with rows for some that no token has."""
    model = tiny.llama(12, layers=1, vocabulary=tiny.VOCABULARY + 17)
    return tiny.write(tmp_path_factory.mktemp("padded"), model, tiny.tokenizer())


@pytest.fixture(scope="session")
def other_folder(tmp_path_factory):
    """A smaller model with quite another tokenizer."""
    words = other_words.tokenizer()
    model = tiny.llama(13, layers=1, vocabulary=len(words))
    return tiny.write(tmp_path_factory.mktemp("other"), model, words)


@pytest.fixture(scope="session")
def plain_folder(tmp_path_factory):
    """A model without a chat template."""
    words = tiny.tokenizer(chat_template=None)
    return tiny.write(tmp_path_factory.mktemp("plain"), tiny.llama(4), words)
