#include "backends/model/checkpoint/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace assay::model {
namespace {

using Json = nlohmann::ordered_json;

// The arguments that say which model this is; the JSON form has all.
constexpr std::array kSummary = {"num_layers",
                                 "hidden_size",
                                 "ffn_hidden_size",
                                 "num_attention_heads",
                                 "num_query_groups",
                                 "kv_channels",
                                 "padded_vocab_size",
                                 "max_position_embeddings",
                                 "seq_length",
                                 "normalization",
                                 "position_embedding_type",
                                 "rotary_base",
                                 "rotary_percent",
                                 "swiglu",
                                 "squared_relu",
                                 "add_bias_linear",
                                 "add_qkv_bias",
                                 "qk_layernorm",
                                 "untie_embeddings_and_output_weights",
                                 "num_experts",
                                 "moe_router_topk",
                                 "moe_ffn_hidden_size",
                                 "moe_shared_expert_intermediate_size",
                                 "moe_router_score_function",
                                 "moe_layer_freq",
                                 "bf16",
                                 "tokenizer_type"};

Json to_json(const ArgValue& value) {
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(bool v) const { return v; }
    Json operator()(int64_t v) const { return v; }
    Json operator()(double v) const { return v; }
    Json operator()(const std::string& v) const { return v; }
    Json operator()(const Opaque& v) const { return Json{{"class", v.text}}; }
    Json operator()(const ArgList& v) const {
      Json list = Json::array();
      for (const ArgValue& item : v) list.push_back(to_json(item));
      return list;
    }
  };
  return std::visit(Visitor(), value.value);
}

std::string dump(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

// Names come from the file: control characters must not reach a terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) out += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
  return out;
}

std::string args_text(const ArgRecord& args) {
  if (args.empty()) return "arguments: none in the checkpoint\n";
  std::string out = fmt::format("arguments: {}\n", args.size());
  for (const char* name : kSummary) {
    const auto entry = args.find(name);
    if (entry != args.end()) out += fmt::format("  {} = {}\n", name, printable(dump(to_json(entry->second), -1)));
  }
  return out;
}

struct Total {
  int64_t parameters = 0;
  uint64_t bytes = 0;
};

Total total_of(const CheckpointContents& contents) {
  Total total;
  for (const TensorInfo& tensor : contents.tensors) {
    total.parameters += tensor.elements();
    total.bytes += tensor.bytes();
  }
  return total;
}

}  // namespace

Result<std::string> render_checkpoint_text(const Checkpoint& checkpoint) {
  const CheckpointContents& contents = checkpoint.contents();
  Result<ArgRecord> args = checkpoint.args();
  if (!args.ok()) return args.status();
  size_t key_width = 6;
  size_t shape_width = 5;
  for (const TensorInfo& tensor : contents.tensors) {
    key_width = std::max(key_width, tensor.key.size());
    shape_width = std::max(shape_width, shape_text(tensor.shape).size());
  }
  std::string out = fmt::format("checkpoint {}  (torch_dist, {}, {} files)\n", contents.path,
                                contents.iteration < 0 ? "release" : fmt::format("iteration {}", contents.iteration),
                                contents.files.size());
  out += fmt::format("{:<{}}  {:<{}}  {:<8}  {:>6}  {:>14}\n", "tensor", key_width, "shape", shape_width, "dtype",
                     "chunks", "bytes");
  for (const TensorInfo& tensor : contents.tensors) {
    out += fmt::format("{:<{}}  {:<{}}  {:<8}  {:>6}  {:>14}\n", printable(tensor.key), key_width,
                       shape_text(tensor.shape), shape_width, printable(tensor.torch_dtype), tensor.chunks.size(),
                       tensor.bytes());
  }
  for (const TensorInfo& tensor : contents.tensors) {
    if (!tensor.defect.empty()) out += fmt::format("unreadable: {}\n", printable(tensor.defect));
  }
  const Total total = total_of(contents);
  out += fmt::format("total: {} tensors, {} parameters, {} bytes; {} objects\n", contents.tensors.size(),
                     total.parameters, total.bytes, contents.objects.size());
  return out + args_text(*args);
}

Result<std::string> render_checkpoint_json(const Checkpoint& checkpoint) {
  const CheckpointContents& contents = checkpoint.contents();
  Result<ArgRecord> args = checkpoint.args();
  if (!args.ok()) return args.status();
  Json json{{"path", contents.path}, {"iteration", nullptr}, {"format", "torch_dist"}, {"files", contents.files}};
  if (contents.iteration >= 0) json["iteration"] = contents.iteration;
  json["tensors"] = Json::array();
  for (const TensorInfo& tensor : contents.tensors) {
    std::set<std::string> files;
    for (const ItemPlace& place : tensor.places) files.insert(contents.files[place.file]);
    json["tensors"].push_back({{"key", tensor.key},
                               {"shape", tensor.shape},
                               {"dtype", tensor.torch_dtype},
                               {"chunks", tensor.chunks.size()},
                               {"bytes", tensor.bytes()},
                               {"files", files},
                               {"defect", tensor.defect.empty() ? Json(nullptr) : Json(tensor.defect)}});
  }
  json["objects"] = Json::array();
  for (const ObjectInfo& object : contents.objects) {
    json["objects"].push_back({{"key", object.key}, {"bytes", object.place.length}});
  }
  const Total total = total_of(contents);
  json["total"] = {{"tensors", contents.tensors.size()}, {"parameters", total.parameters}, {"bytes", total.bytes}};
  json["args"] = Json::object();
  for (const auto& [name, value] : *args) json["args"][name] = to_json(value);
  return dump(json, 1) + "\n";
}

}  // namespace assay::model
