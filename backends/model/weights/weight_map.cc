#include "backends/model/weights/weight_map.h"

#include <algorithm>
#include <cstring>

#include "backends/model/weights/finder.h"

namespace assay::model {
namespace {

// Builds the map of one model; failures stay in the finder.
class Mapper {
 public:
  Mapper(const CheckpointContents& contents, const ModelConfig& config) : finder_(contents, config), config_(config) {}

  Result<WeightMap> run() {
    WeightMap map;
    const Dimension vocab{config_.vocab_size, "vocab_size"};
    map.word_embeddings =
        finder_.find({.names = {"embedding.word_embeddings.weight"}, .shape = {vocab, hidden_}, .padded_rows = true});
    if (config_.positions == Positions::kLearnedAbsolute) {
      const Dimension positions{config_.max_position_embeddings, "max_position_embeddings"};
      map.position_embeddings =
          finder_.find({.names = {"embedding.position_embeddings.weight"}, .shape = {positions, hidden_}});
    }
    for (int l = 0; l < config_.num_layers && finder_.status().ok(); ++l) map.layers.push_back(layer(l));
    map.final_norm = norm(-1, {"decoder.final_layernorm."}, hidden_);
    map.output = config_.tied_embeddings
                     ? map.word_embeddings
                     : finder_.find({.names = {"output_layer.weight"}, .shape = {vocab, hidden_}, .padded_rows = true});
    if (!finder_.status().ok()) return finder_.status();
    map.unused = finder_.unused();
    return map;
  }

 private:
  // Names end in what "weight" and "bias" follow: "pre_mlp_layernorm." or "linear_fc1.layer_norm_".
  NormRef norm(int l, const std::vector<std::string>& stems, const Dimension& width) {
    NormRef result;
    Wanted gamma{.names = {}, .shape = {width}, .layer = l};
    Wanted beta = gamma;
    for (const std::string& stem : stems) {
      gamma.names.push_back(stem + "weight");
      beta.names.push_back(stem + "bias");
    }
    result.gamma = finder_.find(gamma);
    if (config_.norm == Norm::kLayerNorm) result.beta = finder_.find(beta);
    return result;
  }

  struct LinearShape {
    Dimension out;
    Dimension in;
    bool bias = false;
    bool gated = false;
  };

  LinearRef linear(int l, const std::string& name, const LinearShape& shape) {
    LinearRef result;
    result.weight =
        finder_.find({.names = {name + ".weight"}, .shape = {shape.out, shape.in}, .layer = l, .gated = shape.gated});
    if (shape.bias) {
      result.bias = finder_.find({.names = {name + ".bias"}, .shape = {shape.out}, .layer = l, .gated = shape.gated});
    }
    return result;
  }

  LinearShape fc1(int width, const std::string& from) const {
    const bool gated = config_.activation == Activation::kSwiglu;
    return {{gated ? 2 * width : width, gated ? "2 * " + from : from}, hidden_, config_.linear_bias, gated};
  }
  LinearShape fc2(int width, const std::string& from) const { return {hidden_, {width, from}, config_.linear_bias}; }

  LayerRefs layer(int l) {
    LayerRefs refs;
    const int channels = config_.kv_channels;
    refs.attention_norm = norm(l, {"self_attention.linear_qkv.layer_norm_", "input_layernorm."}, hidden_);
    const Dimension qkv{(config_.num_attention_heads + 2 * config_.num_query_groups) * channels,
                        "(num_attention_heads + 2 * num_query_groups) * kv_channels"};
    const Dimension heads{config_.num_attention_heads * channels, "num_attention_heads * kv_channels"};
    refs.qkv = linear(l, "self_attention.linear_qkv", {qkv, hidden_, config_.has_qkv_bias()});
    refs.proj = linear(l, "self_attention.linear_proj", {hidden_, heads, config_.linear_bias});
    if (config_.qk_layernorm) {
      refs.q_norm = norm(l, {"self_attention.q_layernorm."}, {channels, "kv_channels"});
      refs.k_norm = norm(l, {"self_attention.k_layernorm."}, {channels, "kv_channels"});
    }
    const bool moe = static_cast<size_t>(l) < config_.moe_layers.size() && config_.moe_layers[static_cast<size_t>(l)];
    if (moe) {
      refs.mlp_norm = norm(l, {"pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_"}, hidden_);
      mixture(l, refs);
    } else {
      refs.mlp_norm = norm(l, {"mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm."}, hidden_);
      refs.fc1 = linear(l, "mlp.linear_fc1", fc1(config_.ffn_hidden_size, "ffn_hidden_size"));
      refs.fc2 = linear(l, "mlp.linear_fc2", fc2(config_.ffn_hidden_size, "ffn_hidden_size"));
    }
    return refs;
  }

  void mixture(int l, LayerRefs& refs) {
    const MoeConfig& moe = config_.moe;
    const Dimension experts{moe.experts, "num_experts"};
    refs.router = linear(l, "mlp.router", {experts, hidden_, moe.router_bias});
    if (moe.expert_bias) {
      refs.expert_bias = finder_.find({.names = {"mlp.router.expert_bias"}, .shape = {experts}, .layer = l});
    }
    for (int e = 0; e < moe.experts && finder_.status().ok(); ++e) {
      refs.expert_fc1.push_back(expert(l, e, "linear_fc1", fc1(moe.ffn_hidden_size, "moe_ffn_hidden_size")));
      refs.expert_fc2.push_back(expert(l, e, "linear_fc2", fc2(moe.ffn_hidden_size, "moe_ffn_hidden_size")));
    }
    if (moe.shared_ffn_hidden_size == 0) return;
    const std::string width = "moe_shared_expert_intermediate_size";
    refs.shared_fc1 = linear(l, "mlp.shared_experts.linear_fc1", fc1(moe.shared_ffn_hidden_size, width));
    refs.shared_fc2 = linear(l, "mlp.shared_experts.linear_fc2", fc2(moe.shared_ffn_hidden_size, width));
    if (moe.shared_gate) {
      refs.shared_gate =
          finder_.find({.names = {"mlp.shared_experts.gate_weight"}, .shape = {{1, "1"}, hidden_}, .layer = l});
    }
  }

  // Stacked over experts, or one key an expert: singleton shards, the local list of modules, grouped GEMM (weight3).
  LinearRef expert(int l, int e, const std::string& name, const LinearShape& shape) {
    const std::vector<std::string> weights = {"mlp.experts.experts." + name + ".weight",
                                              "mlp.experts.experts.{e}." + name + ".weight",
                                              "mlp.experts.local_experts.{e}." + name + ".weight",
                                              "mlp.experts." + name + ".weight",
                                              "mlp.experts." + name + ".weight{e}",
                                              "mlp.experts.{e}." + name + ".weight"};
    Wanted wanted{.names = weights, .shape = {shape.out, shape.in}, .layer = l, .expert = e, .gated = shape.gated};
    LinearRef result;
    result.weight = finder_.find(wanted);
    if (!shape.bias) return result;
    for (std::string& key : wanted.names) key.replace(key.rfind("weight"), 6, "bias");
    wanted.shape = {shape.out};
    result.bias = finder_.find(wanted);
    return result;
  }

  Finder finder_;
  const ModelConfig& config_;
  const Dimension hidden_{config_.hidden_size, "hidden_size"};
};

// read(piece, dst, rows of the piece) for each piece that the rows meet; zeros behind the last one.
template <class Read>
Status rows_by_piece(const WeightRef& weight, const WeightRows& wanted, const Read& read) {
  auto* bytes = static_cast<std::byte*>(wanted.dst);
  const size_t row_bytes = static_cast<size_t>(weight.cols) * dtype_size(wanted.out);
  int64_t first = 0;            // row of the weight at which the piece begins
  int64_t next = wanted.begin;  // row to be written next
  for (const Piece& piece : weight.pieces) {
    const int64_t last = std::min(wanted.end, first + piece.rows);
    if (next < last) {
      if (Status status = read(piece, bytes, {next - first, last - first}); !status.ok()) return status;
      bytes += static_cast<size_t>(last - next) * row_bytes;
      next = last;
    }
    first += piece.rows;
  }
  std::memset(bytes, 0, static_cast<size_t>(wanted.end - next) * row_bytes);
  return {};
}

}  // namespace

Result<WeightMap> map_weights(const CheckpointContents& contents, const ModelConfig& config) {
  return Mapper(contents, config).run();
}

Status read_weight(const Checkpoint& checkpoint, const WeightRef& weight, Dtype out, void* dst) {
  return read_weight_rows(checkpoint, weight, 0, weight.rows, out, dst);
}

Status read_weight_rows(const Checkpoint& checkpoint, const WeightRef& weight, int64_t begin, int64_t end, Dtype out,
                        void* dst) {
  return rows_by_piece(weight, {begin, end, out, dst}, [&](const Piece& piece, void* to, RowRange rows) {
    return checkpoint.read(piece.key, piece.leading, out, to, rows);
  });
}

Status stream_weight_rows(CheckpointStream& stream, CheckpointStream::Reader& reader, const WeightRef& weight,
                          const WeightRows& rows) {
  return rows_by_piece(weight, rows, [&](const Piece& piece, void* to, RowRange range) {
    return stream.read(reader, piece.key, piece.leading, rows.out, to, range);
  });
}

}  // namespace assay::model
