#include "plugins/engines/buffered/options.h"

#include "backends/model/config/model_config.h"
#include "plugins/engines/buffered/buffered_fixture.h"

namespace assay::engines {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  const Result<BufferedOptions> options = parse_buffered_options(text);
  return options ? "ok" : options.status().message();
}

TEST(BufferedOptions, NamesWhatIsWrong) {
  EXPECT_EQ(refusal("{}"), "ok");
  EXPECT_THAT(refusal(R"({"buffer_size_gb": 0})"), HasSubstr("buffer_size_gb is 0, expected a number above 0"));
  EXPECT_THAT(refusal(R"({"buffer_size_gb": "4"})"), HasSubstr("buffer_size_gb is \"4\""));
  EXPECT_THAT(refusal(R"({"chunked_prefill": 1})"), HasSubstr("chunked_prefill is 1, expected true or false"));
  EXPECT_THAT(refusal(R"({"prefix_caching_eviction_policy": "fifo"})"), HasSubstr("expected one of ref_zero, lru"));
  EXPECT_THAT(refusal(R"({"results": "json"})"), HasSubstr("expected one of static, dynamic"));
  EXPECT_THAT(refusal(R"({"max_request": 1})"),
              HasSubstr("unknown member max_request (did you mean 'max_requests'?); known: block_count"));
  EXPECT_THAT(refusal(R"({"max_chunk": 7})"), HasSubstr("without chunked_prefill"));
  EXPECT_THAT(refusal(R"({"max_requests": 65, "max_tokens": 64})"), HasSubstr("max_requests 65 is above max_tokens"));
}

TEST(BufferedOptions, SchemaAndParserKnowTheSameMembersAndDefaults) {
  const nlohmann::json schema = nlohmann::json::parse(kBufferedOptionsSchema);
  nlohmann::json defaults = nlohmann::json::object();
  for (const auto& [name, member] : schema["properties"].items()) {
    EXPECT_THAT(refusal(R"({"no": 0})"), HasSubstr(name));
    if (member.contains("default")) defaults[name] = member["default"];
  }
  const Result<BufferedOptions> given = parse_buffered_options(defaults.dump());
  ASSERT_TRUE(given.ok()) << given.status().message();
  const BufferedOptions none;
  EXPECT_EQ(given->buffer_size_gb, none.buffer_size_gb);
  EXPECT_EQ(given->block_size, none.block_size);
  EXPECT_EQ(given->max_tokens, none.max_tokens);
  EXPECT_EQ(given->max_sequence_length, none.max_sequence_length);
  EXPECT_EQ(given->requests_per_second, none.requests_per_second);
  EXPECT_EQ(given->seed, none.seed);
  EXPECT_EQ(given->results, none.results);
}

// 4 layers, 2 groups of 64 channels, blocks of 256: 2 * 4 * 2 * 64 * 256 numbers = 1 MiB in fp32.
TEST(BufferSize, IsTheAncestorsFormula) {
  model::ModelConfig config;
  config.num_layers = 4;
  config.hidden_size = 256;
  config.ffn_hidden_size = 256;
  config.num_attention_heads = 4;
  config.num_query_groups = 2;
  config.kv_channels = 64;
  config.vocab_size = 64;
  config.max_position_embeddings = 1024;
  config.moe_layers.assign(4, false);
  BufferedOptions options;
  options.buffer_size_gb = 1;
  Result<BufferSize> size = size_buffer(options, model::to_json(config));
  ASSERT_TRUE(size.ok()) << size.status().message();
  EXPECT_EQ(size->block_bytes, 1U << 20);
  EXPECT_EQ(size->blocks, 1024U);
  EXPECT_EQ(size->max_requests, 1020U) << "blocks - 1, a multiple of 4";
  config.arithmetic = model::Arithmetic::kBf16;
  EXPECT_EQ(size_buffer(options, model::to_json(config))->blocks, 2048U);
  options.block_count = 7;
  EXPECT_EQ(size_buffer(options, model::to_json(config))->blocks, 7U);
  options.block_count.reset();
  options.buffer_size_gb = 1e-9;
  EXPECT_THAT(size_buffer(options, model::to_json(config)).status().message(),
              HasSubstr("is less than one block of 256 tokens, 524288 bytes; raise"));
}

}  // namespace
}  // namespace assay::engines
