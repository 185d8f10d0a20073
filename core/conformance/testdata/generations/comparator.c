/* A comparator as somebody wrote it for the ABI that it is built with: the number of generated tokens is equal. */
#include <string.h>

#include "assay/plugin_abi.h"

static int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  (void)error;
  for (size_t i = 0; i < judgement->pair_count; ++i) {
    const assay_pair* pair = &judgement->pairs[i];
    const int there = (pair->reference->has & pair->candidate->has & ASSAY_HAS_TOKENS) != 0;
    const int equal = pair->reference->tokens.size == pair->candidate->tokens.size &&
                      memcmp(pair->reference->tokens.data, pair->candidate->tokens.data,
                             pair->reference->tokens.size * sizeof(int32_t)) == 0;
    const assay_finding finding = {.size = sizeof(assay_finding),
                                   .kind = !there  ? ASSAY_FINDING_MISSING
                                           : equal ? ASSAY_FINDING_EQUAL
                                                   : ASSAY_FINDING_DIFFERS,
                                   .id = pair->id,
                                   .index = -1,
                                   .compared = 1,
                                   .message = {"looked at tokens", 16}};
    sink->finding(sink->context, &finding);
  }
  return ASSAY_OK;
}

static const assay_comparator_table kTable = {.size = sizeof(assay_comparator_table), .judge = judge};

static const assay_plugin kPlugin = {.magic = ASSAY_PLUGIN_MAGIC,
                                     .size = sizeof(assay_plugin),
                                     .abi_major = ASSAY_ABI_MAJOR,
                                     .abi_minor = ASSAY_ABI_MINOR,
                                     .kind = ASSAY_COMPARATOR,
                                     .capabilities = ASSAY_CAP_TOKENS,
                                     .name = NAME,
                                     .version = "1.0.0",
                                     .description = "of another generation",
                                     .options_schema = "{\"type\": \"object\"}",
                                     .table = &kTable};

__attribute__((visibility("default"))) const assay_plugin* assay_plugin_query(uint32_t major, uint32_t minor,
                                                                              const assay_host* host) {
  (void)minor;
  (void)host;
  return major == ASSAY_ABI_MAJOR ? &kPlugin : NULL;
}
