// The chosen experts of one pair, compared as sets. Pure functions over borrowed records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay::routing {

// A (token, layer) whose sets differ.
struct Difference {
  int64_t token = 0;             // position in the sequence: prompt, then generated
  size_t layer = 0;              // among the layers that route
  std::vector<uint16_t> golden;  // ascending
  std::vector<uint16_t> result;
  std::optional<double> margin;  // of the result: score of the last expert chosen - best one left out
};

struct Comparison {
  uint64_t compared = 0;  // sets
  uint64_t differing = 0;
  std::optional<Difference> first;  // least token, then least layer
  std::vector<uint64_t> by_layer;   // (layers) differing sets
  double largest_margin = 0;        // of the differing sets whose margin is known
  uint64_t unexplained = 0;         // differing sets that no margin explains: it is not known, or more than one expert
                                    // was exchanged, which a margin at one boundary says nothing about
};

// Where the tokens of the two sides part.
struct Split {
  size_t generated = 0;             // index of the first divergent generated token
  std::optional<int64_t> position;  // of that token in the sequence; nullopt: the prompt's length is not known
};
std::optional<Split> split_of(const assay_record& golden, const assay_record& result);

// A fault that makes the routing of a side no valid record, or a token that the result does not hold.
struct Fault {
  bool missing = false;  // the result holds part of the tokens and lacks one of the golden's
  int64_t token = -1;
  std::string message;
};

// Compares the golden's rows before `end` (a position; nullopt: all). Both records have routing. Returns false and
// fills `fault`: empty, other shapes, an expert twice in one set, a position that is negative or listed twice, a token
// that one side alone has.
bool compare_sets(const assay_record& golden, const assay_record& result, std::optional<int64_t> end,
                  Comparison* comparison, Fault* fault);

}  // namespace assay::routing
