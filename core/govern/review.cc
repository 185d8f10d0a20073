#include "core/govern/review.h"

#include <fmt/format.h>

#include <istream>
#include <ostream>
#include <sstream>

#include "core/govern/accept.h"

namespace assay::govern {
namespace {

constexpr const char* kKeys = "[a]ccept, [r]eject, [s]kip, [d]etails, [q]uit, ? for help: ";
constexpr const char* kHelp =
    "  a            accept everything that changed; a reason is asked for\n"
    "  a METRIC...  accept these metrics alone\n"
    "  r            reject: the pending file is removed, the golden stays\n"
    "  s            skip: it stays pending\n"
    "  d            all requests and every finding\n"
    "  q            quit; what was not looked at stays pending\n";

std::string trimmed(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

class Reviewer {
 public:
  Reviewer(const ReviewContext& context, ReviewSummary& summary)
      : context_(context), out_(*context.out), summary_(summary) {}

  // False: the person quits.
  bool walk(const PendingItem& item) {
    out_ << item_text(item, false);
    std::string line;
    while (ask(kKeys, line)) {
      const std::vector<std::string> words = words_of(line);
      const std::string key = words.empty() ? "" : words[0];
      if (key == "q") return false;
      if (key == "s") {
        ++summary_.skipped;
        return true;
      }
      if (key == "d") {
        out_ << item_text(item, true);
      } else if (key == "r") {
        done(reject(item.pending.path), summary_.rejected, "rejected");
        return true;
      } else if (key == "a") {
        if (try_accept(item, {words.begin() + 1, words.end()})) return true;
      } else {
        out_ << kHelp;
      }
    }
    return false;
  }

 private:
  bool ask(const char* question, std::string& line) {
    out_ << question << std::flush;
    if (!std::getline(*context_.in, line)) return false;
    line = trimmed(line);
    return true;
  }

  void done(const Status& status, size_t& counter, const char* word) {
    if (status.ok()) {
      ++counter;
      out_ << "  " << word << "\n";
    } else {
      ++summary_.failed;
      out_ << "  " << status.message() << "\n";
    }
  }

  // True when the item is over: accepted, or it cannot be.
  bool try_accept(const PendingItem& item, std::vector<std::string> metrics) {
    if (!item.error.ok()) {
      out_ << "  it cannot be read; reject it, or skip\n";
      return false;
    }
    AcceptRequest request;
    request.metrics = metrics.empty() ? changed_metrics(item) : std::move(metrics);
    request.who = context_.who;
    if (request.who.empty() && !ask("your name: ", request.who)) return false;
    if (!ask("reason: ", request.why) || request.why.empty()) {
      out_ << "  no reason, nothing accepted\n";
      return false;
    }
    request.when = context_.now();
    const auto accepted = accept(item.test, item.pending, request, context_.lookup);
    if (!accepted) {
      ++summary_.failed;
      out_ << "  not accepted: " << accepted.status().message() << "\n";
      return false;
    }
    ++summary_.accepted;
    out_ << fmt::format("  accepted {} into {}\n", fmt::join(accepted->metrics, ", "), accepted->golden);
    if (!accepted->remaining.empty()) {
      out_ << fmt::format("  still pending: {}\n", fmt::join(accepted->remaining, ", "));
    }
    return true;
  }

  const ReviewContext& context_;
  std::ostream& out_;
  ReviewSummary& summary_;
};

}  // namespace

ReviewSummary review(const std::vector<PendingItem>& items, const ReviewContext& context) {
  ReviewSummary summary;
  Reviewer reviewer(context, summary);
  for (size_t i = 0; i < items.size(); ++i) {
    *context.out << fmt::format("\n[{}/{}] ", i + 1, items.size());
    if (!reviewer.walk(items[i])) break;
  }
  *context.out << fmt::format("\n{} accepted, {} rejected, {} left pending\n", summary.accepted, summary.rejected,
                              items.size() - summary.accepted - summary.rejected);
  return summary;
}

}  // namespace assay::govern
