"""config.json of EAGLE-3 heads as each project writes it; the sources stand in eagle3_folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engine.heads_reference.blocks import EPSILON

if TYPE_CHECKING:
    from tests.engine.heads_reference.eagle3_folders import Head


def official(head: Head) -> dict[str, Any]:
    """LLaMA's config with one layer and `draft_vocab_size`; nothing on the taps."""
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "bos_token_id": 1,
        "eos_token_id": 2,
        **_sizes(head),
        "initializer_range": 0.02,
        "max_position_embeddings": 2048,
        "model_type": "llama",
        "pad_token_id": 0,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        "transformers_version": "4.28.1",
        "use_cache": True,
        "draft_vocab_size": head.vocabulary,
    }
    if head.rope_written:
        config["rope_theta"] = head.geometry.rope_theta
    if head.geometry.head_dim * head.geometry.heads != head.hidden:
        config["head_dim"] = head.geometry.head_dim
    if head.hidden != head.target.hidden:
        config["target_hidden_size"] = head.target.hidden
    return config


def specforge(head: Head) -> dict[str, Any]:
    """The official keys under its own architecture; taps by the layers whose output they are."""
    config = official(head) | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "rope_scaling": None,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.53.2",
    }
    switches = {"fc_norm": head.switches.fc_norm, "norm_output": head.switches.norm_output}
    config |= {name: True for name, on in switches.items() if on}
    if head.taps_written:
        config["eagle_config"] = {
            "eagle_aux_hidden_state_layer_ids": [index - 1 for index in head.taps],
            "use_aux_hidden_state": True,
        }
    return config


def deepspec(head: Head) -> dict[str, Any]:
    """The target's Qwen3 config, as transformers 5 writes it, with the drafter's own keys."""
    return {
        "architectures": ["Qwen3Eagle3Model"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "draft_num_hidden_layers": 1,
        "dtype": "bfloat16",
        **_sizes(head),
        "head_dim": head.geometry.head_dim,
        "layer_types": ["full_attention"],
        "max_position_embeddings": 40960,
        "model_type": "qwen3",
        "num_target_layers": head.target.layers,
        "rope_parameters": _rope(head),
        "sliding_window": None,
        "step_loss_decay": 0.8,
        "target_layer_ids": [index - 1 for index in head.taps],
        "target_model_name_or_path": head.target.name,
        "tie_word_embeddings": False,
        "transformers_version": "5.10.2",
        "ttt_length": 7,
        "use_cache": True,
        "use_sliding_window": False,
    }


def speculators(head: Head, layer_model: str) -> dict[str, Any]:
    """The sizes under `transformer_layer_config`, the switches and the rest at the top."""
    return {
        "architectures": ["Eagle3DraftModel"],
        "draft_vocab_size": head.vocabulary,
        "dtype": "bfloat16",
        "eagle_aux_hidden_state_layer_ids": list(head.taps) if head.taps_written else None,
        "embed_requires_grad": False,
        "fc_norm": head.switches.fc_norm,
        "norm_before_fc": head.switches.norm_before_fc,
        "norm_before_residual": head.switches.norm_before_residual,
        "norm_output": head.switches.norm_output,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {
                    "accept_tolerance": 0.0,
                    "proposal_type": "greedy",
                    "speculative_tokens": 3,
                    "verifier_accept_k": 1,
                }
            ],
            "verifier": {
                "architectures": [head.target.architecture],
                "name_or_path": head.target.name,
            },
        },
        "speculators_model_type": "eagle3",
        "speculators_version": "0.5.0",
        "target_hidden_size": None,
        "tie_word_embeddings": False,
        "transformer_layer_config": {
            "attention_bias": False,
            **_sizes(head),
            "head_dim": head.geometry.head_dim,
            "max_position_embeddings": 2048,
            "mlp_bias": False,
            "model_type": layer_model,
            "rope_parameters": _rope(head),
        },
        "transformers_version": "5.10.2",
    }


BY_SPELLING = {"official": official, "specforge": specforge, "deepspec": deepspec}


def _sizes(head: Head) -> dict[str, Any]:
    return {
        "hidden_act": "silu",
        "hidden_size": head.hidden,
        "intermediate_size": head.target.intermediate,
        "num_attention_heads": head.geometry.heads,
        "num_hidden_layers": 1,
        "num_key_value_heads": head.geometry.kv_heads,
        "rms_norm_eps": EPSILON,
        "vocab_size": head.target.vocabulary,
    }


def _rope(head: Head) -> dict[str, Any]:
    return {"rope_theta": head.geometry.rope_theta, "rope_type": "default"}
