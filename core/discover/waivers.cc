#include "core/discover/waivers.h"

#include <algorithm>
#include <array>

#include "core/discover/metamorphic_block.h"
#include "core/discover/nearest.h"
#include "core/golden/date.h"
#include "core/golden/text.h"

namespace assay::discover {
namespace {

constexpr std::array<std::string_view, 10> kMembers = {"reason",    "owner",         "issue",     "expires",
                                                       "verdicts",  "metrics",       "platforms", "environments",
                                                       "relations", "expect_failure"};
constexpr std::array<std::string_view, 5> kMandatory = {"reason", "owner", "issue", "expires", "verdicts"};
constexpr std::array<std::string_view, 7> kWaivable = {"DRIFT",   "DIVERGED", "FLAKY",  "NOT_COMPARABLE",
                                                       "INVALID", "INFRA",    "CRASHED"};

class Reader {
 public:
  Reader(std::string name, SchemaErrors& errors) : name_(std::move(name)), errors_(errors) {}

  Waiver read(const YamlNode& node) {
    Waiver waiver;
    if (node.kind != YamlNode::Kind::kMap) {
      errors_.add(node, name_ + " must be a mapping with reason, owner, issue, expires and verdicts");
      return waiver;
    }
    for (const YamlEntry& entry : node.entries) read_member(entry, &waiver);
    for (const std::string_view member : kMandatory) {
      if (node.find(member) == nullptr) errors_.add(node, name_ + ": " + std::string(member) + " is missing");
    }
    return waiver;
  }

 private:
  void read_member(const YamlEntry& entry, Waiver* waiver) {
    const std::string& key = entry.key;
    const YamlNode& value = *entry.value;
    if (key == "reason") {
      waiver->reason = words(value, key);
    } else if (key == "owner") {
      waiver->owner = words(value, key);
    } else if (key == "issue") {
      waiver->issue = words(value, key);
    } else if (key == "expires") {
      waiver->expires = words(value, key);
      if (!parse_date(waiver->expires)) {
        errors_.add(value, name_ + ": expires '" + waiver->expires + "' is no day such as 2027-01-31");
      }
    } else if (key == "verdicts") {
      read_verdicts(value, waiver);
    } else if (key == "metrics") {
      waiver->metrics = texts(value, key);
    } else if (key == "platforms") {
      waiver->platforms = texts(value, key);
    } else if (key == "environments") {
      waiver->environments = texts(value, key);
    } else if (key == "relations") {
      waiver->relations = read_relations(value, name_ + ".relations", errors_);
    } else if (key == "expect_failure") {
      waiver->expect_failure = value.text == "true";
      if (!value.is_scalar() || (value.text != "true" && value.text != "false")) {
        errors_.add(value, name_ + ": expect_failure must be true or false");
      }
    } else {
      errors_.add(value, name_ + ": " + key + " is unknown" + did_you_mean(key, kMembers));
    }
  }

  void read_verdicts(const YamlNode& node, Waiver* waiver) {
    for (const std::string& name : texts(node, "verdicts")) {
      if (std::find(kWaivable.begin(), kWaivable.end(), name) != kWaivable.end()) {
        waiver->verdicts.push_back(*parse_verdict(name));
      } else if (parse_verdict(name)) {
        errors_.add(node, name_ + ": verdict " + name + " cannot be waived, as it is no failure of a judged case");
      } else {
        errors_.add(node, name_ + ": verdict '" + name + "' is unknown" + did_you_mean(name, kWaivable));
      }
    }
  }

  std::string words(const YamlNode& node, const std::string& key) {
    if (!node.is_scalar() || node.is_null() || text::blank(node.text)) {
      errors_.add(node, name_ + ": " + key + " must be a text");
    }
    return node.text;
  }

  // One text or a list of at least one.
  std::vector<std::string> texts(const YamlNode& node, const std::string& key) {
    if (node.is_scalar()) return {words(node, key)};
    if (node.items.empty()) errors_.add(node, name_ + ": " + key + " must be a text or a list of texts");
    std::vector<std::string> list;
    for (const YamlNode* item : node.items) list.push_back(words(*item, key));
    return list;
  }

  std::string name_;
  SchemaErrors& errors_;
};

}  // namespace

std::vector<Waiver> read_waivers(const YamlNode& node, SchemaErrors& errors) {
  std::vector<Waiver> waivers;
  if (node.is_null()) return waivers;
  if (node.kind == YamlNode::Kind::kMap) return {Reader("ASSAY.waivers", errors).read(node)};
  if (node.is_scalar()) errors.add(node, "ASSAY.waivers must be a list of mappings");
  for (size_t i = 0; i < node.items.size(); ++i) {
    waivers.push_back(Reader("ASSAY.waivers[" + std::to_string(i) + "]", errors).read(*node.items[i]));
  }
  return waivers;
}

int64_t waiver_days_left(const Waiver& waiver, const std::string& today) {
  return parse_date(waiver.expires).value_or(-1) - parse_date(today).value_or(0);
}

std::string waiver_validity(const Waiver& waiver, const std::string& today) {
  const int64_t days = waiver_days_left(waiver, today);
  if (days < 0) return "expired on " + waiver.expires;
  return "until " + waiver.expires + ", " + std::to_string(days) + (days == 1 ? " day left" : " days left");
}

}  // namespace assay::discover
