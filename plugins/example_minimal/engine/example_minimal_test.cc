// Calls the plugin as assay does. Ends with 0 when every expectation holds.
#include <cstdio>
#include <string>

#include "assay/sdk.hpp"

extern "C" const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t abi_minor, const assay_host* host);

namespace {

using namespace assay;

int failures = 0;

#define EXPECT(condition)                                                         \
  if (!(condition)) {                                                             \
    std::fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
    ++failures;                                                                   \
  }

const assay_engine_table* table = nullptr;

void* open(const std::string& options = "{}") {
  auto config = sdk::sized<assay_engine_config>();
  config.options = sdk::view(options);
  void* engine = nullptr;
  return sdk::call(table->open, &config, &engine).ok() ? engine : nullptr;
}

Status submit(void* engine, uint64_t id, const std::string& text) {
  auto request = sdk::sized<assay_request>();
  request.id = id;
  request.text = sdk::view(text);
  return sdk::call(table->submit, engine, &request);
}

void answers_every_request_with_its_prompt() {
  void* engine = open();
  EXPECT(submit(engine, 3, "one").ok());
  EXPECT(submit(engine, 4, "two").ok());
  EXPECT(submit(engine, 5, "three").ok());
  EXPECT(sdk::call(table->cancel, engine, uint64_t{4}).ok());
  EXPECT(sdk::call(table->cancel, engine, uint64_t{4}).code() == StatusCode::kNotFound);
  const assay_event* events = nullptr;
  size_t count = 0;
  size_t pending = 9;
  EXPECT(sdk::call(table->step, engine, &events, &count, &pending).ok());
  EXPECT(pending == 0 && count == 2);
  EXPECT(events[0].id == 3 && sdk::text(events[0].result->text) == "one");
  EXPECT(events[1].id == 5 && sdk::text(events[1].result->prompt) == "three");
  table->close(engine);
}

void forgets_everything_at_a_reset() {
  void* engine = open();
  EXPECT(submit(engine, 3, "one").ok());
  EXPECT(sdk::call(table->reset, engine).ok());
  const assay_event* events = nullptr;
  size_t count = 9;
  size_t pending = 9;
  EXPECT(sdk::call(table->step, engine, &events, &count, &pending).ok());
  EXPECT(count == 0 && pending == 0);
  table->close(engine);
}

void refuses_what_it_does_not_know() {
  EXPECT(open(R"({"x": 1})") == nullptr);
  void* engine = open();
  auto request = sdk::sized<assay_request>();
  const int32_t id = 1;
  request.ids = {&id, 1};
  EXPECT(sdk::call(table->submit, engine, &request).code() == StatusCode::kUnsupported);
  request.ids = {};
  request.forced = {&id, 1};
  EXPECT(sdk::call(table->submit, engine, &request).code() == StatusCode::kUnsupported);
  table->close(engine);
}

}  // namespace

int main() {
  const assay_plugin* plugin = assay_plugin_query(ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, nullptr);
  EXPECT(assay_plugin_query(ASSAY_ABI_MAJOR + 1, 0, nullptr) == nullptr);
  table = static_cast<const assay_engine_table*>(plugin->table);
  answers_every_request_with_its_prompt();
  forgets_everything_at_a_reset();
  refuses_what_it_does_not_know();
  return failures == 0 ? 0 : 1;
}
