"""PyTorch on the processor as a worker of compare.py: a plain module with a KV cache, on our checkpoint's weights.

torch_worker.py CHECKPOINT CONFIG_JSON THREADS eager|onednn|compile
eager: torch.nn.functional.linear as it is. onednn: linear layers on weights in oneDNN's own layout, as
torch.utils.mkldnn makes them (fp32 only; where fp32 goes to MKL otherwise, which is slow on some processors).
compile: eager through torch.compile.
"""
import json
import sys

import torch
import torch.nn.functional as F

import weights
import worker

MOST_TOKENS = 1024


class Model:
    def __init__(self, folder, config, way):
        tensors = weights.read(folder)
        self.dtype = torch.bfloat16 if config["arithmetic"] == "bf16" else torch.float32
        self.groups = config["num_query_groups"]
        self.channels = config["kv_channels"]
        self.per_group = config["num_attention_heads"] // self.groups
        self.hidden = config["hidden_size"]
        self.epsilon = config["norm_epsilon"]
        self.topk = config["moe"]["topk"]
        self.words = tensors["embedding.word_embeddings.weight"].to(self.dtype)
        self.output = tensors["output_layer.weight"].to(self.dtype)
        self.final_norm = tensors["decoder.final_layernorm.weight"].to(self.dtype)
        self.layers = []
        for index in range(config["num_layers"]):
            parts = weights.layer(tensors, index)
            self.layers.append({name: part.to(self.dtype).clone() for name, part in parts.items()})
        if way == "onednn":
            self.output = self.output.to_mkldnn()
            for layer in self.layers:
                for name in ("qkv", "proj", "fc1", "fc2"):
                    layer[name] = layer[name].to_mkldnn()
        shape = (len(self.layers), 2, self.groups, MOST_TOKENS, self.channels)
        self.cache = torch.zeros(shape, dtype=self.dtype)
        frequencies = 1.0 / config["rotary_base"] ** (torch.arange(0, self.channels, 2) / self.channels)
        angles = torch.outer(torch.arange(MOST_TOKENS, dtype=torch.float32), frequencies)
        self.cosine = torch.cat([angles.cos(), angles.cos()], -1).to(self.dtype)[:, None, :]
        self.sine = torch.cat([-angles.sin(), angles.sin()], -1).to(self.dtype)[:, None, :]
        self.past = 0
        self.run = torch.compile(self.forward, dynamic=True) if way == "compile" else self.forward

    @staticmethod
    def linear(x, weight):
        if weight.is_mkldnn:
            return torch.ops.aten.mkldnn_linear(x.contiguous().to_mkldnn(), weight, None).to_dense()
        return F.linear(x, weight)

    def norm(self, x, gamma):
        return F.rms_norm(x, (self.hidden,), gamma, self.epsilon)

    def rotate(self, x, past):
        half = self.channels // 2
        end = past + x.shape[0]
        swapped = torch.cat([x[..., half:], x[..., :half]], -1)
        return x * self.cosine[past:end] + swapped * self.sine[past:end]

    def attend(self, x, layer, cache, past):
        count = x.shape[0]
        rows = self.linear(x, layer["qkv"]).view(count, self.groups, self.per_group + 2, self.channels)
        query = self.rotate(rows[:, :, : self.per_group].reshape(count, -1, self.channels), past)
        end = past + count
        cache[0][:, past:end] = self.rotate(rows[:, :, self.per_group], past).transpose(0, 1)
        cache[1][:, past:end] = rows[:, :, self.per_group + 1].transpose(0, 1)
        keys, values = cache[0][None, :, :end], cache[1][None, :, :end]
        if count == 1:  # the queries of a group as rows: nothing has to be masked or repeated
            query = query.view(1, self.groups, self.per_group, self.channels)
            out = F.scaled_dot_product_attention(query, keys, values)
        else:  # a prompt from its first token on
            query = query.view(1, count, -1, self.channels).transpose(1, 2)
            out = F.scaled_dot_product_attention(query, keys, values, is_causal=True, enable_gqa=True)
            out = out.transpose(1, 2)
        return self.linear(out.reshape(count, -1), layer["proj"])

    def multilayer(self, x, fc1, fc2):
        gate, up = self.linear(x, fc1).chunk(2, -1)
        return self.linear(F.silu(gate) * up, fc2)

    def mixture(self, x, layer):
        scores, chosen = torch.topk(F.linear(x, layer["router"]), self.topk)
        factors = torch.softmax(scores, -1, dtype=torch.float32).to(x.dtype)
        if x.shape[0] == 1:
            parts = [
                self.multilayer(x, layer["expert_fc1"][expert], layer["expert_fc2"][expert])
                for expert in chosen[0].tolist()
            ]
            return (torch.cat(parts) * factors[0][:, None]).sum(0, keepdim=True)
        total = torch.zeros_like(x)
        for expert in range(layer["router"].shape[0]):
            tokens, slots = torch.where(chosen == expert)
            if len(tokens) == 0:
                continue
            part = self.multilayer(x[tokens], layer["expert_fc1"][expert], layer["expert_fc2"][expert])
            total.index_add_(0, tokens, part * factors[tokens, slots][:, None])
        return total

    def forward(self, ids, past, all_rows):
        x = F.embedding(ids, self.words)
        for index, layer in enumerate(self.layers):
            x = x + self.attend(self.norm(x, layer["attention_norm"]), layer, self.cache[index], past)
            normed = self.norm(x, layer["mlp_norm"])
            if "router" in layer:
                x = x + self.mixture(normed, layer)
            else:
                x = x + self.multilayer(normed, layer["fc1"], layer["fc2"])
        rows = x if all_rows else x[-1:]
        return self.linear(self.norm(rows, self.final_norm), self.output)

    def logits(self, ids, all_rows=False):
        assert len(ids) == 1 or self.past == 0
        with torch.inference_mode():
            rows = self.run(torch.tensor(ids), self.past, all_rows)
        self.past += len(ids)
        return rows

    def restart(self):
        self.past = 0

    def feed(self, ids):
        return int(self.logits(ids)[-1].argmax())

    def score(self, ids):
        logprobs = torch.log_softmax(self.logits(ids, True).float(), -1)
        following = ids[1:] + ids[:1]
        best = logprobs.argmax(-1)
        return [(int(b), float(row[b]), float(row[f])) for row, b, f in zip(logprobs, best, following)]


def main():
    folder, config, threads, way = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(threads)
    model = Model(folder, config, way)
    print(json.dumps({"device": f"PyTorch {torch.__version__} {way}"}), flush=True)
    worker.serve(model, config["vocab_size"])


if __name__ == "__main__":
    main()
