// Whole cases through the shared objects: text in, records out, against the goldens of Megatron-LM's static engine.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "assay/golden.h"
#include "assay/sdk.hpp"
#include "backends/reference/testing/vector_case.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

const std::string kShared = std::string(ASSAY_SOURCE_DIR) + "/../shared";
const std::string kExtra = std::string(ASSAY_SOURCE_DIR) + "/../extra_vectors";

const plugin::Plugin& plugin_of(const std::string& file) {
  static std::map<std::string, plugin::Plugin> loaded;
  const auto [place, is_new] = loaded.try_emplace(file);
  if (is_new) {
    const auto failure =
        plugin::load(ASSAY_BINARY_DIR "/lib/assay/plugins/" + file, plugin::silent_host(), &place->second);
    EXPECT_FALSE(failure.has_value()) << failure->message;
  }
  return place->second;
}

// MODEL_ARGS of a case without anchors, and what the other side gave.
struct Case {
  std::map<std::string, std::string> args;
  std::string tokenizer_json;
  testing::VectorCase model;
  ResultSet golden;

  int number(const std::string& name, int fallback) const {
    return args.contains(name) ? std::stoi(args.at(name)) : fallback;
  }
};

Result<Case> read(const std::string& root, const std::string& name) {
  Case made;
  Result<testing::VectorCase> model = testing::read_case(root, name);
  if (!model) return model.status();
  made.model = *std::move(model);
  const std::string folder = root + "/cases/" + name;
  std::ifstream file(folder + "/model_config.yaml");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("  --") && colon != std::string::npos)
      made.args[line.substr(4, colon - 4)] = line.substr(colon + 2);
  }
  const std::string variable = "${CHECKPOINT_LOAD_PATH}";
  const std::string vocabulary = root + made.args["tokenizer-model"].substr(variable.size());
  made.tokenizer_json = nlohmann::json({{"type", made.args["tokenizer-type"]},
                                        {"model", vocabulary},
                                        {"pattern", made.args["tiktoken-pattern"]},
                                        {"vocab_size", made.number("vocab-size", 0)},
                                        {"num_special", made.number("tiktoken-num-special-tokens", 1000)}})
                            .dump();
  Result<ResultSet> golden = read_results(folder + "/golden_values_dev_dgx_h200.json");
  if (!golden) return golden.status();
  made.golden = *std::move(golden);
  return made;
}

// A model opened on a backend, and engines on it.
class Opened {
 public:
  Opened(const Case& test, const std::string& backend) : test_(test), backend_(plugin_of(backend).backend()) {
    const std::string config = model::to_json(test.model.config);
    auto source = sdk::sized<assay_model_source>();
    source.config_json = sdk::view(config);
    source.checkpoint = sdk::view(test.model.checkpoint);
    source.options = sdk::view(std::string_view("{}"));
    status_ = sdk::call(backend_->open, &source, &model_);
  }
  ~Opened() {
    if (model_ != nullptr) backend_->close(model_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  // Runs the case's prompts in the given order; records[i] answers prompt i of the golden.
  Result<std::vector<RequestRecord>> run(const std::string& engine_file, nlohmann::json options,
                                         const std::vector<size_t>& order, bool routing = false) {
    if (!status_.ok()) return status_;
    const assay_engine_table* table = plugin_of(engine_file).engine();
    if (!options.contains("max_requests")) options["max_requests"] = test_.number("inference-max-requests", 8);
    options["max_sequence_length"] = test_.number("inference-max-seq-length", 2560);
    const std::string options_json = options.dump();
    auto config = sdk::sized<assay_engine_config>();
    config.backend = backend_;
    config.model = model_;
    config.tokenizer_json = sdk::view(test_.tokenizer_json);
    config.options = sdk::view(options_json);
    void* engine = nullptr;
    if (Status status = sdk::call(table->open, &config, &engine); !status.ok()) return status;
    const std::unique_ptr<void, void (*)(void*)> closer(engine, table->close);
    for (size_t i = 0; i < order.size(); ++i) {
      auto request = sdk::sized<assay_request>();
      request.id = i;
      request.want = ASSAY_WANT_LOGPROBS;
      if (routing) request.want |= ASSAY_WANT_ROUTING;
      request.text = sdk::view(*test_.golden.requests[order[i]].prompt);
      request.max_new_tokens = test_.number("num-tokens-to-generate", 30);
      request.top_n = test_.number("top-n-logprobs", 0);
      request.sampling = {
          .temperature = 1, .top_k = 1, .reserved = 0, .top_p = 0, .seed = 1234, .prompt_index = order[i]};
      if (Status status = sdk::call(table->submit, engine, &request); !status.ok()) return status;
    }
    return drain(table, engine, order);
  }

 private:
  static Result<std::vector<RequestRecord>> drain(const assay_engine_table* table, void* engine,
                                                  const std::vector<size_t>& order) {
    std::vector<RequestRecord> records(order.size());
    for (size_t pending = 1; pending > 0;) {
      const assay_event* events = nullptr;
      size_t count = 0;
      if (Status status = sdk::call(table->step, engine, &events, &count, &pending); !status.ok()) return status;
      for (const assay_event& event : std::span(events, count)) {
        if (event.kind == ASSAY_EVENT_FAILED) return invalid(std::string(sdk::text(event.message)));
        if (event.kind != ASSAY_EVENT_FINISHED) continue;
        Result<RequestRecord> record = record_of(*event.result, std::to_string(order[event.id]));
        if (!record) return record.status();
        records[order[event.id]] = *std::move(record);
      }
    }
    return records;
  }

  const Case& test_;
  const assay_backend_table* backend_;
  void* model_ = nullptr;
  Status status_;
};

std::vector<size_t> in_order(size_t count) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  return order;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double delta = std::abs(a[i] - b[i]);
    most = std::isnan(delta) ? INFINITY : std::max(most, delta);
  }
  return most;
}

// Texts and values of two top-n lists. Entries are matched by text, as equal logits leave the order open.
double largest_difference(const std::optional<TopLists>& a, const std::optional<TopLists>& b) {
  if (!a || !b) return a.has_value() == b.has_value() ? 0 : INFINITY;
  if (a->counts != b->counts) return INFINITY;
  double most = 0;
  size_t at = 0;
  for (const uint32_t count : a->counts) {
    for (size_t i = at; i < at + count; ++i) {
      size_t match = at;
      while (match < at + count && b->entries[match].text != a->entries[i].text) ++match;
      if (match == at + count) return INFINITY;
      most = std::max(most, std::abs(a->entries[i].logprob - b->entries[match].logprob));
    }
    at += count;
  }
  return most;
}

void expect_equal(const RequestRecord& record, const RequestRecord& golden, double tolerance) {
  EXPECT_EQ(record.tokens, golden.tokens);
  EXPECT_EQ(record.text, golden.text);
  EXPECT_EQ(record.prompt, golden.prompt);
  EXPECT_LE(largest_difference(record.logprobs.value_or(std::vector<double>()),
                               golden.logprobs.value_or(std::vector<double>())),
            tolerance);
  EXPECT_LE(largest_difference(record.top_n, golden.top_n), tolerance);
  EXPECT_EQ(record.tpot.value_or(std::vector<double>()).size(), golden.tokens->size());
}

// Every fp32 case below root. What its arguments leave to the checkpoint is left out here.
void expect_equal_to_megatron(const std::string& root, const std::string& backend, double tolerance) {
  const std::vector<std::string> names = testing::list_cases(root, "");
  if (names.empty()) GTEST_SKIP() << "no cases below " << root;
  size_t compared = 0;
  for (const std::string& name : names) {
    Result<Case> test = read(root, name);
    if (!test && test.status().code() == StatusCode::kUnsupported) continue;
    ASSERT_TRUE(test.ok()) << test.status().message();
    if (test->model.config.arithmetic == model::Arithmetic::kBf16) continue;  // exact ties there
    SCOPED_TRACE(name);
    Opened opened(*test, backend);
    const auto records =
        opened.run("engine_static_legacy.so", nlohmann::json::object(), in_order(test->golden.requests.size()));
    ASSERT_TRUE(records.ok()) << records.status().message();
    double most = 0;
    for (size_t i = 0; i < records->size(); ++i) {
      expect_equal((*records)[i], test->golden.requests[i], tolerance);
      most = std::max(most, largest_difference((*records)[i].logprobs.value_or(std::vector<double>()),
                                               test->golden.requests[i].logprobs.value_or(std::vector<double>())));
      compared += test->golden.requests[i].tokens->size();
    }
    std::printf("%-44s max |delta| %.2e\n", name.c_str(), most);
  }
  EXPECT_GT(compared, 0U);
}

TEST(StaticLegacyOnCpu, AgreesWithMegatronOnTheSharedVectors) {
  expect_equal_to_megatron(kShared + "/vectors", "backend_cpu.so", 1e-5);
}

TEST(StaticLegacyOnCpu, AgreesWithMegatronOnFurtherArchitectures) {
  expect_equal_to_megatron(kExtra, "backend_cpu.so", 4e-5);
}

TEST(StaticLegacyOnReference, AgreesWithMegatronOnTheSharedVectors) {
  expect_equal_to_megatron(kShared + "/vectors", "backend_reference.so", 1e-5);
}

// 80 of 80 tokens for both prompts, and the same text.
TEST(StaticLegacyOnCpu, WritesTheLicencesInBothArithmeticsAndBatchSizes) {
  const std::string root = kShared + "/gold";
  if (!fs::exists(root)) GTEST_SKIP() << "no gold model below " << kShared;
  for (const std::string name : {"moe_10m_licences_b1", "moe_10m_licences_b4"}) {
    for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
      SCOPED_TRACE(name + (arithmetic == model::Arithmetic::kFp32 ? " fp32" : " bf16"));
      Result<Case> test = read(root, name);
      ASSERT_TRUE(test.ok()) << test.status().message();
      test->model.config.arithmetic = arithmetic;
      Opened opened(*test, "backend_cpu.so");
      const auto records = opened.run("engine_static_legacy.so", nlohmann::json::object(), {0, 1});
      ASSERT_TRUE(records.ok()) << records.status().message();
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ((*records)[i].tokens->size(), 80U);
        EXPECT_EQ((*records)[i].tokens, test->golden.requests[i].tokens);
        EXPECT_EQ((*records)[i].text, test->golden.requests[i].text);
      }
    }
  }
}

// State clean-up on a real model: order, batch size and block size change no bit; a stale-KV fault does.
TEST(StaticLegacyOnCpu, GivesEveryRequestTheSameBitsInAnyOrderAndStaleKvDoesNot) {
  const std::string root = kShared + "/vectors";
  if (!fs::exists(root)) GTEST_SKIP() << "no vectors below " << kShared;
  const Result<Case> test = read(root, "moe_mixed_b4");
  ASSERT_TRUE(test.ok()) << test.status().message();
  Opened opened(*test, "backend_cpu.so");
  const auto first = opened.run("engine_static_legacy.so", {{"max_requests", 1}}, {0, 1, 2, 3}, true);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const std::vector<size_t> permuted = {2, 0, 3, 1};
  for (const int max_requests : {1, 2, 3, 4}) {
    const auto again =
        opened.run("engine_static_legacy.so", {{"max_requests", max_requests}, {"block_size", 7}}, permuted, true);
    ASSERT_TRUE(again.ok()) << again.status().message();
    for (size_t i = 0; i < 4; ++i) {
      SCOPED_TRACE(::testing::Message() << "request " << i << " max_requests " << max_requests);
      EXPECT_EQ((*again)[i].tokens, (*first)[i].tokens);
      EXPECT_EQ((*again)[i].logprobs, (*first)[i].logprobs);
      EXPECT_EQ((*again)[i].routing->experts, (*first)[i].routing->experts);
    }
  }
  const auto stale = opened.run("engine_faulty.so", {{"max_requests", 1}, {"fault", "stale_kv"}}, permuted);
  ASSERT_TRUE(stale.ok()) << stale.status().message();
  EXPECT_EQ((*stale)[2].logprobs, (*first)[2].logprobs) << "the first of its row finds nothing stale";
  for (const size_t i : {0, 3, 1}) EXPECT_NE((*stale)[i].logprobs, (*first)[i].logprobs) << "request " << i;
}

}  // namespace
}  // namespace assay
