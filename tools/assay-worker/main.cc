// assay-worker PLAN EVENTS: holds one engine and runs the cases of one plan. Started by the runner, not by people.
#include <cstdio>

#include "core/run/worker.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: assay-worker PLAN.json EVENTS.jsonl   (started by 'assay run')\n", stderr);
    return 2;
  }
  return assay::run::run_worker(argv[1], argv[2]);
}
