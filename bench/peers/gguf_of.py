"""Writes the model of one of our checkpoints as GGUF, architecture llama: same weights, same shapes.

gguf_of.py CHECKPOINT CONFIG_JSON FILE
"""
import json
import sys

import gguf
import numpy as np
import torch

import weights


def rotated_in_pairs(rows, heads):
    """llama.cpp turns neighbouring elements of a head; we turn halves: (heads * channels, hidden) put in its order."""
    return rows.view(heads, 2, rows.shape[0] // heads // 2, -1).transpose(1, 2).reshape(rows.shape)


class Writer:
    def __init__(self, config, file):
        self.config = config
        self.out = gguf.GGUFWriter(file, "llama")
        bf16 = config["arithmetic"] == "bf16"
        self.kind = gguf.GGMLQuantizationType.BF16 if bf16 else gguf.GGMLQuantizationType.F32

    def describe(self):
        config, out = self.config, self.out
        moe = config["moe"]
        if config["norm"] != "RMSNorm" or config["activation"] != "swiglu" or config["linear_bias"]:
            sys.exit("gguf_of: only RMSNorm, SwiGLU and no biases have a counterpart here")
        out.add_vocab_size(config["vocab_size"])
        out.add_tokenizer_model("none")
        out.add_context_length(config["max_position_embeddings"])
        out.add_embedding_length(config["hidden_size"])
        out.add_block_count(config["num_layers"])
        out.add_feed_forward_length(moe["ffn_hidden_size"] if moe["experts"] else config["ffn_hidden_size"])
        out.add_head_count(config["num_attention_heads"])
        out.add_head_count_kv(config["num_query_groups"])
        out.add_key_length(config["kv_channels"])
        out.add_value_length(config["kv_channels"])
        out.add_rope_dimension_count(config["kv_channels"])
        out.add_rope_freq_base(config["rotary_base"])
        out.add_layer_norm_rms_eps(config["norm_epsilon"])
        if moe["experts"]:
            out.add_expert_count(moe["experts"])
            out.add_expert_used_count(moe["topk"])

    def matrix(self, name, tensor):
        tensor = tensor.contiguous()
        if self.kind == gguf.GGMLQuantizationType.F32:
            self.out.add_tensor(name, tensor.float().numpy())
        else:
            raw = tensor.to(torch.bfloat16).view(torch.uint16).numpy()
            self.out.add_tensor(name, raw.view(np.uint8), raw_dtype=self.kind)

    def vector(self, name, tensor):
        self.out.add_tensor(name, tensor.float().contiguous().numpy())

    def layer(self, index, parts):
        groups, channels = self.config["num_query_groups"], self.config["kv_channels"]
        heads = self.config["num_attention_heads"]
        name = f"blk.{index}."
        qkv = parts["qkv"].view(groups, heads // groups + 2, channels, -1)
        query = qkv[:, :-2].reshape(heads * channels, -1)
        key = qkv[:, -2].reshape(groups * channels, -1)
        self.vector(name + "attn_norm.weight", parts["attention_norm"])
        self.matrix(name + "attn_q.weight", rotated_in_pairs(query, heads))
        self.matrix(name + "attn_k.weight", rotated_in_pairs(key, groups))
        self.matrix(name + "attn_v.weight", qkv[:, -1].reshape(groups * channels, -1))
        self.matrix(name + "attn_output.weight", parts["proj"])
        self.vector(name + "ffn_norm.weight", parts["mlp_norm"])
        fc1, ending = (parts["expert_fc1"], "_exps") if "router" in parts else (parts["fc1"], "")
        gate, up = fc1.chunk(2, -2)
        self.matrix(f"{name}ffn_gate{ending}.weight", gate)
        self.matrix(f"{name}ffn_up{ending}.weight", up)
        self.matrix(f"{name}ffn_down{ending}.weight", parts["expert_fc2" if ending else "fc2"])
        if ending:
            self.vector(name + "ffn_gate_inp.weight", parts["router"])

    def write(self, tensors):
        self.describe()
        self.matrix("token_embd.weight", tensors["embedding.word_embeddings.weight"])
        for index in range(self.config["num_layers"]):
            self.layer(index, weights.layer(tensors, index))
        self.vector("output_norm.weight", tensors["decoder.final_layernorm.weight"])
        self.matrix("output.weight", tensors["output_layer.weight"])
        self.out.write_header_to_file()
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()


if __name__ == "__main__":
    Writer(json.loads(sys.argv[2]), sys.argv[3]).write(weights.read(sys.argv[1]))
