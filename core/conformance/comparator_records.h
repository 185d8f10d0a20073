// Records that comparators are asked about, and the ways in which one of them can go wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "core/conformance/lent.h"

namespace assay::conformance {

struct RecordData {
  uint32_t has = 0;  // ASSAY_HAS_*
  std::string prompt;
  std::string text;
  std::vector<int32_t> prompt_ids;  // (P)
  std::vector<int32_t> tokens;      // (G)
  std::vector<double> logprobs;     // (P - 1 + G)
  std::vector<int32_t> top_ids;     // (G, 2)
  std::vector<double> top_logprobs;
  std::vector<uint16_t> routing;  // (P + G - 1, 2, 2)
  std::vector<float> margins;     // (P + G - 1, 2)
  std::vector<double> tpot;       // (G) seconds
  double latency = 0;             // seconds
};

struct QuantityData {
  std::string name;
  std::vector<double> values;
};

// A whole record, of everything that an engine can give; `which` varies it.
RecordData whole_record(size_t which);

// In the layout of the ABI, `size` bytes long: a smaller one as an older host has it.
const assay_record* put_record(Lent& lent, const RecordData& data, size_t size);

// One kind of content, and how to spoil it.
struct Content {
  const char* name;
  uint32_t has;                        // the bit that says that it is there
  void (*change)(RecordData& record);  // to other values of a valid record
  void (*spoil)(RecordData& record);   // to NaN or infinity; null where it has no numbers
};
const std::vector<Content>& contents();

}  // namespace assay::conformance
