#include "backends/model/weights/finder.h"

#include <algorithm>
#include <numeric>

namespace assay::model {
namespace {

std::string sizes_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string expected_text(const std::vector<Dimension>& shape) {
  std::vector<int64_t> sizes;
  std::string from;
  for (const Dimension& d : shape) {
    sizes.push_back(d.size);
    from += (from.empty() ? "" : ", ") + d.from;
  }
  return sizes_text(sizes) + " = [" + from + "]";
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

bool not_a_weight(const std::string& key) {
  for (const char* prefix : {"optimizer.", "common_state", "rerun_state_machine_state", "rng_state", "chained_0.",
                             "chained_1.", "opt_param_scheduler"}) {
    if (key.starts_with(prefix)) return true;
  }
  return key.find("_extra_state") != std::string::npos;
}

}  // namespace

std::vector<Finder::Layout> Finder::layouts(const Wanted& wanted, const std::string& name) const {
  const Dimension layers{config_.num_layers, "num_layers"};
  const Dimension experts{config_.moe.experts, "num_experts"};
  if (wanted.layer < 0) return {{name, {}, {}}};
  const std::string stacked = "decoder.layers.";
  const std::string single = stacked + std::to_string(wanted.layer) + ".";
  const size_t place = name.find("{e}");
  if (wanted.expert < 0) return {{stacked + name, {wanted.layer}, {layers}}, {single + name, {}, {}}};
  if (place == std::string::npos) {
    return {{stacked + name, {wanted.layer, wanted.expert}, {layers, experts}},
            {single + name, {wanted.expert}, {experts}}};
  }
  std::string of_expert = name;
  of_expert.replace(place, 3, std::to_string(wanted.expert));
  return {{stacked + of_expert, {wanted.layer}, {layers}}, {single + of_expert, {}, {}}};
}

void Finder::check(const TensorInfo& tensor, const Layout& layout, const Wanted& wanted,
                   const std::vector<Dimension>& shape) {
  std::vector<Dimension> expected = layout.axes;
  expected.insert(expected.end(), shape.begin(), shape.end());
  bool same = tensor.shape.size() == expected.size();
  for (size_t i = 0; same && i < expected.size(); ++i) {
    const bool free_axis = wanted.padded_rows && i == layout.axes.size();
    same = free_axis ? tensor.shape[i] > 0 : tensor.shape[i] == expected[i].size;
  }
  if (!same) {
    status_ = invalid("weight " + tensor.key + ": shape " + sizes_text(tensor.shape) + " in " + contents_.path +
                      ", the arguments ask for " + expected_text(expected) +
                      "; correct the arguments or load the checkpoint that fits them");
  } else if (tensor.dtype == Dtype::kOther) {
    status_ = unsupported("weight " + tensor.key + ": dtype " + tensor.torch_dtype +
                          ", expected float32, float16 or bfloat16");
  }
}

// Appends the tensor stored under one of the names with `suffix`; false when there is none.
bool Finder::take(const Wanted& wanted, const std::string& suffix, const std::vector<Dimension>& shape,
                  WeightRef& weight, std::vector<std::string>& tried) {
  for (const std::string& name : wanted.names) {
    for (const Layout& layout : layouts(wanted, name + suffix)) {
      const TensorInfo* tensor = contents_.find(layout.key);
      tried.push_back(layout.key);
      if (tensor == nullptr) continue;
      used_.insert(layout.key);
      check(*tensor, layout, wanted, shape);
      if (!status_.ok()) return true;
      weight.stored = tensor->dtype;
      weight.pieces.push_back({layout.key, layout.leading, std::min(shape[0].size, tensor->shape[layout.axes.size()])});
      return true;
    }
  }
  return false;
}

void Finder::fail_missing(const std::vector<std::string>& tried) {
  std::string message = "weight " + tried.front() + " is missing in " + contents_.path + "; tried ";
  for (size_t i = 0; i < tried.size(); ++i) message += (i == 0 ? "" : ", ") + tried[i];
  const TensorInfo* nearest = nullptr;
  size_t best = SIZE_MAX;
  for (const TensorInfo& tensor : contents_.tensors) {
    if (not_a_weight(tensor.key)) continue;
    for (const std::string& key : tried) {
      const size_t distance = edit_distance(key, tensor.key);
      if (distance < best) {
        best = distance;
        nearest = &tensor;
      }
    }
  }
  if (nearest != nullptr) message += "; the nearest key there is " + nearest->key;
  status_ = invalid(message);
}

WeightRef Finder::find(const Wanted& wanted) {
  WeightRef weight;
  weight.rows = wanted.shape[0].size;
  weight.cols = wanted.shape.size() > 1 ? wanted.shape[1].size : 1;
  if (!status_.ok()) return weight;
  std::vector<std::string> tried;
  if (take(wanted, "", wanted.shape, weight, tried)) return weight;
  if (wanted.gated) {
    std::vector<Dimension> half = wanted.shape;
    half[0].size /= 2;
    half[0].from += " / 2";
    if (take(wanted, "_w", half, weight, tried) && status_.ok()) {
      if (take(wanted, "_v", half, weight, tried)) return weight;
    }
  }
  if (status_.ok()) fail_missing(tried);
  return weight;
}

std::vector<std::string> Finder::unused() const {
  std::vector<std::string> keys;
  for (const TensorInfo& tensor : contents_.tensors) {
    if (!used_.contains(tensor.key) && !not_a_weight(tensor.key)) keys.push_back(tensor.key);
  }
  return keys;
}

}  // namespace assay::model
