#include "core/conformance/lent.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <new>
#include <vector>

namespace assay::conformance {
namespace {

enum State { kOpen, kLocked, kGone, kBehind };  // kBehind: the page after a struct that was cut

struct Region {
  const char* begin = nullptr;
  size_t size = 0;
  std::atomic<int> state = kOpen;
  std::array<char, 80> what = {};
};

constexpr size_t kMostRegions = 8192;
std::array<Region, kMostRegions> regions;  // NOLINT: a signal handler looks here
std::atomic<size_t> region_count = 0;      // NOLINT: likewise
std::array<char, 300> described;           // NOLINT: likewise

size_t add_region(const char* begin, size_t size, int state, const std::string& what) {
  const size_t index = std::min(region_count.fetch_add(1), kMostRegions - 1);
  Region& region = regions[index];
  region.size = size;
  region.state = state;
  std::strncpy(region.what.data(), what.c_str(), region.what.size() - 1);
  region.begin = begin;
  return index;
}

char* pages(size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(memory);
}

}  // namespace

Lent::Lent(const std::string& what, size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  capacity_ = (bytes + page - 1) / page * page;
  begin_ = pages(capacity_ + page);
  ::mprotect(begin_ + capacity_, page, PROT_NONE);
  region_ = add_region(begin_, capacity_, kOpen, what);
  add_region(begin_ + capacity_, page, kBehind, what);
}

void* Lent::bytes(const void* from, size_t size) {
  used_ = (used_ + 15) / 16 * 16;
  if (used_ + size + 1 > capacity_) throw std::bad_alloc();
  char* place = begin_ + used_;
  if (from != nullptr && size > 0) std::memcpy(place, from, size);
  used_ += size;
  return place;
}

void* Lent::at_end(const void* from, size_t size) {
  capacity_ -= size;  // everything else goes before it; sizes of structs are multiples of their alignment
  char* place = begin_ + capacity_;
  std::memcpy(place, from, size);
  capacity_ = capacity_ / 16 * 16;
  return place;
}

assay_str Lent::put(std::string_view text) {
  char* place = static_cast<char*>(bytes(text.data(), text.size()));
  begin_[used_++] = '\x7F';
  return {place, text.size()};
}

assay_ids Lent::put(std::span<const int32_t> ids) { return {array(ids), ids.size()}; }

assay_doubles Lent::put(std::span<const double> values) { return {array(values), values.size()}; }

void Lent::protect(int how, int state) {
  Region& region = regions[region_];
  region.state = state;
  ::mprotect(begin_, region.size, how);
}

void Lent::lock() { protect(PROT_READ, kLocked); }
void Lent::take_back() { protect(PROT_NONE, kGone); }

const char* describe_fault(const void* address) {
  const char* where = static_cast<const char*>(address);
  const size_t count = std::min(region_count.load(), kMostRegions);
  for (size_t i = 0; i < count; ++i) {
    const Region& region = regions[i];
    if (where < region.begin || where >= region.begin + region.size) continue;
    const char* wrong = region.state == kGone     ? "used after the call that it was lent for; copy what is kept"
                        : region.state == kLocked ? "written to; inputs belong to the caller"
                        : region.state == kBehind ? "read beyond its `size`; look at a member only if `size` covers it"
                                                  : "touched wrongly";
    std::snprintf(described.data(), described.size(), "%s: %s", region.what.data(), wrong);
    return described.data();
  }
  return nullptr;
}

void churn_heap() {
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t size = 16; size <= 4096; size += size < 1100 ? 16 : 512) {
    for (int i = 0; i < 10; ++i) {
      blocks.emplace_back(new char[size]);
      std::memset(blocks.back().get(), 0xA5, size);
    }
  }
}

}  // namespace assay::conformance
