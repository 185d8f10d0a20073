#include <algorithm>
#include <cmath>
#include <iterator>

#include "assay/golden.h"
#include "core/golden/json_text.h"
#include "core/golden/replace_file.h"

namespace assay {
namespace {

// Writes the members of one object in Python's default style: "key": value, separated by ", ".
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  void name(std::string_view key) {
    if (!first_) out_ += ", ";
    first_ = false;
    json::append_string(out_, key);
    out_ += ": ";
  }
  void close() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

template <class T, class Append>
void append_list(std::string& out, const T* values, size_t count, Append append) {
  out += '[';
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += ", ";
    append(values[i]);
  }
  out += ']';
}

void append_doubles(std::string& out, const std::vector<double>& values) {
  append_list(out, values.data(), values.size(), [&](double value) { json::append_double(out, value); });
}

void append_ints(std::string& out, const std::vector<int32_t>& values) {
  append_list(out, values.data(), values.size(), [&](int32_t value) { json::append_integer(out, value); });
}

void append_top(std::string& out, const TopLists& lists) {
  size_t entry = 0;
  append_list(out, lists.counts.data(), lists.counts.size(), [&](uint32_t count) {
    Members position(out);
    for (uint32_t i = 0; i < count; ++i, ++entry) {
      position.name(lists.entries[entry].text);
      json::append_double(out, lists.entries[entry].logprob);
    }
    position.close();
  });
}

void append_routing(std::string& out, const Routing& routing) {
  const uint16_t* cell = routing.experts.data();
  const std::vector<char> rows(routing.tokens);
  const std::vector<char> layers(routing.layers);
  append_list(out, rows.data(), rows.size(), [&](char) {
    append_list(out, layers.data(), layers.size(), [&](char) {
      append_list(out, cell, routing.topk, [&](uint16_t expert) { json::append_integer(out, expert); });
      cell += routing.topk;
    });
  });
}

void append_margins(std::string& out, const Routing& routing) {
  const float* margin = routing.margins.data();
  const std::vector<char> rows(routing.tokens);
  append_list(out, rows.data(), rows.size(), [&](char) {
    append_list(out, margin, routing.layers,
                [&](float value) { json::append_double(out, static_cast<double>(value)); });
    margin += routing.layers;
  });
}

// Further fields that have a place among the others in the dynamic script's order.
constexpr std::string_view kBeforeTopN[] = {"ttft", "cuda_graph_request_count_map", "step_count"};
constexpr std::string_view kTopN = "top_n_logprobs";  // here where it is null
constexpr std::string_view kPromptTopN = "prompt_top_n_logprobs";

bool has_place(std::string_view name) {
  return std::find(std::begin(kBeforeTopN), std::end(kBeforeTopN), name) != std::end(kBeforeTopN) || name == kTopN ||
         name == kPromptTopN;
}

void append_request(std::string& out, const RequestRecord& request, GoldenForm form) {
  const bool dynamic = form == GoldenForm::kDynamic;
  Members members(out);
  const auto doubles = [&](std::string_view name, const std::optional<std::vector<double>>& values) {
    if (!values) return;
    members.name(name);
    append_doubles(out, *values);
  };
  const auto top = [&](std::string_view name, const std::optional<TopLists>& lists) {
    if (!lists) return;
    members.name(name);
    append_top(out, *lists);
  };
  if (request.prompt) {
    members.name("input_prompt");
    json::append_string(out, *request.prompt);
  }
  if (request.text) {
    members.name("generated_text");
    json::append_string(out, *request.text);
  }
  if (request.tokens) {
    members.name("generated_tokens");
    append_ints(out, *request.tokens);
  }
  doubles("tpot", request.tpot);
  if (request.latency) {
    members.name("latency");
    json::append_double(out, *request.latency);
  }
  const auto further = [&](std::string_view wanted) {
    for (const auto& [name, value] : request.extra) {
      if (name != wanted) continue;
      members.name(name);
      out += value;
    }
  };
  if (dynamic) {
    for (const std::string_view name : kBeforeTopN) further(name);
    request.top_n ? top(kTopN, request.top_n) : further(kTopN);
    request.prompt_top_n ? top(kPromptTopN, request.prompt_top_n) : further(kPromptTopN);
  } else {
    top("generated_top_n_logprobs", request.top_n);
    doubles("logprobs", request.logprobs);
  }
  doubles("prompt_logprobs", request.prompt_logprobs);
  doubles("generated_logprobs", request.generated_logprobs);
  dynamic ? doubles("logprobs", request.logprobs) : top(kPromptTopN, request.prompt_top_n);
  if (request.prompt_ids) {
    members.name("prompt_tokens");
    append_ints(out, *request.prompt_ids);
  }
  if (request.routing) {
    members.name("routing_indices");
    append_routing(out, *request.routing);
    if (!request.routing->positions.empty()) {
      members.name("routing_indices_token_indices");
      append_ints(out, request.routing->positions);
    }
    if (!request.routing->margins.empty()) {
      members.name("routing_margins");
      append_margins(out, *request.routing);
    }
  }
  for (const auto& [name, value] : request.extra) {
    if (dynamic && has_place(name)) continue;
    members.name(name);
    out += value;
  }
  members.close();
}

// Counters are integers in Megatron-LM's files; every integer that a double holds exactly is written as one.
void append_quantity(std::string& out, double value, bool scalar) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (scalar && std::nearbyint(value) == value && std::fabs(value) <= kExact) {
    json::append_integer(out, static_cast<int64_t>(value));
  } else {
    json::append_double(out, value);
  }
}

}  // namespace

std::string results_text(const ResultSet& set) {
  std::string out;
  Members members(out);
  for (const RequestRecord& request : set.requests) {
    members.name(request.id);
    append_request(out, request, set.form);
  }
  for (const Quantity& quantity : set.quantities) {
    members.name(quantity.name);
    if (quantity.scalar && quantity.values.size() == 1) {
      append_quantity(out, quantity.values[0], true);
    } else {
      append_doubles(out, quantity.values);
    }
  }
  if (!set.extra.empty()) {
    members.name("assay");
    out += set.extra;
  }
  members.close();
  return out;
}

Status write_results(const std::string& path, const ResultSet& set) {
  return replace_file(path, results_text(set) + "\n", Durability::kProcess);
}

}  // namespace assay
