// Golden and result files: plain data, reading, writing, and which file judges a case.
// One schema for both sides, that of Megatron-LM's inference outputs (forms below); no JSON type appears here.
// Everything is a pure function over its arguments: safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay {

// One entry of a top-n list.
struct TopEntry {
  std::string text;  // of this token alone; files know tokens by their text
  double logprob = 0;
  int32_t id = -1;  // not in files; -1: not known
};

// Top-n lists of consecutive positions, flattened. A position may hold fewer than n: equal texts collide.
struct TopLists {
  std::vector<TopEntry> entries;
  std::vector<uint32_t> counts;  // (positions) entries of each position; sum = entries.size()
};

// Chosen experts.
struct Routing {
  std::vector<uint16_t> experts;  // (tokens, layers, topk)
  size_t tokens = 0;
  size_t layers = 0;
  size_t topk = 0;
  std::vector<int32_t> positions;   // (tokens) token index of each row; empty: 0, 1, 2 ...
  std::vector<float> margins = {};  // (tokens, layers) see plugin_abi.h; routing_margins, our own addition; empty: none
};

// One request of a file. Absent and null fields are nullopt. P prompt tokens, G generated tokens.
struct RequestRecord {
  std::string id;
  std::optional<std::string> prompt;                       // input_prompt
  std::optional<std::vector<int32_t>> prompt_ids;          // prompt_tokens: (P), our own addition to the schema
  std::optional<std::string> text;                         // generated_text
  std::optional<std::vector<int32_t>> tokens;              // generated_tokens: (G)
  std::optional<std::vector<double>> logprobs;             // (P - 1 + G) nats: prompt, then generated
  std::optional<std::vector<double>> prompt_logprobs;      // (P - 1)
  std::optional<std::vector<double>> generated_logprobs;   // (G)
  std::optional<TopLists> top_n;                           // generated_top_n_logprobs or top_n_logprobs: (G)
  std::optional<TopLists> prompt_top_n;                    // prompt_top_n_logprobs: (P - 1)
  std::optional<Routing> routing;                          // routing_indices, routing_indices_token_indices
  std::optional<std::vector<double>> tpot;                 // (G) seconds
  std::optional<double> latency;                           // seconds
  std::optional<std::vector<double>> logits;               // (G) raw logit of each token; not in files
  std::optional<std::vector<int32_t>> ranks;               // (G) 0 = largest logit; not in files
  std::vector<std::pair<std::string, std::string>> extra;  // further fields in file order: name, JSON text
};

// A top-level number or list of numbers: throughput, mem-max-allocated-bytes ...
struct Quantity {
  std::string name;
  std::vector<double> values;
  bool scalar = false;  // one bare number in the file, not a list
};

// Which of Megatron-LM's writers a file looks like, told by the keys of its first request.
enum class GoldenForm : uint8_t {
  kStatic,       // S: tpot
  kDynamic,      // D: cuda_graph_request_count_map
  kApi,          // A: step_count or ttft, no graph map
  kCoordinator,  // C: prompt, text, tokens and none of the above; newlines of texts stored as backslash, n
  kTextOnly,     // T: generated_text alone
  kTokensOnly,   // K: generated_tokens alone
  kOther,
};

// Letter of the form as docs use it: "S", "D", "A", "C", "T", "K"; "other".
std::string_view to_string(GoldenForm form);

struct ResultSet {
  std::vector<RequestRecord> requests;  // ids ascending: numbers by value, then the rest bytewise
  std::vector<Quantity> quantities;     // in file order
  std::string path;                     // of the file, or what the caller named the text
  GoldenForm form = GoldenForm::kOther;
  bool string_wrapped = false;     // the file was a JSON string that held the object
  std::string extra;               // JSON text of a top-level object "assay" (provenance); empty: none
  std::vector<std::string> notes;  // one line each: duplicate keys and the like, which do not make a file wrong

  // The request with this id, or null. Owned by the set.
  const RequestRecord* find(std::string_view id) const;
};

// True when id `a` comes before id `b` in a ResultSet.
bool request_id_less(std::string_view a, std::string_view b);

// Reads one file or text. Bare NaN, Infinity and -Infinity are admitted anywhere a number may stand; a top level that
// is a string is parsed once more; of duplicate keys the last one wins.
// Fails with one line that names the path and line:column, or request, field and index: kNotFound (no such file),
// kInfra (unreadable), kInvalid (anything else, e.g. truncated, not JSON, invalid UTF-8, wrong type, ids beyond int32,
// ragged routing, FLAT form = one request without its id).
Result<ResultSet> read_results(const std::string& path);
Result<ResultSet> read_results_text(std::string_view json, const std::string& name);

// The JSON text of a set in the static script's schema and key order (input_prompt, generated_text, generated_tokens,
// tpot, latency, generated_top_n_logprobs, logprobs, then what else there is), form D in those of the dynamic script
// (input_prompt, generated_text, generated_tokens, latency, ttft, cuda_graph_request_count_map, step_count,
// top_n_logprobs, prompt_top_n_logprobs, prompt_logprobs, generated_logprobs, logprobs, then the rest). ASCII only;
// doubles in their shortest spelling that reads back to the same bits; NaN and infinities bare; ill-formed UTF-8
// becomes U+FFFD.
std::string results_text(const ResultSet& set);

// Writes results_text to `path` through a temporary file beside it: readers see the old file or the whole new one.
// Fails with kInfra; the old file is then untouched.
Status write_results(const std::string& path, const ResultSet& set);

// A finished request as a record; copies everything. Strings without data (null pointer) and empty arrays stay
// nullopt; so do tokens, if a text came without any ids. A candidate without text is named by its decimal id.
// Logprobs are joined into `logprobs`; without generated tokens they are the prompt's. Of equal texts in a position
// the last entry counts, at the first one's place. Members unknown to the engine's ABI stay nullopt.
// Fails with kInvalid when result.extra is not empty and no JSON object, or sizes contradict each other.
Result<RequestRecord> record_of(const assay_result& result, std::string id);

// Which file of a case folder judges.
struct GoldenChoice {
  std::string path;
  bool exact = false;  // golden_values_<environment>_<platform>.json; else golden_values_<environment>_any.json
};

// Fails with kNotFound (the message lists the golden files present) or kInvalid (names that hold a slash).
Result<GoldenChoice> resolve_golden(const std::string& case_dir, const std::string& environment,
                                    const std::string& platform);

}  // namespace assay
