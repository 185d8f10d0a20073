#include "core/report/html_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/report/html_text.h"

namespace assay::report {
namespace {

// Upper ends of the colour steps in nats; the first step is exact equality, the last is open.
constexpr std::array<double, 5> kSteps = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1};
constexpr std::array<const char*, 7> kStepNames = {"equal",     "&lt; 1e-5", "&lt; 1e-4", "&lt; 0.001",
                                                   "&lt; 0.01", "&lt; 0.1",  "≥ 0.1 nats"};

size_t step_of(double delta) {
  if (delta == 0) return 0;
  if (!std::isfinite(delta)) return kSteps.size() + 1;
  return 1 + static_cast<size_t>(std::upper_bound(kSteps.begin(), kSteps.end(), delta) - kSteps.begin());
}

constexpr int kWidth = 640;  // drawing units of a plot, and what surrounds its field
constexpr int kHeight = 170;
constexpr int kLeft = 62;
constexpr int kBottom = 24;
constexpr int kTop = 8;

struct Scale {
  double low = 0;
  double high = 1;
  double length = 1;  // largest position

  double x(double position) const { return kLeft + position / length * (kWidth - kLeft - 8); }
  double y(double value) const { return kHeight - kBottom - (value - low) / (high - low) * (kHeight - kBottom - kTop); }
};

std::string path_of(const std::vector<std::pair<double, double>>& points, const Scale& scale) {
  std::string path;
  for (const auto& [position, value] : points) {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", scale.x(position), scale.y(value));
  }
  return path;
}

}  // namespace

std::string heat_strip(const std::vector<std::optional<double>>& deltas, int64_t first_position, int64_t marked) {
  if (deltas.empty()) return "";
  std::array<std::string, kSteps.size() + 2> paths;
  for (size_t begin = 0; begin < deltas.size();) {
    size_t end = begin + 1;
    if (!deltas[begin]) {
      begin = end;
      continue;
    }
    const size_t step = step_of(*deltas[begin]);
    while (end < deltas.size() && deltas[end] && step_of(*deltas[end]) == step) ++end;
    paths[step] += fmt::format("M{} 0h{}v10h-{}z", begin, end - begin, end - begin);
    begin = end;
  }
  std::string svg = fmt::format(
      "<svg class=\"heat\" viewBox=\"0 0 {} 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"differences of "
      "logprobs by position\">",
      deltas.size());
  for (size_t step = 0; step < paths.size(); ++step) {
    if (!paths[step].empty()) svg += fmt::format("<path class=\"h{}\" d=\"{}\"/>", step, paths[step]);
  }
  svg += "</svg>";
  const auto last = first_position + static_cast<int64_t>(deltas.size()) - 1;
  std::string marker;
  if (marked >= first_position && marked <= last) {
    const double share = (static_cast<double>(marked - first_position) + 0.5) / static_cast<double>(deltas.size());
    marker = fmt::format("<i class=\"mark\" style=\"left:{:.2f}%\">▲</i>", share * 100);
  }
  return fmt::format("<div class=\"strip\">{}<div class=\"ends\"><span>{}</span>{}<span>{}</span></div></div>", svg,
                     first_position, marker, last);
}

std::string heat_legend() {
  std::string out = "<p class=\"legend\">|Δ logprob|: ";
  for (size_t step = 0; step < kStepNames.size(); ++step) {
    out += fmt::format(
        "<span><svg class=\"key\" viewBox=\"0 0 1 1\"><path class=\"h{}\" d=\"M0 0h1v1h-1z\"/></svg>{}</span> ", step,
        kStepNames[step]);
  }
  return out + "<span><svg class=\"key\" viewBox=\"0 0 1 1\"></svg>not known</span></p>";
}

std::vector<std::pair<double, double>> downsample(const std::vector<double>& values, size_t limit) {
  std::vector<std::pair<double, double>> points;
  const auto add = [&](size_t i) { points.emplace_back(static_cast<double>(i), values[i]); };
  if (values.size() <= limit) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) add(i);
    }
    return points;
  }
  const size_t stretches = std::max<size_t>(limit / 2, 1);
  for (size_t stretch = 0; stretch < stretches; ++stretch) {
    const size_t begin = stretch * values.size() / stretches;
    const size_t end = (stretch + 1) * values.size() / stretches;
    std::optional<size_t> low;
    std::optional<size_t> high;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) continue;
      if (!low || values[i] < values[*low]) low = i;
      if (!high || values[i] > values[*high]) high = i;
    }
    if (!low) continue;
    add(std::min(*low, *high));
    if (*low != *high) add(std::max(*low, *high));
  }
  return points;
}

std::string line_plot(const std::vector<Curve>& curves, const PlotLabels& labels) {
  std::vector<std::vector<std::pair<double, double>>> lines;
  Scale scale{.low = std::numeric_limits<double>::max(), .high = std::numeric_limits<double>::lowest(), .length = 1};
  size_t points = 0;
  for (const Curve& curve : curves) {
    lines.push_back(downsample(curve.values, kMaxPlotPoints));
    for (auto& [position, value] : lines.back()) {
      value *= labels.scale;
      scale.low = std::min(scale.low, value);
      scale.high = std::max(scale.high, value);
      scale.length = std::max(scale.length, position);
    }
    points += lines.back().size();
  }
  if (points < 2 || !std::isfinite(scale.high - scale.low)) return "";
  if (scale.low > 0 && scale.low < scale.high / 2) scale.low = 0;
  if (scale.high - scale.low <= 0) scale.high = scale.low + std::max(std::abs(scale.low) * 0.1, 1e-12);
  std::string svg = fmt::format(
      "<figure><figcaption>{}</figcaption><svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\">",
      html(labels.title), kWidth, kHeight, html(labels.title));
  for (const double part : {0.0, 0.5, 1.0}) {
    const double value = scale.low + part * (scale.high - scale.low);
    const double y = scale.y(value);
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft, y,
        kWidth - 8, kLeft - 6, y + 4, figure(value));
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\">0</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{} {:.0f}</text>",
                     kLeft, kHeight - 6, kWidth - 8, kHeight - 6, html(labels.x_axis), scale.length);
  for (size_t i = 0; i < curves.size(); ++i) {
    svg += fmt::format("<path class=\"line {}\" d=\"{}\"/>", curves[i].css, path_of(lines[i], scale));
  }
  std::string key;
  for (const Curve& curve : curves) {
    key += fmt::format(" <span class=\"{} linekey\">{}</span>", curve.css, curve.name.empty() ? curve.css : curve.name);
  }
  return svg + fmt::format("</svg><p class=\"legend\">{};{}</p></figure>", html(labels.y_axis), key);
}

std::string bars(const std::vector<std::string>& names, const std::vector<uint64_t>& values) {
  uint64_t largest = 1;
  for (const uint64_t value : values) largest = std::max(largest, value);
  std::string out = "<table class=\"bars\">";
  for (size_t i = 0; i < values.size(); ++i) {
    const double share = static_cast<double>(values[i]) / static_cast<double>(largest) * 100;
    out += fmt::format("<tr><th>{}<td><i style=\"width:{:.1f}%\"></i><td class=\"n\">{}", html(names[i]), share,
                       values[i]);
  }
  return out + "</table>";
}

}  // namespace assay::report
