/* A comparator of texts that does one thing that it must not do. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "assay/plugin_abi.h"
#include "bad.h"

static assay_finding kept; /* for NOT_THREAD_SAFE */

static int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  if (BAD == REFUSES_OPTIONS && judgement->options.size > 2) {
    error->code = ASSAY_INVALID;
    strcpy(error->message, "no options are known");
    return ASSAY_INVALID;
  }
  for (size_t i = 0; i < judgement->pair_count; ++i) {
    const assay_pair* pair = &judgement->pairs[i];
    if (BAD == REFUSES_OLDER_STRUCTS && pair->candidate->size < sizeof *pair->candidate) {
      error->code = ASSAY_INVALID;
      strcpy(error->message, "a record of another version");
      return ASSAY_INVALID;
    }
    assay_finding own;
    assay_finding* finding = BAD == NOT_THREAD_SAFE ? &kept : &own;
    memset(finding, 0, sizeof *finding);
    finding->size = sizeof *finding;
    finding->id = pair->id;
    finding->index = -1;
    const int there = (pair->reference->has & pair->candidate->has & ASSAY_HAS_TEXT) != 0;
    const size_t size = pair->reference->text.size;
    const size_t other = pair->candidate->text.size;
    const size_t compared = BAD == PASSES_WHAT_IS_CUT && other < size ? other : size;
    const int equal = (size == other || BAD == PASSES_WHAT_IS_CUT) &&
                      memcmp(pair->reference->text.data, pair->candidate->text.data, compared) == 0;
    if (BAD == NOT_THREAD_SAFE) usleep(200);
    finding->kind = !there ? ASSAY_FINDING_MISSING : equal ? ASSAY_FINDING_EQUAL : ASSAY_FINDING_DIFFERS;
    if (BAD == SAYS_EQUAL || (BAD == PASSES_WHAT_IS_MISSING && !there) || (BAD == LOOKS_AT_THE_FIRST_PAIR && i > 0)) {
      finding->kind = ASSAY_FINDING_EQUAL;
    }
    if (BAD == READS_BEYOND_SIZE && pair->candidate->latency < 0) finding->kind = ASSAY_FINDING_BROKEN;
    finding->message = (assay_str){"looked at texts", 15};
    sink->finding(sink->context, finding);
  }
  return ASSAY_OK;
}

static const char* const kMetrics[] = {"texts", "same_texts"};

static const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, judge,
                                              BAD == PASSES_WHAT_IS_CUT ? kMetrics : NULL,
                                              BAD == PASSES_WHAT_IS_CUT ? 2 : 0};

static const assay_plugin kPlugin = {ASSAY_PLUGIN_MAGIC,
                                     sizeof(assay_plugin),
                                     ASSAY_ABI_MAJOR,
                                     ASSAY_ABI_MINOR,
                                     ASSAY_COMPARATOR,
                                     0,
                                     ASSAY_CAP_TEXT,
                                     NAME,
                                     "1.0.0",
                                     "made to be found out",
                                     "{\"type\": \"object\"}",
                                     &kTable};

__attribute__((visibility("default"))) const assay_plugin* assay_plugin_query(uint32_t major, uint32_t minor,
                                                                              const assay_host* host) {
  (void)minor;
  (void)host;
  return major == ASSAY_ABI_MAJOR ? &kPlugin : NULL;
}
