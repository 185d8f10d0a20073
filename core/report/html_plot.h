// Small drawings as inline SVG: no script, no outside reference, colours by class so that both themes fit.
// Pure functions, safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

inline constexpr size_t kMaxPlotPoints = 400;

// |difference| of the logprob at each position, in nats, coloured by size: seven steps whose brightness alone tells
// them apart. nullopt: not known there. `marked`: an index to point at; -1: none.
std::string heat_strip(const std::vector<std::optional<double>>& deltas, int64_t first_position, int64_t marked);

// What the colours of heat_strip mean, once for a page.
std::string heat_legend();

struct Curve {
  std::vector<double> values;  // at positions 0, 1, ...; values that are not finite leave a gap
  std::string_view css;        // class of the line: "golden", "result"
  std::string_view name = {};  // in the legend; empty: like the class
};

struct PlotLabels {
  std::string title;
  std::string x_axis;
  std::string y_axis;  // with its unit
  double scale = 1;    // values are multiplied by it for the axis
};

// Curves over a common axis, each cut down to at most kMaxPlotPoints (lowest and highest value of each stretch); ""
// when there is nothing to draw.
std::string line_plot(const std::vector<Curve>& curves, const PlotLabels& labels);

// Horizontal bars with their number; `names` parallel to `values`.
std::string bars(const std::vector<std::string>& names, const std::vector<uint64_t>& values);

// The values cut down to at most `limit` (position, value) pairs, ascending position; not finite ones left out.
std::vector<std::pair<double, double>> downsample(const std::vector<double>& values, size_t limit);

}  // namespace assay::report
