// Results as a comparator sees them: C views over records that stay where they are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/golden.h"
#include "assay/plugin_abi.h"

namespace assay::compare {

// One record as assay_record. Borrows the RequestRecord, which must outlive the view; not movable, since the C struct
// points into it.
class RecordView {
 public:
  explicit RecordView(const RequestRecord& record);
  RecordView(const RecordView&) = delete;
  RecordView& operator=(const RecordView&) = delete;

  // Puts another text in the place of generated_text.
  void replace_text(std::string text);
  // Turns the two characters backslash, n of prompt and text into newlines (how the coordinator form stores them).
  void unescape_newlines();

  const assay_record& record() const { return view_; }

 private:
  std::string prompt_;
  std::string text_;
  std::vector<double> logprobs_;             // (P - 1 + G) where the record keeps the two parts apart
  std::vector<assay_candidate> candidates_;  // entries of top_n
  assay_record view_;
};

// All pairs of two sets that hold the same ids. Borrows both sets.
class Pairs {
 public:
  Pairs(const ResultSet& golden, const ResultSet& actual);

  size_t size() const { return pairs_.size(); }
  RecordView& reference(size_t i) { return *views_[2 * i]; }
  RecordView& candidate(size_t i) { return *views_[2 * i + 1]; }
  const std::vector<assay_pair>& pairs() const { return pairs_; }

 private:
  std::vector<std::unique_ptr<RecordView>> views_;  // reference, candidate, reference, ...
  std::vector<assay_pair> pairs_;
};

std::vector<assay_quantity> quantity_views(const ResultSet& set);

}  // namespace assay::compare
