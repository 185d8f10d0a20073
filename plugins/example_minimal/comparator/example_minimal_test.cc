// Calls the plugin as assay does. Ends with 0 when every expectation holds.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

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

assay_record record(const char* text) {
  auto made = sdk::sized<assay_record>();
  if (text == nullptr) return made;
  made.has = ASSAY_HAS_TEXT;
  made.text = sdk::view(std::string_view(text));
  return made;
}

// The one finding about this pair of texts; null: the side has none.
assay_finding judge(const assay_comparator_table& table, const char* golden, const char* result) {
  const assay_record reference = record(golden);
  const assay_record candidate = record(result);
  const assay_pair pair = {sdk::view(std::string_view("0")), &reference, &candidate};
  auto judgement = sdk::sized<assay_judgement>();
  judgement.pairs = &pair;
  judgement.pair_count = 1;
  judgement.options = sdk::view(std::string_view("{}"));
  std::vector<assay_finding> findings;
  const assay_sink sink = {&findings, [](void* context, const assay_finding* finding) {
                             static_cast<std::vector<assay_finding>*>(context)->push_back(*finding);
                           }};
  EXPECT(sdk::call(table.judge, &judgement, &sink).ok());
  EXPECT(findings.size() == 1);
  return findings.empty() ? assay_finding{} : findings[0];
}

}  // namespace

int main() {
  const assay_plugin* plugin = assay_plugin_query(ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, nullptr);
  EXPECT(assay_plugin_query(ASSAY_ABI_MAJOR + 1, 0, nullptr) == nullptr);
  const auto& table = *static_cast<const assay_comparator_table*>(plugin->table);
  EXPECT(judge(table, "gold", "gold").kind == ASSAY_FINDING_EQUAL);
  EXPECT(judge(table, "gold", "gilt").kind == ASSAY_FINDING_DIFFERS);
  EXPECT(judge(table, "gold", "gilt").index == 1);
  EXPECT(judge(table, "gold", "go").index == 2);
  EXPECT(judge(table, "gold", nullptr).kind == ASSAY_FINDING_MISSING);
  EXPECT(judge(table, nullptr, "gold").kind == ASSAY_FINDING_MISSING);
  return failures == 0 ? 0 : 1;
}
