// Which fields of a golden a metric stands for: what is compared, accepted and kept together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/golden.h"

namespace assay::govern {

// Metric names of what a set holds, in the order of this list, then those of its quantities in file order.
//   generated_text, generated_tokens, logprobs, top_n_logprobs, routing_indices, tpot, latency
std::vector<std::string> metrics_in(const ResultSet& set);

// The name above that a name in METRICS means: known_completion is about generated_text; other names stay.
std::string part_of(std::string_view metric);

// True for values that differ in every run: seconds, bytes, rates.
bool is_performance(std::string_view metric);

// True for values that belong to the tokens they were recorded with: text, tokens, logprobs, top-n lists, routing.
bool follows_tokens(std::string_view metric);

// Whether any request, or the set itself, has the metric's fields.
bool has_metric(const ResultSet& set, std::string_view metric);

// True for the names above: values that each request has of its own.
bool is_field(std::string_view metric);

// First request (its id) that lacks the metric's field; for a quantity that the set lacks, its name; "": none lacks it.
std::string first_lacking(const ResultSet& set, std::string_view metric);

// First request (its id) whose fields differ, or that one side lacks; "" : none. For a metric of the set as a whole
// that differs: the metric's name. Experts of a token are compared as sets.
std::string first_difference(const ResultSet& a, const ResultSet& b, std::string_view metric);

// Replaces the metric's fields of `into` by those of `from`, request by request; requests that `into` lacks stay
// lacking. A field that `from` lacks is removed.
void take_metric(ResultSet& into, const ResultSet& from, std::string_view metric);

}  // namespace assay::govern
