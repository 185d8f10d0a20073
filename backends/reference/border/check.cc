#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/reference/border/model.h"

namespace assay::backend {
namespace {

Status wrong(size_t run, const std::string& what) { return invalid("run " + std::to_string(run) + ": " + what); }

Status check_sampling(size_t run, const assay_sampling& s, int vocab) {
  if (!(s.temperature > 0)) return wrong(run, "temperature " + std::to_string(s.temperature) + ", expected > 0");
  if (s.top_k < 0 || s.top_k > vocab) {
    return wrong(run, "top_k " + std::to_string(s.top_k) + ", expected 0 .. vocabulary " + std::to_string(vocab));
  }
  if (!(s.top_p >= 0 && s.top_p <= 1)) return wrong(run, "top_p " + std::to_string(s.top_p) + ", expected 0 .. 1");
  if (s.top_k > 0 && s.top_p > 0) {
    return wrong(run, "top_k " + std::to_string(s.top_k) + " and top_p " + std::to_string(s.top_p) +
                          " together; set one of them to 0");
  }
  return {};
}

Status check_ids(size_t index, const assay_run& run, int vocab) {
  if (run.ids == nullptr && run.count != 1) {
    return wrong(index, "no ids and count " + std::to_string(run.count) + ", expected 1 for the previous output");
  }
  for (uint32_t i = 0; run.ids != nullptr && i < run.count; ++i) {
    if (run.ids[i] < 0 || run.ids[i] >= vocab) {
      return wrong(index, "id " + std::to_string(run.ids[i]) + " at position " + std::to_string(run.start + i) +
                              ", expected 0 .. " + std::to_string(vocab - 1));
    }
  }
  for (uint32_t r = 0; run.targets != nullptr && r < run.output_rows; ++r) {
    if (run.targets[r] < -1 || run.targets[r] >= vocab) {
      return wrong(index, "target " + std::to_string(run.targets[r]) + ", expected -1 .. " + std::to_string(vocab - 1));
    }
  }
  return {};
}

// Blocks exist, cover the run, and no block that is written to appears in another run.
Status check_blocks(size_t index, const assay_run& run, const Cache& cache, std::set<int32_t>& written) {
  const uint64_t end = uint64_t{run.start} + run.count;
  if (run.blocks == nullptr || uint64_t{run.block_count} * cache.block_size < end) {
    return wrong(index, "block table of " + std::to_string(run.block_count) + " blocks of " +
                            std::to_string(cache.block_size) + " tokens, expected to cover " + std::to_string(end));
  }
  const uint64_t used = (end + cache.block_size - 1) / cache.block_size;
  for (uint64_t b = 0; b < used; ++b) {
    if (run.blocks[b] < 0 || static_cast<uint32_t>(run.blocks[b]) >= cache.block_count) {
      return wrong(
          index, "block " + std::to_string(run.blocks[b]) + ", expected 0 .. " + std::to_string(cache.block_count - 1));
    }
    if (b >= run.start / cache.block_size && !written.insert(run.blocks[b]).second) {
      return wrong(index, "block " + std::to_string(run.blocks[b]) + " is written twice in one batch");
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> unused_note(const std::string& checkpoint, const std::vector<std::string>& unused) {
  if (unused.empty()) return {};
  constexpr size_t kNamed = 5;
  std::string line = checkpoint + ": " + std::to_string(unused.size()) + " tensors are not used by this model: ";
  for (size_t i = 0; i < unused.size() && i < kNamed; ++i) line += (i == 0 ? "" : ", ") + unused[i];
  return {line + (unused.size() > kNamed ? ", ..." : "")};
}

Status check_runs(const model::ModelConfig& config, const Cache& cache, std::span<const assay_run> runs) {
  std::set<int32_t> written;
  for (size_t i = 0; i < runs.size(); ++i) {
    const assay_run& run = runs[i];
    if (run.count == 0) return wrong(i, "count 0, expected at least one token");
    if (run.output_rows > run.count) {
      return wrong(i, "output_rows " + std::to_string(run.output_rows) + ", expected at most count " +
                          std::to_string(run.count));
    }
    if (run.top_n < 0 || run.top_n > config.vocab_size) {
      return wrong(
          i, "top_n " + std::to_string(run.top_n) + ", expected 0 .. vocabulary " + std::to_string(config.vocab_size));
    }
    if (run.output.sampled != nullptr && run.output_rows == 0) {
      return wrong(i, "a sample is wanted with output_rows 0; ask for one row at least");
    }
    const uint64_t end = uint64_t{run.start} + run.count;
    if (config.positions == model::Positions::kLearnedAbsolute &&
        end > static_cast<uint64_t>(config.max_position_embeddings)) {
      return exhausted("run " + std::to_string(i) + ": sequence of " + std::to_string(end) +
                       " tokens, the learned positions end at max_position_embeddings " +
                       std::to_string(config.max_position_embeddings));
    }
    Status status = check_ids(i, run, config.vocab_size);
    if (status.ok()) status = check_blocks(i, run, cache, written);
    if (status.ok() && run.output.sampled != nullptr) status = check_sampling(i, run.sampling, config.vocab_size);
    if (!status.ok()) return status;
  }
  return {};
}

Result<Options> Options::parse(std::string_view json, std::span<const std::string_view> known) {
  Options options;
  if (json.empty()) return options;
  const auto tree = nlohmann::json::parse(json, nullptr, false);
  if (tree.is_discarded() || !tree.is_object()) {
    return invalid("backend options: expected a JSON object, got " + std::string(json.substr(0, 80)));
  }
  for (const auto& [name, value] : tree.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string names;
      for (std::string_view one : known) names += (names.empty() ? "" : ", ") + std::string(one);
      return invalid("backend option '" + name + "' is unknown; known are: " + (names.empty() ? "none" : names));
    }
    Member member{name, "", 0, value.is_string()};
    if (value.is_string()) {
      member.text = value.get<std::string>();
    } else if (value.is_number_integer()) {
      member.number = value.get<int64_t>();
    } else {
      return invalid("backend option '" + name + "': " + value.dump() + ", expected a string or an integer");
    }
    options.members_.push_back(std::move(member));
  }
  return options;
}

Result<std::string> Options::text(std::string_view name, std::string_view fallback) const {
  for (const Member& member : members_) {
    if (member.name != name) continue;
    if (!member.is_text) return invalid("backend option '" + member.name + "': expected a string");
    return member.text;
  }
  return std::string(fallback);
}

Result<int64_t> Options::number(std::string_view name, int64_t fallback) const {
  for (const Member& member : members_) {
    if (member.name != name) continue;
    if (member.is_text) return invalid("backend option '" + member.name + "': expected an integer");
    return member.number;
  }
  return fallback;
}

}  // namespace assay::backend
