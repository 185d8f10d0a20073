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

// Members of one request, in the order of the script that its form is named after.
class RequestWriter {
 public:
  RequestWriter(std::string& out, const RequestRecord& request) : out_(out), request_(request), members_(out) {}

  void write(GoldenForm form) {
    const bool dynamic = form == GoldenForm::kDynamic;
    generated();
    if (dynamic) {
      for (const std::string_view name : kBeforeTopN) further(name);
      if (!top(kTopN, request_.top_n)) further(kTopN);
      if (!top(kPromptTopN, request_.prompt_top_n)) further(kPromptTopN);
      parts_of_logprobs();
      doubles("logprobs", request_.logprobs);
    } else {
      top("generated_top_n_logprobs", request_.top_n);
      doubles("logprobs", request_.logprobs);
      parts_of_logprobs();
      top(kPromptTopN, request_.prompt_top_n);
    }
    prompt_ids_and_routing();
    for (const auto& [name, value] : request_.extra) {
      if (dynamic && has_place(name)) continue;
      members_.name(name);
      out_ += value;
    }
    members_.close();
  }

 private:
  void generated() {
    if (request_.prompt) text("input_prompt", *request_.prompt);
    if (request_.text) text("generated_text", *request_.text);
    if (request_.tokens) {
      members_.name("generated_tokens");
      append_ints(out_, *request_.tokens);
    }
    doubles("tpot", request_.tpot);
    if (request_.latency) {
      members_.name("latency");
      json::append_double(out_, *request_.latency);
    }
  }

  void parts_of_logprobs() {
    doubles("prompt_logprobs", request_.prompt_logprobs);
    doubles("generated_logprobs", request_.generated_logprobs);
  }

  void prompt_ids_and_routing() {
    if (request_.prompt_ids) {
      members_.name("prompt_tokens");
      append_ints(out_, *request_.prompt_ids);
    }
    if (!request_.routing) return;
    const Routing& routing = *request_.routing;
    members_.name("routing_indices");
    append_routing(out_, routing);
    if (!routing.positions.empty()) {
      members_.name("routing_indices_token_indices");
      append_ints(out_, routing.positions);
    }
    if (!routing.margins.empty()) {
      members_.name("routing_margins");
      append_margins(out_, routing);
    }
  }

  void text(std::string_view name, std::string_view value) {
    members_.name(name);
    json::append_string(out_, value);
  }

  void doubles(std::string_view name, const std::optional<std::vector<double>>& values) {
    if (!values) return;
    members_.name(name);
    append_doubles(out_, *values);
  }

  // False: there are no lists.
  bool top(std::string_view name, const std::optional<TopLists>& lists) {
    if (!lists) return false;
    members_.name(name);
    append_top(out_, *lists);
    return true;
  }

  // Further fields of this name.
  void further(std::string_view wanted) {
    for (const auto& [name, value] : request_.extra) {
      if (name != wanted) continue;
      members_.name(name);
      out_ += value;
    }
  }

  std::string& out_;
  const RequestRecord& request_;
  Members members_;
};

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
    RequestWriter(out, request).write(set.form);
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
