// Walking through pending goldens: on a terminal, or as data for other programs.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "assay/case.h"
#include "core/compare/judge.h"
#include "core/golden/pending.h"
#include "core/govern/drift.h"

namespace assay::govern {

struct PendingItem {
  TestCase test;
  PendingGolden pending;  // path is set even when `error` is not ok
  Drift drift;            // against the golden that judges, else the nearest one
  bool first = false;     // no golden judges this environment and platform so far
  std::string stale;      // why it can no longer be accepted, one line; empty: it can
  Status error;           // the pending file, or the golden, cannot be read
};

// The pending goldens of these cases, in their order. Fails with kInfra when a folder cannot be listed; what is wrong
// with one file is that item's error.
Result<std::vector<PendingItem>> pending_items(const std::vector<TestCase>& cases, const std::string& pending_dir,
                                               const compare::ComparatorLookup& lookup);

// Metric names to accept for all that changed: names of METRICS, kNoiseMetric, or kAllMetrics where the requests
// themselves are others.
std::vector<std::string> changed_metrics(const PendingItem& item);

// A few lines: what it is, a table of metrics, texts around the first differences, provenance. With `details`, all
// requests and every finding.
std::string item_text(const PendingItem& item, bool details);

// One JSON array; schema in docs/governance.md.
std::string items_json(const std::vector<PendingItem>& items);

struct ReviewContext {
  std::istream* in = nullptr;
  std::ostream* out = nullptr;
  std::string who;                   // empty: asked for
  std::function<std::string()> now;  // UTC
  compare::ComparatorLookup lookup;
};

struct ReviewSummary {
  size_t accepted = 0;
  size_t rejected = 0;
  size_t skipped = 0;
  size_t failed = 0;  // could not be accepted or removed; said on `out`
};

// Shows each item and does what the person says, a line each: a (accept what changed; "a METRIC ..." only those), then
// the reason; r (reject), s (skip), d (details), q (quit), ? (help). The end of the input is q. An empty reason accepts
// nothing.
ReviewSummary review(const std::vector<PendingItem>& items, const ReviewContext& context);

}  // namespace assay::govern
