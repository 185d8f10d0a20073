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

// Differing sets are of three kinds. A near-tie differs by one expert at a margin within tolerance; where more experts
// were exchanged or no margin is known, a margin at the boundary explains nothing. A set follows a near-tie when one
// lies in a lower layer at the same token or an earlier one, since its activations pass on what that tie changed. The
// rest is unexplained.
struct Comparison {
  uint64_t compared = 0;   // sets
  uint64_t differing = 0;  // = near_ties + following + unexplained
  uint64_t near_ties = 0;
  uint64_t following = 0;
  uint64_t unexplained = 0;
  std::optional<Difference> first;  // least token, then least layer
  std::vector<uint64_t> by_layer;   // (layers) differing sets
  double largest_margin = 0;        // of the differing sets whose margin is known
  bool tolerable = true;            // some tolerance would make near-ties of all differing sets
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

// Compares the golden's rows before `end` (a position; nullopt: all), margins up to `tolerance` being ties. Both
// records have routing. Returns false and fills `fault`: empty, other shapes, an expert twice in one set, a position
// that is negative or listed twice, a token that one side alone has.
bool compare_sets(const assay_pair& pair, std::optional<int64_t> end, double tolerance, Comparison* comparison,
                  Fault* fault);

}  // namespace assay::routing
