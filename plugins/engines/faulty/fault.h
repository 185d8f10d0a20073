// The faults that can be planted: one table of what each is called, who has to notice it and how it is to be judged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::engines {

enum class Fault : uint8_t {
  kNone,
  // In what the engine reads.
  kDoubledFirstToken,
  kPromptHeadTruncated,
  kPromptTailTruncated,
  kPromptTokenChanged,
  // In the use of the backend.
  kStaleKv,
  kMixedKv,
  kLostKvEntry,
  kOffByOnePosition,
  kOffByOnePrefill,
  kLastTokenUnseen,
  kStaleInput,
  kSampled,
  kWrongToken,
  // In the arithmetic.
  kBf16Logits,
  kTemperatureLogprobs,
  kWrongExpert,
  kExpertScale,
  kWrongRotary,
  // In the tokens of a result.
  kDroppedToken,
  kDuplicatedToken,
  kSwappedTokens,
  kWrongLastToken,
  kEarlyStop,
  kRunsOn,
  kEodKept,
  kOneCharacter,
  kEmptyOutput,
  kOtherOutput,
  // In its text.
  kTruncatedText,
  kLostCharacter,
  kInvalidUtf8,
  kLostLeadingSpace,
  kChangedWord,
  // In its numbers.
  kWrongLogprob,
  kShiftedLogprobs,
  kDroppedPromptLogprobs,
  kFp16Logprobs,
  kBf16Logprobs,
  kBf16Probabilities,
  kNanLogprob,
  kInfLogprob,
  kTopNOrder,
  kTopNEntry,
  kRoutingReport,
  kRoutingLayers,
  // In the set of results.
  kDroppedRequest,
  kExtraRequest,
  kRepeatedRequest,
  kSwappedRequests,
  // In time, in memory, and from run to run.
  kSlowTokens,
  kSlowFirstToken,
  kThroughputCollapse,
  kMemoryBloat,
  kUnstableLogprob,
  kUnstableToken,
  // Under a condition alone: metamorphic relations have to notice.
  kBatchArithmetic,
  kBatchTail,
  kWideBatch,
  kBatchRouting,
  kBatchIgnored,
  kSlotDependent,
  kDrawBySlot,
  kMixedStep,
  kNeighbourLeak,
  kLongNeighbour,
  kStateLeft,
  kResetLeaves,
  kWarmUp,
  kLateCall,
  kStalePrefix,
  kPrefixPosition,
  kLongPrefix,
  kContentOnlyHit,
  kPrefixIgnored,
  kChunkBorder,
  kChunkArithmetic,
  kThirdChunk,
  kAlignedChunk,
  kChunksIgnored,
  kLostOnResume,
  kResumeArithmetic,
  kSecondResume,
  kResumeWithHit,
  kResumeMidPrompt,
  kDrawOnResume,
  kRoomIgnored,
  kContinueOff,
  kPageEnd,
  kDecodeArithmetic,
  kPageTurn,
  kThreadArithmetic,
  kManyThreads,
  kReload,
  // In the process.
  kCrash,
  kAbort,
  kExit,
  kHang,
  kLeakMemory,
  kBrokenStep,
};

enum class Family : uint8_t {
  kNone,
  kRequest,
  kBackend,
  kArithmetic,
  kTokens,
  kText,
  kNumbers,
  kSet,
  kCost,
  kCondition,
  kProcess
};
std::string_view to_string(Family family);

struct FaultInfo {
  Fault fault = Fault::kNone;
  Family family = Family::kNone;
  std::string_view name;      // value of the option `fault`
  std::string_view metric;    // with it in METRICS the fault has to be noticed; "requests": by the core's own checks,
                              // "repeat": by comparing repeats, "process": by the supervisor, "@NAME": by this
                              // metamorphic relation
  std::string_view verdicts;  // that fit, separated by blanks
  std::string_view places;    // what a seed chooses
  std::string_view what;      // one line
};

// kNone is not among them.
std::span<const FaultInfo> fault_table();
// The fault's row; of kNone one that has a name alone.
const FaultInfo& info_of(Fault fault);

std::string_view to_string(Fault fault);
std::optional<Fault> parse_fault(std::string_view name);
const std::vector<Fault>& all_faults();  // kNone too

}  // namespace assay::engines
