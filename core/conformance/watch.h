// What the child process of a check was doing when it died, told to its parent.
#pragma once

#include <string>

namespace assay::conformance {

// Memory that parent and child share. The parent makes it before it forks.
class Watch {
 public:
  struct Page;
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // In the child: watch_doing writes here from now on, and a fault in lent memory is noted.
  void begin();
  std::string doing() const;  // the call that was going on; "" before the first
  std::string fault() const;  // what lent memory was touched wrongly; "": none

 private:
  Page* page_;
};

// Notes what is being done; cheap; does nothing before Watch::begin. For one thread at a time to be of use.
void watch_doing(const std::string& what);

}  // namespace assay::conformance
