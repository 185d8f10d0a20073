#include "plugins/engines/faulty/conditions.h"

#include <algorithm>
#include <array>
#include <optional>

namespace assay::engines {
namespace {

// A run in its forward, with what is known of its request.
struct Look {
  Passage* passage;
  size_t index;

  const assay_run& run() const { return passage->runs()[index]; }
  const Watched& of() const { return passage->watched(index); }
  const Circumstances& around() const { return passage->model().around; }
  size_t batch() const { return passage->runs().size(); }
  // Chosen by the seed alone.
  size_t pick(size_t n) const { return passage->model().places.among(0).pick(n); }
};

bool is_in_batch(const Look& look) { return look.batch() >= 2; }
bool is_last_of_remainder(const Look& look) {
  constexpr size_t kTile = 8;  // rows that a kernel takes at once
  return is_in_batch(look) && look.batch() % kTile != 0 && look.index + 1 == look.batch();
}
bool is_in_wide_batch(const Look& look) { return look.batch() >= 33; }
bool is_in_slot(const Look& look) { return is_in_batch(look) && look.index == look.pick(look.batch()); }
// Tokens beyond the prompt, one in a forward.
bool decodes(const Look& look) { return look.run().count == 1 && look.run().start >= look.of().prompt_size; }
bool decodes_beside_a_prompt(const Look& look) {
  if (!decodes(look)) return false;
  for (size_t i = 0; i < look.batch(); ++i) {
    if (look.passage->runs()[i].start < look.passage->watched(i).prompt_size) return true;
  }
  return false;
}
bool has_longer_neighbour(const Look& look) {
  for (size_t i = 0; i < look.batch(); ++i) {
    if (look.passage->watched(i).prompt_size > look.of().prompt_size) return true;
  }
  return false;
}
bool follows_call(const Look& look) { return !look.of().before.empty() && look.of().runs == 0; }
bool follows_reset(const Look& look) { return look.of().after_reset && look.of().runs == 0; }
bool follows_calls(const Look& look) { return look.of().call > 2 && look.of().runs == 0; }
bool is_warm_up(const Look& look) { return look.around().forwards == 0 && look.index == look.pick(look.batch()); }
bool follows_hit(const Look& look) { return look.of().cached > 0 && look.of().runs == 0; }
bool follows_long_hit(const Look& look) {
  return follows_hit(look) && look.of().cached >= 2 * look.around().block_size;
}
bool is_later_chunk(const Look& look) {
  const Watched& request = look.of();
  return request.resumes == 0 && request.chunks >= 1 && look.run().start < request.prompt_size && look.run().count >= 2;
}
bool is_third_chunk(const Look& look) { return is_later_chunk(look) && look.of().chunks >= 2; }
bool is_aligned_chunk(const Look& look) {
  return is_later_chunk(look) && look.run().start % look.around().block_size == 0;
}
bool resumes(const Look& look) { return look.of().resumes > 0 && !look.of().drew; }
bool resumes_again(const Look& look) { return look.of().resumes > 1 && look.of().runs == 0; }
bool resumes_with_hit(const Look& look) { return look.of().resumes > 0 && follows_hit(look); }
bool resumes_mid_prompt(const Look& look) {
  return look.of().resumes > 0 && look.of().cut_short && look.of().runs == 0;
}
bool is_continuation(const Look& look) { return look.of().answered > 1; }
// The second prompt has the tokens of the first one from `begin` to `end`, but not all that stand before them.
bool has_block_of(const Watched& first, const Watched& second, size_t begin, size_t end) {
  if (first.prompt_size < end || second.prompt_size < end) return false;
  const auto at = [](const Watched& request, size_t position) {
    return request.ids.begin() + static_cast<ptrdiff_t>(position);
  };
  return std::equal(at(first, begin), at(first, end), at(second, begin)) &&
         !std::equal(at(first, 0), at(first, begin), at(second, 0));
}
// First position of a block of the run that an earlier prompt has in the same place, behind other tokens; nullopt:
// there is none.
std::optional<size_t> lookalike(const Look& look) {
  const size_t size = look.around().block_size;
  const uint64_t self = look.passage->tag(look.index);
  for (size_t begin = (look.run().start + size - 1) / size * size; begin + size <= look.run().start + look.run().count;
       begin += size) {
    for (uint64_t other = 0; other < self; ++other) {
      if (has_block_of(look.passage->model().watched[other], look.of(), begin, begin + size)) return begin;
    }
  }
  return std::nullopt;
}
bool has_lookalike(const Look& look) {
  return look.around().prefix_caching && look.of().runs == 0 && lookalike(look).has_value();
}
bool is_paged(const Look& look) { return look.around().buffered; }
bool turns_page(const Look& look) { return decodes(look) && look.run().start % look.around().block_size == 0; }
bool has_threads(const Look& look) { return look.around().threads > 1; }
bool has_many_threads(const Look& look) { return look.around().threads > 2; }
bool is_reloaded(const Look& look) { return !look.around().first_model; }

struct Rule {
  Fault fault;
  Harm harm;
  size_t occasions;  // that a seed chooses one of; 0: all are struck
  bool (*holds)(const Look& look);
};

constexpr std::array kRules = {
    Rule{Fault::kBatchArithmetic, Harm::kLastBit, 16, is_in_batch},
    Rule{Fault::kBatchTail, Harm::kLastBit, 4, is_last_of_remainder},
    Rule{Fault::kWideBatch, Harm::kLastBit, 16, is_in_wide_batch},
    Rule{Fault::kBatchRouting, Harm::kRouting, 16, is_in_batch},
    Rule{Fault::kSlotDependent, Harm::kLastBit, 4, is_in_slot},
    Rule{Fault::kDrawBySlot, Harm::kDraw, 0, is_in_slot},
    Rule{Fault::kMixedStep, Harm::kLastBit, 2, decodes_beside_a_prompt},
    Rule{Fault::kNeighbourLeak, Harm::kOtherKv, 4, is_in_batch},
    Rule{Fault::kLongNeighbour, Harm::kLastBit, 0, has_longer_neighbour},
    Rule{Fault::kStateLeft, Harm::kOtherKv, 2, follows_call},
    Rule{Fault::kResetLeaves, Harm::kOtherKv, 2, follows_reset},
    Rule{Fault::kWarmUp, Harm::kLastBit, 1, is_warm_up},
    Rule{Fault::kLateCall, Harm::kOtherKv, 2, follows_calls},
    Rule{Fault::kStalePrefix, Harm::kOtherKv, 2, follows_hit},
    Rule{Fault::kPrefixPosition, Harm::kEarlierPosition, 2, follows_hit},
    Rule{Fault::kLongPrefix, Harm::kOtherKv, 1, follows_long_hit},
    Rule{Fault::kContentOnlyHit, Harm::kOtherKv, 0, has_lookalike},
    Rule{Fault::kChunkBorder, Harm::kOtherKv, 3, is_later_chunk},
    Rule{Fault::kChunkArithmetic, Harm::kLastBit, 3, is_later_chunk},
    Rule{Fault::kThirdChunk, Harm::kLastBit, 2, is_third_chunk},
    Rule{Fault::kAlignedChunk, Harm::kLastBit, 1, is_aligned_chunk},
    Rule{Fault::kLostOnResume, Harm::kRepeatedToken, 1, resumes},
    Rule{Fault::kResumeArithmetic, Harm::kLastBit, 1, resumes},
    Rule{Fault::kSecondResume, Harm::kOtherKv, 1, resumes_again},
    Rule{Fault::kResumeWithHit, Harm::kOtherKv, 1, resumes_with_hit},
    Rule{Fault::kResumeMidPrompt, Harm::kOtherKv, 1, resumes_mid_prompt},
    Rule{Fault::kDrawOnResume, Harm::kDraw, 1, resumes},
    Rule{Fault::kContinueOff, Harm::kEarlierPosition, 1, is_continuation},
    Rule{Fault::kPageEnd, Harm::kOtherKv, 1, is_paged},
    Rule{Fault::kDecodeArithmetic, Harm::kLastBit, 8, decodes},
    Rule{Fault::kPageTurn, Harm::kLastBit, 1, turns_page},
    Rule{Fault::kThreadArithmetic, Harm::kLastBit, 16, has_threads},
    Rule{Fault::kManyThreads, Harm::kLastBit, 16, has_many_threads},
    Rule{Fault::kReload, Harm::kLastBit, 16, is_reloaded},
};

int32_t another(int32_t id) { return id > 0 ? id - 1 : 1; }

// The entry of the cache that is overwritten; nullopt: there is none that would matter.
std::optional<Struck> choose_entry(Fault fault, const Look& look) {
  const assay_run& run = look.run();
  const std::vector<int32_t>& ids = look.of().ids;
  const size_t end = run.start + run.count;
  const auto entry = [&](size_t position, int32_t id) -> std::optional<Struck> {
    if (position >= end || position >= ids.size() || id == ids[position]) return std::nullopt;
    return Struck{look.index, Harm::kOtherKv, position, id};
  };
  size_t position = look.pick(run.count) + run.start;
  switch (fault) {
    case Fault::kNeighbourLeak: {
      if (run.start == 0) return std::nullopt;
      position = look.pick(run.start);
      const assay_run& neighbour = look.passage->runs()[(look.index + 1) % look.batch()];
      return entry(position, neighbour.ids[neighbour.count - 1]);
    }
    case Fault::kStateLeft: {
      const std::vector<int32_t>& before = look.of().before;
      for (size_t i = 0; i < run.count; ++i, position = position + 1 < end ? position + 1 : run.start) {
        if (const auto found = entry(position, before[position % before.size()])) return found;
      }
      return std::nullopt;
    }
    case Fault::kStalePrefix:
    case Fault::kResumeWithHit:
      position = look.pick(look.of().cached);
      break;
    case Fault::kLongPrefix:
      position = look.around().block_size + look.pick(look.around().block_size);
      break;
    case Fault::kChunkBorder:
      position = run.start - 1;
      break;
    case Fault::kContentOnlyHit:
      position = *lookalike(look) + look.pick(look.around().block_size);
      break;
    case Fault::kPageEnd: {
      const size_t first = run.start / look.around().block_size;
      const size_t last = end / look.around().block_size;
      if (first == last) return std::nullopt;
      position = (first + 1 + look.pick(last - first)) * look.around().block_size - 1;
      break;
    }
    default:
      break;
  }
  return position < ids.size() ? entry(position, another(ids[position])) : std::nullopt;
}

std::optional<Struck> choose_row(const Look& look) {
  const assay_run& run = look.run();
  std::vector<size_t> rows;  // that have a logprob
  for (size_t row = 0; row < run.output_rows; ++row) {
    const bool target = run.output.target_logprobs != nullptr && run.targets[row] >= 0;
    const bool drawn = run.output.sampled_logprob != nullptr && row + 1 == run.output_rows;
    if (target || drawn) rows.push_back(row);
  }
  if (rows.empty()) return std::nullopt;
  return Struck{look.index, Harm::kLastBit, rows[look.pick(rows.size())], 0};
}

std::optional<Struck> choose_border(Fault fault, const Look& look) {
  const assay_run& run = look.run();
  const size_t border = fault == Fault::kContinueOff ? look.of().answered - 1 : run.start;
  if (border == 0 || border < run.start || border >= run.start + run.count) return std::nullopt;
  return Struck{look.index, Harm::kEarlierPosition, border, 0};
}

std::optional<Struck> choose_draw(Fault fault, const Look& look) {
  const assay_run& run = look.run();
  const uint64_t other = fault == Fault::kDrawOnResume ? run.sampling.prompt_index + 1 : look.index;
  if (run.output.sampled == nullptr || run.sampling.top_k == 1 || run.sampling.prompt_index == other) {
    return std::nullopt;
  }
  return Struck{look.index, Harm::kDraw, other, 0};
}

std::optional<Struck> choose_place(const Rule& rule, const Look& look) {
  const assay_run& run = look.run();
  switch (rule.harm) {
    case Harm::kLastBit:
      return choose_row(look);
    case Harm::kOtherKv:
      return choose_entry(rule.fault, look);
    case Harm::kRepeatedToken:
      if (run.output.sampled == nullptr || run.count < 2 || run.ids[run.count - 1] == run.ids[run.count - 2]) {
        return std::nullopt;
      }
      return Struck{look.index, rule.harm, run.start + run.count - 1, 0};
    case Harm::kEarlierPosition:
      return choose_border(rule.fault, look);
    case Harm::kRouting:
      if (run.output.routing == nullptr) return std::nullopt;
      return Struck{look.index, rule.harm, look.pick(run.count), 0};
    case Harm::kDraw:
      return choose_draw(rule.fault, look);
  }
  return std::nullopt;
}

}  // namespace

std::string_view ignored_option(Fault fault) {
  switch (fault) {
    case Fault::kBatchIgnored:
      return "max_requests";
    case Fault::kPrefixIgnored:
      return "prefix_caching";
    case Fault::kChunksIgnored:
      return "chunked_prefill";
    case Fault::kRoomIgnored:
      return "block_count";
    default:
      return "";
  }
}

std::vector<Struck> choose_struck(Passage* passage) {
  FaultyModel& model = passage->model();
  const auto* rule =
      std::find_if(kRules.begin(), kRules.end(), [&](const Rule& one) { return one.fault == model.fault; });
  std::vector<Struck> struck;
  if (rule == kRules.end()) return struck;
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    const Look look{passage, i};
    if (look.run().ids == nullptr || !rule->holds(look)) continue;
    const std::optional<Struck> one = choose_place(*rule, look);
    if (!one) continue;
    const bool chosen =
        rule->occasions == 0 || !model.places.seeded() || model.occasions == model.places.amount(rule->occasions);
    ++model.occasions;
    if (chosen) struck.push_back(*one);
  }
  return struck;
}

}  // namespace assay::engines
